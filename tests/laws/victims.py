"""Generated people, one of whom an attacker is after."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

import discreet as dc
from discreet.attacks import Victim
from discreet.data.dataset import Dataset

SECTORS, REGIONS = ("IT", "HC", "Fin"), ("N", "S", "W")
#: What everybody knows of a salary.
BOUNDS = {"salary": (0.0, 200_000.0)}


@dataclasses.dataclass(frozen=True)
class Case:
    """People, and the victim among them."""

    frame: pd.DataFrame
    victim: Victim
    truth: float

    @property
    def dataset(self) -> Dataset:
        return dataset(self.frame)


def dataset(frame: pd.DataFrame) -> Dataset:
    return dc.read(
        frame,
        name="people",
        roles={
            "id": "identifier",
            "sector": "quasi",
            "region": "quasi",
            "age": "quasi",
            "salary": "confidential",
        },
        unit="id",
    )


def case(seed: int) -> Case:
    """Draw 45 people, of whom one alone works in a sector and region that are common apart."""
    rng = np.random.default_rng(seed)
    size = 45
    sector, region = rng.choice(SECTORS, size), rng.choice(REGIONS, size)
    sector[(sector == "Fin") & (region == "W")] = "IT"
    sector[0], region[0] = "Fin", "W"
    frame = pd.DataFrame(
        {
            "id": np.arange(size),
            "sector": sector,
            "region": region,
            "age": rng.integers(20, 65, size),
            "salary": salaries(rng, size),
        }
    )
    victim = Victim(
        "people", "salary", "sector = 'Fin' AND region = 'W'", "region = 'W'", "sector = 'IT'"
    )
    return Case(frame, victim, float(frame["salary"][0]))


def salaries(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.integers(20_000, 180_000, size)


def statements(rng: np.random.Generator, many: int) -> list[str]:
    """Draw questions about the people, harmless and not."""
    told = ("SUM(salary)", "AVG(salary)", "COUNT(*)")
    found = []
    for _ in range(many):
        what = str(rng.choice(told, p=(0.5, 0.3, 0.2)))
        parts = [f"sector = '{rng.choice(SECTORS)}'", f"region = '{rng.choice(REGIONS)}'"]
        parts += [f"age < {rng.integers(20, 66)}", f"NOT (age > {rng.integers(20, 66)})"]
        chosen = rng.choice(parts, int(rng.integers(0, 3)), replace=False)
        word = str(rng.choice([" AND ", " OR "]))
        where = f" WHERE {word.join(chosen)}" if len(chosen) else ""
        if rng.random() < 0.2:
            found.append(f"SELECT sector, {what} AS x FROM people{where} GROUP BY sector")
        else:
            found.append(f"SELECT {what} AS x FROM people{where}")
    return found
