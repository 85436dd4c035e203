"""Consistent tables over a tree of places: errors against baselines, and time and memory by size.

python benchmarks/top_down.py error [seeds]
python benchmarks/top_down.py size LEAVES SEX AGE
python benchmarks/top_down.py census [blocks]
"""

from __future__ import annotations

import itertools
import resource
import sys
import time
from typing import Any

import numpy as np

from discreet.dp.accountant import Accountant
from discreet.dp.hierarchical.basis import Basis
from discreet.dp.hierarchical.budget import allocate, level_shares
from discreet.dp.hierarchical.estimation import gathered_from, linear_estimate, whole_estimate
from discreet.dp.hierarchical.measurement import Measurements, measure
from discreet.dp.hierarchical.tree import Spine
from discreet.dp.noise import add_gaussian
from discreet.randomness import Randomness

QUERIES = {(): 0.3, (0,): 0.15, (1,): 0.15, (0, 1): 0.4}


def population(seed: int, sizes: tuple[int, ...], shape: tuple[int, int], people: float) -> Any:
    """Draw nested places of unequal size, and people by sex and age in the smallest."""
    rng = np.random.default_rng(seed)
    parents, rate = [], np.ones(1)
    for above, below in itertools.pairwise(sizes):
        extra = rng.multinomial(below - above, rng.dirichlet(np.full(above, 5.0)))
        parents.append(np.repeat(np.arange(above), extra + 1))
        rate = rate[parents[-1]] * rng.gamma(1.0, 1.0, below)
    basis = Basis(shape)
    # Ages differ between places, and many places are small.
    cells = rng.gamma(0.35, 1.0, (sizes[-1], basis.cells)) * rate[:, None]
    return Spine(tuple(parents)), basis, rng.poisson(cells * people / cells.sum())


def levels_of(spine: Spine, leaves: Any) -> list[Any]:
    found = [leaves]
    for number in range(spine.depth - 1, 0, -1):
        found.insert(0, np.asarray(spine.add_up(found[0], number)))
    return found


def errors(found: list[Any], truth: list[Any]) -> list[tuple[float, float]]:
    """Return per level the mean absolute error of totals and of cells."""
    return [
        (float(np.abs((a - b).sum(axis=1)).mean()), float(np.abs(a - b).mean()))
        for a, b in zip(found, truth, strict=True)
    ]


def whole(measured: Measurements, *, gathers: bool = True, passes: Any = "totals-first") -> Any:
    known = gathered_from(measured) if gathers else None
    return list(whole_estimate(measured, known, passes=passes, rng=Randomness.secure()))


def error(seeds: int) -> None:
    """Print errors of every form at ρ = 0.5 on populations like that of the specification."""
    sizes, rho = (1, 10, 200, 3_000, 30_000), 0.5
    splits = {"even": level_shares("even", 5), "leaf-heavy": (0.05, 0.1, 0.15, 0.3, 0.4)}
    every: dict[str, list[Any]] = {}
    for seed in range(seeds):
        spine, basis, leaves = population(seed, sizes, (2, 8), 584_000)
        truth = levels_of(spine, leaves)
        every.setdefault("people", []).append(leaves.sum())
        every.setdefault("empty", []).append((leaves == 0).mean())
        for name, split in splits.items():
            shares = [{query: share * part for query, part in QUERIES.items()} for share in split]
            measured = measure(spine, basis, leaves, allocate(rho, shares))
            forms = {
                f"{name}, own": whole(measured, gathers=False),
                f"{name}, gathered": whole(measured),
                f"{name}, gathered, one pass": whole(measured, passes="one"),
                f"{name}, linear": [basis.backward(x) for x in linear_estimate(measured).estimate],
            }
            for form, found in forms.items():
                every.setdefault(form, []).append(errors(found, truth))
        noisy = add_gaussian(leaves, scale=allocate(rho, [{(): 1.0}]).measures[0].scale)
        every.setdefault("bottom-up, signed", []).append(errors(levels_of(spine, noisy), truth))
        cut = levels_of(spine, np.maximum(noisy, 0))
        every.setdefault("bottom-up, cut at zero", []).append(errors(cut, truth))
        every.setdefault("cut: total off by", []).append(
            abs(cut[0].sum() - leaves.sum()) / leaves.sum()
        )
        print(f"seed {seed} done", flush=True)
    for name, found in every.items():
        array = np.array(found, dtype=float)
        mean, se = array.mean(axis=0), array.std(axis=0, ddof=1) / np.sqrt(max(len(found), 1))
        if mean.ndim == 0:
            print(f"{name:34s} {mean:.4g}")
        else:
            line = "  ".join(
                f"{t:8.3f}±{e:.3f} / {c:7.4f}" for (t, c), (e, _) in zip(mean, se, strict=True)
            )
            print(f"{name:34s} {line}")


def size(leaves_number: int, shape: tuple[int, int], rho: float = 1.0) -> None:
    """Print CPU seconds of noise and of the rest, and the memory peak."""
    inner = [1, *(max(round(leaves_number ** (k / 4)), 2) for k in (1, 2, 3)), leaves_number]
    spine, basis, leaves = population(1, tuple(inner), shape, 5.0 * leaves_number)
    split = level_shares("even", 5)
    shares = [{query: share * part for query, part in QUERIES.items()} for share in split]
    budget = allocate(rho, shares)
    start, clock = time.process_time(), time.perf_counter()
    measured = measure(spine, basis, leaves, budget)
    noise, noise_wall = time.process_time() - start, time.perf_counter() - clock
    start = time.process_time()
    known = gathered_from(measured)
    least_squares = time.process_time() - start
    start = time.process_time()
    total = sum(
        int(level.sum()) for level in whole_estimate(measured, known, rng=Randomness.secure())
    )
    rest = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    draws = sum(len(a) * a.shape[1] for level in measured.noisy for a in level.values())
    print(
        f"{leaves_number:,} leaves x {basis.cells} cells: {draws:,} draws in {noise:.1f} CPU s "
        f"({noise_wall:.1f} s), least squares {least_squares:.1f}, projection and rounding "
        f"{rest:.1f} CPU s, peak {peak:.2f} GB, {total // spine.depth:,} people"
    )


def census(blocks: int) -> None:
    """Run the proportions of the 2020 redistricting data on six levels with eleven queries."""
    inner = (1, 6, 60, 600, 4_000, blocks)
    spine, _, leaves = population(5, inner, (4, 7), 6.0 * blocks)
    basis = Basis((2, 2, 7))
    # Three attributes have eight marginals; the bureau's eleven queries also group codes of races.
    queries = [q for n in range(4) for q in itertools.combinations(range(3), n)]
    totals = (None, 3773 / 4097, 3126 / 4097, 1567 / 4102, 1705 / 4099, None)
    shares = []
    for share, total in zip(level_shares("census", 6), totals, strict=True):
        own = 1 / len(queries) if total is None else total
        rest = (1 - own) / (len(queries) - 1)
        shares.append({q: share * (own if q == () else rest) for q in queries})
    budget = allocate(2.56, shares)
    measured = measure(spine, basis, leaves, budget, exact=[1])
    levels = whole(measured)
    for number in range(1, spine.depth):
        assert (spine.add_up(levels[number], number) == levels[number - 1]).all()
        assert (levels[number] >= 0).all()
    states = levels_of(spine, leaves)[1].sum(axis=1)
    assert (levels[1].sum(axis=1) == states).all()
    epsilon = Accountant("zcdp", 1e-10).epsilon(budget.events())
    print(
        f"{blocks:,} blocks x {basis.cells} cells, {len(queries)} queries a level: whole, "
        f"non-negative, consistent, state totals exact; rho = {budget.rho:.4f}, "
        f"epsilon = {epsilon:.2f} at delta = 1e-10"
    )
    for found, true in zip(levels, levels_of(spine, leaves), strict=True):
        off = np.abs((found - true).sum(axis=1)).mean()
        print(
            f"  {len(found):9,} places: totals off by {off:.2f}, cells {np.abs(found - true).mean():.3f}"
        )


if __name__ == "__main__":
    what, *rest = sys.argv[1:] or ["size", "10000", "2", "4"]
    if what == "error":
        error(int(rest[0]) if rest else 5)
    elif what == "census":
        census(int(rest[0]) if rest else 100_000)
    else:
        leaves_given, *parts = map(int, rest)
        size(leaves_given, (parts[0], parts[1]))
