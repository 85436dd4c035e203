"""Tables for the tests: the seeds' examples, generated ones, and the published instances."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd

from discreet.data.dataset import Dataset, read
from discreet.data.hierarchy import Hierarchy
from discreet.tables.table import Table

SALARIES = [500, 320, 32, 35, 34, 28, 300, 45, 34, 45, 34, 24, 300, 35, 150]
SECTORS = ["IT"] * 6 + ["HC"] * 6 + ["Fin"] * 3
REGIONS = ["BCN"] * 3 + ["TGN"] * 3 + ["BCN"] * 3 + ["TGN"] * 3 + ["BCN", "BCN", "TGN"]


def salaries() -> Dataset:
    """The fifteen people of the seeds (row 14 with 35,000)."""
    frame = pd.DataFrame(
        {
            "id": range(1, 16),
            "salary": [1000 * amount for amount in SALARIES],
            "sector": SECTORS,
            "region": REGIONS,
        }
    )
    return read(frame, unit="id", name="people")


def castro() -> tuple[Table, Table]:
    """Castro's tables of seed 001: frequencies and magnitudes."""
    count = [[2, 15, 30, 20, 10], [72, 20, 1, 30, 10], [38, 38, 15, 40, 5]]
    value = [[360, 450, 720, 400, 360], [1440, 540, 22, 570, 320], [722, 1178, 375, 800, 363]]
    rows = []
    for m in range(4):
        for p in range(6):
            chosen = [
                (i, j) for i in (range(3) if m == 3 else [m]) for j in (range(5) if p == 5 else [p])
            ]
            rows.append(
                {
                    "town": "Total" if m == 3 else f"M{m + 1}",
                    "work": "Total" if p == 5 else f"P{p + 1}",
                    "count": sum(count[i][j] for i, j in chosen),
                    "value": float(sum(value[i][j] for i, j in chosen)),
                }
            )
    frame = pd.DataFrame(rows)
    frame["max1"] = np.where((frame.town == "M3") & (frame.work == "P5"), 350.0, frame.value / 9)
    frame["max2"] = np.where((frame.town == "M3") & (frame.work == "P5"), 4.0, frame.value / 9)
    single = frame["count"] == 1
    frame.loc[single, "max1"], frame.loc[single, "max2"] = frame.value[single], 0.0
    two = frame["count"] == 2
    frame.loc[two, "max1"], frame.loc[two, "max2"] = 200.0, 160.0
    by = ["town", "work"]
    frequencies = Table.from_cells(frame, by, "count", count="count", statistic="count")
    magnitudes = Table.from_cells(frame, by, "value", count="count", contributions=["max1", "max2"])
    return frequencies, magnitudes


def random_table(
    seed: int, sizes: tuple[int, ...] = (4, 3), *, whole: bool = True, deep: bool = True
) -> Table:
    """A table of sums of random records over attributes, the first with two levels if deep."""
    rng = np.random.default_rng(seed)
    records = int(rng.integers(15, 60))
    frame = pd.DataFrame(
        {f"d{k}": [f"c{c}" for c in rng.integers(0, n, records)] for k, n in enumerate(sizes)}
    )
    amount = rng.lognormal(3, 1.2, records)
    frame["amount"] = np.ceil(amount) if whole else amount
    hierarchies = {}
    for k, n in enumerate(sizes):
        leaves = [f"c{c}" for c in range(n)]
        if k == 0 and deep and n >= 4:
            half = n // 2
            pairs = [("Total", ""), ("low", "Total"), ("high", "Total")]
            pairs += [(leaf, "low" if i < half else "high") for i, leaf in enumerate(leaves)]
            hierarchies[f"d{k}"] = Hierarchy.from_pairs(pairs)
        else:
            hierarchies[f"d{k}"] = Hierarchy.flat(leaves)
    from discreet.tables.table import tabulate

    data = read(frame, hierarchies=hierarchies)
    return tabulate(data, list(hierarchies), "amount")


def instance(folder: Path, name: str) -> Table:
    """One of the published instances, with its primaries, levels and costs."""
    place = folder / "tables" / name
    own = ["value", "freq", "max1", "max2", "primary", "lpl", "upl", "cost"]
    frame = pd.read_csv(place / "cells.csv", dtype=str, keep_default_na=False)
    by = [column for column in frame.columns if column not in own]
    frame[own] = frame[own].astype(float)
    hierarchies = {}
    for attribute in by:
        pairs = pd.read_csv(place / f"hier_{attribute}.csv", dtype=str, keep_default_na=False)
        hierarchies[attribute] = Hierarchy.from_pairs(
            list(pairs.iloc[:, :2].itertuples(index=False, name=None))
        )
    return Table.from_cells(
        frame,
        by,
        "value",
        count="freq",
        hierarchies=hierarchies,
        contributions=["max1", "max2"],
        primary="primary",
        lower="lpl",
        upper="upl",
        cost="cost",
    )


def dense_table(
    seed: int, shape: tuple[tuple[int, ...], ...], *, mean: float = 20.0, filled: float = 1.0
) -> Table:
    """A cube with every total: one tuple per attribute says how codes branch, level by level."""
    rng = np.random.default_rng(seed)
    inner = rng.poisson(rng.lognormal(np.log(mean), 1, [int(np.prod(tree)) for tree in shape]))
    values = np.where(rng.random(inner.shape) < filled, inner, 0).astype(np.float64)
    hierarchies = {}
    for axis, tree in enumerate(shape):
        pairs, level, members = [("Total", "")], ["Total"], []
        for width in tree:
            above, level = level, [f"{code}.{i}" for code in level for i in range(width)]
            pairs += list(zip(level, np.repeat(above, width).tolist(), strict=True))
        for code, _ in pairs:
            inside = [
                code == "Total" or leaf == code or leaf.startswith(f"{code}.") for leaf in level
            ]
            members.append(inside)
        hierarchies[f"d{axis}"] = Hierarchy.from_pairs(pairs)
        values = np.moveaxis(
            np.tensordot(np.array(members, dtype=float), values, (1, axis)), 0, axis
        )
    codes = [hierarchies[name].codes for name in hierarchies]
    frame = pd.DataFrame(
        [list(row) for row in itertools.product(*codes)], columns=list(hierarchies)
    )
    frame["value"] = values.ravel()
    return Table.from_cells(
        frame, list(hierarchies), "value", hierarchies=hierarchies, statistic="count"
    )
