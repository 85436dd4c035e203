"""Generated people with names, homes, keys and secrets, and how to read a written file of them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import discreet as dc
from discreet.data.dataset import Dataset

REGIONS = dc.Hierarchy.from_levels({"All": {"N": ["n1", "n2"], "S": ["s1", "s2"]}})
JOBS = dc.Hierarchy.from_levels({"Any": {"care": ["nurse", "medic"], "food": ["cook", "baker"]}})
AGES = dc.Hierarchy.from_levels(
    {"0-99": {f"{a}-{a + 19}": [str(y) for y in range(a, a + 20)] for a in range(0, 100, 20)}}
)
QUASI = ("region", "job", "age")


def frame(seed: int = 1, size: int = 60, *, missing: bool = True) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, size)
    pay = (20 + 0.6 * age + rng.normal(0, 4, size)).round(2)
    region = pd.Series(rng.choice(list(REGIONS.leaves), size), dtype=object)
    if missing:
        pay[::17] = np.nan
        region[::23] = None
    return pd.DataFrame(
        {
            "name": [f"Ms Xanthippe {seed}-{n:03d}" for n in range(size)],
            "home": [f"h{n // 3}" for n in range(size)],
            "region": region,
            "job": rng.choice(list(JOBS.leaves), size),
            "age": age,
            "pay": pay,
            "ill": rng.choice(["flu", "cold", "gout", "none"], size),
            "weight": rng.integers(2, 9, size),
        }
    )


def dataset(rows: pd.DataFrame) -> Dataset:
    return dc.read(
        rows,
        name="people",
        roles={
            "name": "identifier",
            "home": "other",
            **dict.fromkeys(QUASI, "quasi"),
            "pay": "confidential",
            "ill": "confidential",
            "weight": "other",
        },
        types={"home": "nominal", "age": "numeric", "pay": "numeric"},
        hierarchies={"region": REGIONS, "job": JOBS, "age": AGES},
        weight="weight",
    )


def read_back(folder: Path) -> list[dict[str, str]]:
    """Return the records of a written release, read from its bytes by other code than wrote them."""
    with (folder / "people.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def assert_nobody_is_named(folder: Path, rows: pd.DataFrame) -> None:
    """No file of a release holds an identifier, not in a report and not in metadata."""
    for path in folder.rglob("*"):
        if path.is_file():
            assert b"Xanthippe" not in path.read_bytes(), f"{path.name} names people"


def as_sorted(rows: pd.DataFrame, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return records as text in an order of their own, to compare files of different orders."""
    return sorted(tuple(map(str, row)) for row in rows[list(columns)].itertuples(index=False))
