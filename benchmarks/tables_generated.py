"""Suppression on generated tables of the same kinds as the published instances.

Flat and nested attributes (even and uneven, with only children), two and three of them, counts and
amounts, dense and sparse. Each pattern is audited exactly; "optimal" is run where the table is
small, and the ratio of the other efforts to it is told.

python benchmarks/tables_generated.py                # small tables, compared with the optimum
python benchmarks/tables_generated.py --middle       # up to ten thousand cells, fast and balanced
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Sequence

import numpy as np
import pandas as pd

from discreet.audit.intervals import audit_table
from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Table
from discreet.errors import InfeasibleError
from discreet.tables.suppression.engine import suppress

#: Leaves per attribute and the shape of each attribute's hierarchy.
SMALL = (
    ((6, 5), "flat"),
    ((9, 8), "nested"),
    ((12, 9), "uneven"),
    ((4, 3, 3), "flat"),
    ((6, 4, 3), "nested"),
    ((14, 12), "flat"),
)
MIDDLE = (
    ((33, 41), "nested"),
    ((40, 50), "nested"),
    ((80, 14), "uneven"),
    ((10, 12, 8), "flat"),
    ((9, 8, 6), "nested"),
    ((60, 12, 6), "uneven"),
    ((16, 15, 14), "nested"),
    ((120, 70), "uneven"),
    ((100, 42), "uneven"),
    ((120, 55), "uneven"),
)


def hierarchy(letter: str, leaves: int, shape: str, draw: np.random.Generator) -> list[list[str]]:
    """Return for each leaf its line: itself, groups above, and the total."""
    codes = [f"{letter}{i:03d}" for i in range(leaves)]
    if shape == "flat" or leaves < 6:
        return [[code, "Total"] for code in codes]
    if shape == "nested":
        size = max(3, round(leaves**0.5))
        return [[code, f"{letter}g{i // size}", "Total"] for i, code in enumerate(codes)]
    # Groups of one to many leaves, some of them grouped again.
    groups = np.minimum(draw.geometric(3.0 / leaves**0.7, leaves) - 1, leaves // 3)
    lines = []
    for code, group in zip(codes, groups.tolist(), strict=True):
        above = [f"{letter}g{group}"]
        if leaves >= 12:
            above.append(f"{letter}h{group // 3}")
        lines.append([code, *above, "Total"])
    return lines


def generate(
    sizes: Sequence[int],
    shape: str = "nested",
    *,
    kind: str = "amounts",
    density: float = 0.75,
    seed: int = 0,
) -> Table:
    """Return a table of random records, sensitive by p % (amounts) or minimum frequency (counts)."""
    draw = np.random.default_rng(seed)
    names = [f"d{place + 1}" for place in range(len(sizes))]
    lines = [hierarchy("ABCDE"[place], size, shape, draw) for place, size in enumerate(sizes)]
    number = int(np.prod(sizes))
    records = np.where(
        draw.uniform(size=number) < density, np.ceil(draw.lognormal(1.5, 1.1, number)), 0
    ).astype(np.int64)
    leaf = np.repeat(np.arange(number), records)
    amount = (
        np.ceil(draw.lognormal(4.3, 1.1, len(leaf))) if kind == "amounts" else np.ones(len(leaf))
    )
    places = np.unravel_index(leaf, sizes)
    parts = []
    for levels in itertools.product(*(range(max(map(len, line))) for line in lines)):
        columns = {}
        for name, line, level, at in zip(names, lines, levels, places, strict=True):
            words = np.array([own[level] if level < len(own) else "" for own in line])
            columns[name] = words[at]
        parts.append(pd.DataFrame({**columns, "amount": amount}))
    frame = pd.concat(parts)
    frame = frame[(frame[names] != "").all(axis=1)].sort_values("amount", ascending=False)
    cells = frame.groupby(names)["amount"].agg(value="sum", freq="size", max1="max").reset_index()
    second = frame[frame.groupby(names).cumcount() == 1].rename(columns={"amount": "max2"})
    cells = cells.merge(second, on=names, how="left").fillna({"max2": 0.0})
    top = (cells[names] == "Total").all(axis=1)
    if kind == "counts":
        cells["primary"] = (cells["freq"] < 3) & ~top
        cells["level"] = 1.0
    else:
        left = cells["value"] - cells["max1"] - cells["max2"]
        cells["level"] = np.maximum(0.1 * cells["max1"] - left, 0.0)
        cells["primary"] = (cells["level"] > 0) & ~top
    pairs = {
        name: {own: above for line in some for own, above in itertools.pairwise(line)}
        for name, some in zip(names, lines, strict=True)
    }
    return Table.from_cells(
        cells,
        by=names,
        value="value",
        count="freq",
        hierarchies={
            name: Hierarchy.from_pairs([("Total", ""), *known.items()])
            for name, known in pairs.items()
        },
        contributions=["max1", "max2"],
        primary="primary",
        lower="level",
        upper="level",
    )


def measure(table: Table, effort: str, attacker: str, objective: str) -> tuple[float, float, bool]:
    """Return the cost of a pattern, CPU seconds, and whether the optimum is proven."""
    began = time.process_time()
    pattern = suppress(
        table, objective=objective, effort=effort, attacker=attacker, time_limit=None
    )
    seconds = time.process_time() - began
    again = suppress(table, objective=objective, effort=effort, attacker=attacker)
    if again.status.tolist() != pattern.status.tolist():
        raise AssertionError("two runs, two patterns")
    audit = audit_table(table, published=pattern.status, attacker=attacker, exact=True)
    if audit.unsafe:
        raise AssertionError(f"{audit.unsafe} cells are unsafe")
    return pattern.cost, seconds, pattern.optimal


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--middle", action="store_true", help="larger tables, without the optimum")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--first", type=int, default=0, help="the first seed")
    given = options.parse_args()
    efforts = ["fast", "balanced"] if given.middle else ["fast", "balanced", "optimal"]
    ratios: dict[tuple[str, str], list[float]] = {}
    for sizes, shape in MIDDLE if given.middle else SMALL:
        for seed in range(given.first, given.first + given.seeds):
            kind, density = ("amounts", "counts")[seed % 2], (0.75, 0.4, 0.95)[seed % 3]
            table = generate(sizes, shape, kind=kind, density=density, seed=seed)
            for attacker, objective in itertools.product(
                ("outsider", "contributors"), ("count", "value")
            ):
                words = [
                    f"{sizes} {shape} {kind} {density} {len(table)} cells",
                    attacker,
                    objective,
                ]
                try:
                    found = [measure(table, e, attacker, objective) for e in efforts]
                except InfeasibleError:
                    print(*words, "no safe pattern", flush=True)
                    continue
                for effort, (cost, _, _) in zip(efforts, found, strict=True):
                    base = found[-1][0]
                    ratios.setdefault((attacker, effort), []).append(cost / base if base else 1.0)
                words += [
                    f"{e} {c:,.0f} ({s:.2f} s)" for e, (c, s, _) in zip(efforts, found, strict=True)
                ]
                words.append("" if given.middle or found[-1][2] else "NOT PROVEN")
                words.append("BALANCED DEARER" if found[1][0] > found[0][0] * (1 + 1e-9) else "")
                print(*words, flush=True)
    for (attacker, effort), some in sorted(ratios.items()):
        q = np.quantile(some, [0.5, 0.9, 1.0]).round(3).tolist()
        print(
            f"{attacker} {effort}: cost against {efforts[-1]}, middle {q[0]}, nine of ten {q[1]}, most {q[2]}"
        )


if __name__ == "__main__":
    main()
