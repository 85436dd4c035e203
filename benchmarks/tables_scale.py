"""How time and memory of suppression grow with the table, from thousands of cells to a million.

python benchmarks/tables_scale.py                  # 10k and 30k cells
python benchmarks/tables_scale.py --cells 100000 --attacker outsider
python benchmarks/tables_scale.py --cells 10000 100000 1000000 --figure growth.svg
python benchmarks/tables_scale.py --moonshot       # 3,000 × 10 × 2 × 75 × 10, minimum frequency 3
"""

from __future__ import annotations

import argparse
import itertools
import resource
import time
from pathlib import Path

import numpy as np

from discreet.audit.certificates.corners import corners
from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Dimension, Status, Table
from discreet.tables.suppression.engine import suppress
from discreet.tables.suppression.task import Task


def tree(name: str, *branches: int) -> Dimension:
    """Return an attribute whose total splits into so many codes, each of which splits again."""
    pairs, level = [("Total", "")], ["Total"]
    for depth, width in enumerate(branches):
        parts = [f"{name}{depth}.{number}" for number in range(len(level) * width)]
        pairs += [(part, level[number // width]) for number, part in enumerate(parts)]
        level = parts
    return Dimension.of(name, Hierarchy.from_pairs(pairs))


def magnitudes(dimensions: list[Dimension], records: int, seed: int = 1) -> Table:
    """Return the table of skewed amounts of records spread unevenly over the leaves."""
    draw = np.random.default_rng(seed)
    leaves = []
    for dimension in dimensions:
        codes = np.flatnonzero(dimension.is_leaf)
        weight = 1.0 / np.arange(1, len(codes) + 1) ** 0.7
        draw.shuffle(weight)
        leaves.append(draw.choice(codes, size=records, p=weight / weight.sum()))
    amount = np.ceil(draw.lognormal(4.0, 1.2, records))
    return cube(dimensions, np.stack(leaves, axis=1), amount)


def cube(dimensions: list[Dimension], leaves: np.ndarray, amount: np.ndarray) -> Table:
    """Add records up to every total, without ever forming empty cells."""
    sizes = [len(dimension.codes) for dimension in dimensions]
    ancestors = []
    for dimension in dimensions:
        parents = dimension.parents[0]
        chain = [np.arange(len(parents))]
        while (chain[-1] > 0).any():
            chain.append(np.where(chain[-1] > 0, parents[chain[-1]], 0))
        ancestors.append(chain)
    key = np.ravel_multi_index(tuple(leaves.T), sizes)
    order = np.lexsort((-amount, key))
    cell, start, count = np.unique(key[order], return_index=True, return_counts=True)
    ranked = amount[order]
    second = np.where(count > 1, ranked[np.minimum(start + 1, len(ranked) - 1)], 0.0)
    parts = [(cell, np.add.reduceat(ranked, start), count, ranked[start], second)]
    total = merge(parts)
    for place, chain in enumerate(ancestors):
        # One attribute after the other: from the leaves of this one to all that is above them.
        codes = np.stack(np.unravel_index(total[0], sizes), axis=1)
        pieces = [total]
        before = codes[:, place]
        for step in chain[1:]:
            at = step[codes[:, place]]
            moved = at != before
            above = codes.copy()
            above[:, place] = at
            keys = np.ravel_multi_index(tuple(above.T), sizes)
            pieces.append(tuple(part[moved] for part in (keys, *total[1:])))
            before = at
        total = merge(pieces)
    keys, value, count, largest, second = total
    levels = np.maximum(0.1 * largest - (value - largest - second), 0.0)
    rare = count < 3
    primary = rare | (levels > 0)
    levels = np.where(rare, np.maximum(levels, 0.1 * largest), levels)
    return Table(
        dimensions=tuple(dimensions),
        codes=np.stack(np.unravel_index(keys, sizes), axis=1).astype(np.int32),
        value=value,
        count=count.astype(np.int64),
        contributions=np.stack([largest, second], axis=1),
        lower=levels,
        upper=levels,
        status=np.where(primary, np.int8(Status.PRIMARY), np.int8(Status.SAFE)),
    )


def merge(pieces: list[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """Add up cells with the same key, keeping the two largest contributions."""
    key, value, count, first, second = (np.concatenate(part) for part in zip(*pieces, strict=True))
    order = np.argsort(key, kind="stable")
    key, value, count, first, second = (a[order] for a in (key, value, count, first, second))
    start = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    largest = np.maximum.reduceat(first, start)
    group = np.cumsum(np.concatenate([[False], key[1:] != key[:-1]]))
    # The largest once per group aside, the second is the largest of what remains.
    top = np.flatnonzero(first == largest[group])
    lead = top[np.unique(group[top], return_index=True)[1]]
    rest = first.copy()
    rest[lead] = second[lead]
    runner = np.maximum.reduceat(np.maximum(rest, second), start)
    return (
        key[start],
        np.add.reduceat(value, start),
        np.add.reduceat(count, start),
        largest,
        runner,
    )


def synthetic(cells: int) -> Table:
    """Return a hierarchical three-way table with about so many non-empty cells."""
    scale = max((cells / 9_500) ** (1 / 3), 0.3)
    shape = [max(2, round(width * scale**0.5)) for width in (5, 5, 4, 5, 3, 5)]
    dimensions = [
        tree("a", shape[0], shape[1]),
        tree("b", shape[2], shape[3]),
        tree("c", shape[4], shape[5]),
    ]
    return magnitudes(dimensions, records=round(cells * 3.6))


def moonshot(rows: int = 650_000) -> Table:
    """Return the table of the specification: a three-tier geography and four more attributes."""
    dimensions = [
        tree("geography", 12, 10, 25),
        tree("b", 10),
        tree("c", 2),
        tree("d", 75),
        tree("e", 10),
    ]
    draw = np.random.default_rng(3)
    leaves = [draw.choice(np.flatnonzero(d.is_leaf), size=rows) for d in dimensions]
    count = draw.geometric(0.45, size=rows)
    people = np.repeat(np.stack(leaves, axis=1), count, axis=0)
    table = cube(dimensions, people, np.ones(len(people)))
    primary = table.value < 3
    return table.replace(
        status=np.where(primary, np.int8(Status.PRIMARY), np.int8(Status.SAFE)),
        lower=np.ones(len(table)),
        upper=np.ones(len(table)),
    )


def warm() -> None:
    """Compile what is compiled once per installation."""
    table = synthetic(3_000)
    none = np.zeros(len(table), dtype=bool)
    for attacker in ("outsider", "contributors"):
        task = Task.of(table, attacker=attacker)
        corners(
            table,
            (task.target[:2], task.amount[:2]),
            (task.down, task.up),
            withheld=none,
            live=task.live,
            price=np.ones(len(table)),
            free=np.zeros(len(table)),
            knowledge=task.knowledge,
        )


def draw(points: list[tuple[int, float, float]], path: str) -> None:
    """Plot time and memory against the number of cells, both on logarithmic axes."""
    from discreet.chart import COLOURS, Axis, Series, plot

    seconds = Series("CPU seconds", [(n, time) for n, time, _ in points])
    memory = Series("peak memory in GB", [(n, peak) for n, _, peak in points], COLOURS[1])
    across, up = Axis("non-empty cells", is_log=True), Axis("seconds, GB", is_log=True)
    Path(path).write_text(plot([seconds, memory], across, up), encoding="utf-8")


def run(table: Table, attacker: str) -> tuple[int, float, float]:
    began, wall = time.process_time(), time.monotonic()
    primaries = int((table.status == Status.PRIMARY).sum())
    print(f"{len(table):>9,} cells {primaries:>8,} primaries", end=" ", flush=True)
    pattern = suppress(table, objective="count", effort="fast", attacker=attacker)
    seconds = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{pattern.secondaries:>8,} secondaries  safe {pattern.audit.safe}  "
        f"{seconds:8.1f} CPU s  {time.monotonic() - wall:8.1f} s  peak {memory:5.2f} GB",
        flush=True,
    )
    return len(table), seconds, memory


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cells", type=int, nargs="*", default=[10_000, 30_000])
    options.add_argument("--attacker", default="outsider", choices=["outsider", "contributors"])
    options.add_argument("--figure", metavar="FILE", help="plot the growth, as SVG or PNG")
    options.add_argument("--moonshot", type=int, nargs="?", const=650_000, metavar="ROWS")
    given = options.parse_args()
    if given.moonshot:
        run(moonshot(given.moonshot), given.attacker)
        return
    warm()
    points = [run(synthetic(cells), given.attacker) for cells in given.cells]
    for (less, fast, _), (more, slow, _) in itertools.pairwise(points):
        print(f"growth: n^{np.log(slow / fast) / np.log(more / less):.2f}")
    if given.figure:
        draw(points, given.figure)


if __name__ == "__main__":
    main()
