"""Random trees, query sets and budgets for the tests of consistent tables."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from discreet.dp.hierarchical.basis import Basis
from discreet.dp.hierarchical.budget import Budget, allocate
from discreet.dp.hierarchical.measurement import Measurements, measure
from discreet.dp.hierarchical.tree import Spine


def draw_spine(rng: np.random.Generator, depth: int, widest: int = 4) -> Spine:
    """Draw a tree in which every node above the last level has at least one child."""
    size, parents = 1, []
    for _ in range(depth - 1):
        counts = rng.integers(1, widest + 1, size)
        parents.append(np.repeat(np.arange(size), counts))
        size = len(parents[-1])
    return Spine(tuple(parents))


def draw_shares(
    rng: np.random.Generator, basis: Basis, depth: int, *, gaps: bool = True
) -> list[dict[tuple[int, ...], float]]:
    """Draw queries and shares of every level; some levels are not measured where there may be gaps."""
    attributes = range(len(basis.sizes))
    every = [
        query
        for size in range(len(basis.sizes) + 1)
        for query in itertools.combinations(attributes, size)
    ]
    detailed = tuple(attributes)
    shares: list[dict[tuple[int, ...], float]] = []
    for level in range(depth):
        last = level == depth - 1
        if gaps and not last and rng.random() < 0.3:
            shares.append({})
            continue
        chosen = {q for q in every if rng.random() < 0.5} | ({detailed} if last else set())
        shares.append({query: float(rng.uniform(0.1, 1)) for query in sorted(chosen)})
    total = sum(sum(level.values()) for level in shares)
    return [{query: share / total for query, share in level.items()} for level in shares]


def draw_leaves(rng: np.random.Generator, spine: Spine, cells: int, *, mean: float = 2.0) -> Any:
    """Draw counts of which most are empty."""
    size = (spine.sizes[-1], cells)
    return rng.poisson(rng.exponential(mean, size)) * (rng.random(size) < 0.4)


def draw_measured(
    seed: int, *, rho: float = 0.5, exact: bool = True, zeros: bool = False, gaps: bool = True
) -> tuple[Measurements, Any]:
    """Draw a small problem and measure it; return the measurements and the true leaves."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 3)))
    basis, depth = Basis(sizes), int(rng.integers(1, 5))
    spine = draw_spine(rng, depth)
    budget: Budget = allocate(rho, draw_shares(rng, basis, depth, gaps=gaps))
    possible = rng.random(basis.cells) < 0.7 if zeros else None
    leaves = draw_leaves(rng, spine, basis.cells)
    if possible is not None:
        possible[0] = True
        leaves = leaves * possible
    published: dict[int, tuple[int, ...]] = {}
    for level in range(depth):
        if exact and rng.random() < 0.3:
            # Higher levels publish all attributes that lower ones do.
            above = min(published.values(), key=len, default=tuple(range(len(sizes))))
            published[level] = tuple(a for a in above if rng.random() < 0.4)
    return measure(spine, basis, leaves, budget, exact=published, possible=possible), leaves
