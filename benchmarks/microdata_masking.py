"""Masking, risk and linkage: CPU seconds beside the peers' figures of the specification.

    python benchmarks/microdata_masking.py            small sizes, a minute
    python benchmarks/microdata_masking.py --full     1M rows, 100k × 100k linkage, 6 s searches

Peers (one core): sdcMicro MDAV on 100k × 4 rows 67 s (k=3); PRAM 2.6 s and rank swapping 17 s
(3 columns) at 100k rows; SUDA2 0.19 s and individual risk 0.146 s at 100k rows and 5 keys.
Times are of the second call in the process, so compilation is not in them.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

import discreet as dc
from discreet.microdata.masking.microaggregation import partition
from discreet.microdata.pair import Pair
from discreet.microdata.risks.individual_risk import IndividualRisk
from discreet.microdata.risks.suda2 import SUDA2

DATA = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[2] / "shared" / "data"))
PUBLISHED = {
    ("census", 3): (5.6922, 5.2355, 4.8086),
    ("census", 5): (9.0884, 8.1671, 7.4614),
    ("census", 10): (14.1559, 12.3100, 11.7705),
    ("tarragona", 3): (16.9326, 14.8846, 14.6337),
    ("tarragona", 5): (22.4619, 20.9159, 20.4948),
    ("tarragona", 10): (33.1929, 30.8232, 30.4604),
}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def show(name: str, seconds: float, peer: float | None = None) -> None:
    ratio = "" if peer is None else f"   peer {peer:8.3f} s   ratio {seconds / peer:6.3f}"
    print(f"{name:52s} {seconds:8.3f} s{ratio}")


def loss(points: np.ndarray, groups: np.ndarray) -> float:
    sums = np.zeros((groups.max() + 1, points.shape[1]))
    np.add.at(sums, groups, points)
    centres = sums / np.bincount(groups)[:, None]
    whole = ((points - points.mean(axis=0)) ** 2).sum()
    return float(100 * ((points - centres[groups]) ** 2).sum() / whole)


def microaggregation(*, seconds: float) -> None:
    print("\nInformation loss, 100·SSE/SST: MDAV, with local search, with a budget")
    for (name, k), (mdav, searched, iterated) in PUBLISHED.items():
        rows = pyarrow.csv.read_csv(DATA / "casc" / f"{name}.csv")
        raw = np.stack([c.to_numpy().astype(float) for c in rows.columns], axis=1)
        points = (raw - raw.mean(axis=0)) / raw.std(axis=0, ddof=1)
        plain = loss(points, partition(points, k))
        better = loss(points, partition(points, k, search=True))
        line = f"{name:10s} k={k:2d}  {plain:8.4f} ({mdav})  {better:8.4f} (≤ {searched})"
        if seconds:
            best = loss(points, partition(points, k, search=True, seconds=seconds))
            line += f"  {best:8.4f} in {seconds:g} s ({best / iterated:.4f} × {iterated})"
        print(line)


def large(sizes: list[tuple[int, int, float | None]]) -> None:
    print("\nExact MDAV, normal × 4")
    rng = np.random.default_rng(1)
    partition(rng.normal(size=(1000, 4)), 3)
    for n, k, peer in sizes:
        points = rng.normal(size=(n, 4))
        seconds, _ = timed(lambda points=points, k=k: partition(points, k))
        show(f"MDAV {n:,} rows, k={k}", seconds, peer)


def columns(n: int) -> None:
    print(f"\nOne column of {n:,} rows")
    rng, secure = np.random.default_rng(1), dc.Randomness.secure()
    words = np.array([f"category {i}" for i in range(20)])
    rows = pa.table({"x": rng.normal(size=n), "c": words[rng.integers(0, 20, n)]})
    methods = [
        (dc.PRAM("c"), 2.6 * n / 100_000),
        (dc.RankSwapping("x", p=5), 17 / 3 * n / 100_000),
        (dc.AdditiveNoise("x"), None),
        (dc.Rounding("x", 0.1), None),
        (dc.DataSwapping("x", within="c"), None),
        (dc.Microaggregation("x", variant="univariate"), None),
    ]
    for method, peer in methods:
        method.apply(rows.slice(0, 1000), schema=None, rng=secure)
        seconds, _ = timed(lambda m=method: m.apply(rows, schema=None, rng=secure))
        show(method.name, seconds, peer)


def risks(n: int, peers: tuple[float, float]) -> None:
    keys = ["age", "workclass", "education", "marital-status", "sex"]
    names = [
        "age",
        "workclass",
        "fnlwgt",
        "education",
        "education-num",
        "marital-status",
        "occupation",
        "relationship",
        "race",
        "sex",
        "capital-gain",
        "capital-loss",
        "hours-per-week",
        "native-country",
        "income",
    ]
    rows = pyarrow.csv.read_csv(
        DATA / "adult" / "adult.data", pyarrow.csv.ReadOptions(column_names=names)
    ).select(keys)
    rng = np.random.default_rng(1)
    rows = rows.take(pa.array(rng.choice(rows.num_rows, n, replace=n > rows.num_rows)))
    print(f"\nRisk on {n:,} Adult rows, 5 keys")
    for measure, peer in zip((SUDA2(), IndividualRisk()), peers, strict=True):
        for _ in range(2):
            pair = Pair.of(rows, keys=keys, population=100 * n)
            for key in keys:
                pair.after(key)  # the peers start with the columns in memory too
            seconds, _found = timed(
                lambda m=measure, p=pair: m.measure(p, rng=dc.Randomness.secure())
            )
        show(measure.name, seconds, peer)


def harder(before: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Releases of the same people, from the easy to the hopeless."""
    _n, axes = before.shape
    found = {f"noise {a:g}": before + a * rng.normal(size=before.shape) for a in (0.1, 0.5, 1.0)}
    found["heavy-tailed noise"] = before + rng.standard_t(2, size=before.shape)
    found["rounded to whole numbers"] = np.round(before)
    found["other people altogether"] = rng.normal(size=before.shape)
    names = [f"c{j}" for j in range(axes)]
    rows = pa.table({name: before[:, j] for j, name in enumerate(names)})
    for label, method in (
        ("rank-swapped, 15 %", dc.RankSwapping(names, p=15)),
        ("microaggregated, k=10", dc.Microaggregation(names, k=10)),
    ):
        masked = method.apply(rows, schema=None, rng=dc.Randomness.secure())
        found[label] = np.stack([np.asarray(masked[name]) for name in names], axis=1)
    return found


def linkage(n: int) -> None:
    """Time the whole measure, all people looked for, by the clock too."""
    rng = np.random.default_rng(1)
    before = rng.normal(size=(n, 8))
    names = [f"c{j}" for j in range(8)]
    measure = dc.RecordLinkage("distance", targets=0)
    print(f"\nNearest-neighbour linkage {n:,} × {n:,}, 8 numbers")
    for name, after in harder(before, rng).items():
        pair = Pair.of(
            *(pa.table({c: x[:, j] for j, c in enumerate(names)}) for x in (before, after)),
            keys=names,
        )
        wall = time.perf_counter()
        seconds, found = timed(lambda p=pair: measure.measure(p, rng=dc.Randomness.secure()))
        clock = time.perf_counter() - wall
        show(f"{name}: {found.value:.2%} linked", seconds)
        print(f"{'':52s} {clock:8.3f} s by the clock", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--linkage", action="store_true", help="only the linkage, in full")
    given = parser.parse_args()
    if given.linkage:
        linkage(100_000)
        return
    full = given.full
    microaggregation(seconds=6.0 if full else 0.0)
    sizes: list[tuple[int, int, float | None]] = [(100_000, 3, 67.0), (100_000, 10, 21.0)]
    large([*sizes, (1_000_000, 3, None)] if full else sizes)
    columns(1_000_000 if full else 100_000)
    risks(10_000, (0.03, 0.017))
    if full:
        risks(100_000, (0.19, 0.146))
    linkage(100_000 if full else 10_000)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nmemory peak {peak:,.0f} MB")


if __name__ == "__main__":
    main()
