"""From measurements to tables: the best linear estimate, and the whole non-negative one.

Nothing here sees the truth: everything is made from `Measurements`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from discreet.dp.hierarchical.basis import Basis, Query
from discreet.dp.hierarchical.measurement import Measurements
from discreet.dp.hierarchical.nonnegative import fill_margins, project, simplex
from discreet.dp.hierarchical.rounding import round_blocks
from discreet.dp.hierarchical.tree import Fit, Floats, Gathered, Ints, fit, gather
from discreet.errors import EngineError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness

__all__ = ["Passes", "gathered_from", "linear_estimate", "whole_estimate"]

Passes = Literal["totals-first", "one"]
#: A marginal, and what it must be for each node.
Fixed = tuple[Query, Floats]
#: Cells of the children that are solved together.
_BLOCK = 400_000


def gathered_from(measured: Measurements) -> Gathered:
    """Return what is known of each node from its own measurements and those below it."""
    basis, levels = measured.basis, range(measured.spine.depth)
    return gather(
        measured.spine,
        [measured.weighted(level) for level in levels],
        [measured.precisions(level) for level in levels],
        {
            level: (basis.seen(query), basis.coordinates(answers.astype(np.float64), query))
            for level, (query, answers) in measured.exact.items()
        },
    )


def linear_estimate(measured: Measurements) -> Fit:
    """Return the best linear unbiased estimate, consistent, signed and real, with its variances."""
    return fit(gathered_from(measured))


def _own(measured: Measurements, level: int) -> tuple[Floats, Floats]:
    """Return the estimate of a level from its own measurements alone, and its precisions."""
    precisions = measured.precisions(level)[None, :]
    seen = precisions > 0
    found = measured.weighted(level) * np.where(seen, 1 / np.where(seen, precisions, 1.0), 0.0)
    return found, precisions


def _below(measured: Measurements, known: Gathered | None, level: int) -> tuple[Floats, Floats]:
    """Return estimates and precisions of a level: gathered from below, or its own."""
    if known is None:
        return _own(measured, level)
    variance = known.variance[level]
    exact = variance == 0
    return known.estimate[level], np.where(exact, 1.0, 1 / np.where(exact, 1.0, variance))


def _blocks(starts: Ints, cells: int) -> Iterator[tuple[int, int]]:
    """Give ranges of parents whose children have about so many cells together."""
    first = 0
    while first < len(starts) - 1:
        most = starts[first] + max(_BLOCK // cells, 1)
        last = max(int(np.searchsorted(starts, most, side="right")) - 1, first + 1)
        yield first, last
        first = last


def whole_estimate(
    measured: Measurements,
    known: Gathered | None,
    *,
    passes: Passes = "totals-first",
    rng: Randomness,
    progress: Progress = silent,
) -> Iterator[Ints]:
    """Give each level's whole, non-negative histograms from the root down, every one a sum of its parts.

    `known` is what was gathered from below; None uses each level's own measurements alone.
    """
    spine, basis, possible = measured.spine, measured.basis, measured.possible
    above = _root(measured, known, passes, rng)
    yield above
    for level in range(1, spine.depth):
        estimate, precisions = _below(measured, known, level)
        precisions = np.broadcast_to(precisions, estimate.shape)
        starts = spine.starts[level - 1]
        done = np.empty((spine.sizes[level], basis.cells), dtype=np.int64)
        for first, last in _blocks(starts, basis.cells):
            progress(f"level {level}", int(starts[first]), spine.sizes[level])
            part = slice(int(starts[first]), int(starts[last]))
            begin = starts[first : last + 1] - starts[first]
            fixed = _fixed(
                measured, level, estimate[part, 0], precisions[part, 0], begin,
                above[first:last], part, passes, rng,
            )  # fmt: skip
            totals = above[first:last].astype(np.float64)
            cells = project(
                basis, estimate[part], precisions[part], begin, totals, fixed=fixed,
                possible=possible,
            )  # fmt: skip
            done[part] = _rounded(basis, cells, begin, totals, fixed, rng)
            _require_margins(basis, done[part], begin, above[first:last], fixed)
        above = done
        yield above


def _root(measured: Measurements, known: Gathered | None, passes: Passes, rng: Randomness) -> Ints:
    basis, possible = measured.basis, measured.possible
    estimate, precisions = _below(measured, known, 0)
    fixed = _published(measured, 0)
    if fixed is None and passes == "totals-first":
        total = _drawn(np.maximum(estimate[:, 0] * np.sqrt(basis.cells), 0.0), rng)
        fixed = (), total[:, None]
    if fixed is not None and possible is not None and not possible.any():
        fixed = fixed[0], np.zeros_like(fixed[1])
    cells = project(
        basis, estimate, precisions, np.array([0, 1]), None, fixed=fixed, possible=possible
    )
    if fixed is None:
        fixed = (), _drawn(cells.sum(axis=1), rng)[:, None]
    # The root is one row; turned, the cells of each fixed sum are one column.
    query, sums = fixed
    places = np.flatnonzero(possible) if possible is not None else np.arange(basis.cells)
    groups = basis.groups(query)[places]
    places = places[np.argsort(groups, kind="stable")]
    there, starts = np.unique(np.sort(groups), return_index=True)
    found = np.zeros((1, basis.cells), dtype=np.int64)
    if len(places):
        starts = np.append(starts, len(places)).astype(np.int64)
        column = fill_margins(cells[0, places][:, None], starts, sums[0, there][:, None])
        found[0, places] = round_blocks(column, starts, rng.uniform(len(places)))[:, 0]
    _require_margins(basis, found, np.array([0, 1]), found, fixed)
    return found


def _published(measured: Measurements, level: int) -> Fixed | None:
    """Return the sums of a level that are known exactly."""
    known = measured.known(level)
    return None if known is None else (known[0], known[1].astype(np.float64))


def _drawn(values: Floats, rng: Randomness) -> Floats:
    """Return numbers rounded up or down by lot, right on average."""
    floor = np.floor(values)
    return np.asarray(floor + (rng.uniform(len(values)) < values - floor))


def _fixed(
    measured: Measurements,
    level: int,
    estimate: Floats,
    precisions: Floats,
    begin: Ints,
    above: Ints,
    part: slice,
    passes: Passes,
    rng: Randomness,
) -> Fixed | None:
    """Return the sums of each child that are settled before its cells."""
    known = _published(measured, level)
    if known is not None:
        return known[0], known[1][part]
    if passes == "one":
        return None
    side = np.sqrt(measured.basis.cells)
    totals = above.sum(axis=1).astype(np.float64)
    weight = np.where(precisions > 0, precisions, 1.0)
    found = simplex(estimate * side, weight, begin, totals)
    column = fill_margins(found[:, None], begin, totals[:, None])
    rounded = round_blocks(column, begin, rng.uniform(len(column)))
    return (), rounded.astype(np.float64)


def _rounded(
    basis: Basis, cells: Floats, begin: Ints, totals: Floats, fixed: Fixed | None, rng: Randomness
) -> Ints:
    """Return whole cells with the sums of parents, and of each child where they are fixed.

    Cells of different fixed sums have no sum in common: each is a block of its own.
    """
    if fixed is None:
        exact = fill_margins(cells, begin, totals)
        return round_blocks(exact, begin, rng.uniform(exact.size))
    query, sums = fixed
    children, width = sums.shape
    order = np.argsort(basis.groups(query), kind="stable")

    def stacked(rows: Floats) -> Floats:
        apart = rows[:, order].reshape(len(rows), width, -1).transpose(1, 0, 2)
        return np.ascontiguousarray(apart).reshape(width * len(rows), -1)

    starts = (np.arange(width)[:, None] * children + begin[None, :-1]).reshape(-1)
    starts = np.append(starts, width * children).astype(np.int64)
    exact = fill_margins(stacked(cells), starts, stacked(totals), sums.T.reshape(-1))
    rounded = round_blocks(exact, starts, rng.uniform(exact.size))
    found = np.empty(cells.shape, dtype=np.int64)
    apart = rounded.reshape(width, children, -1).transpose(1, 0, 2)
    found[:, order] = apart.reshape(children, -1)
    return found


def _require_margins(
    basis: Basis, cells: Ints, begin: Ints, above: Ints, fixed: Fixed | None
) -> None:
    """Stop where a total is not the sum of its parts: nothing inconsistent ever leaves."""
    wrong = (np.add.reduceat(cells, begin[:-1], axis=0) != above).any() or (cells < 0).any()
    if fixed is not None:
        wrong = wrong or (basis.answers(cells, fixed[0]) != fixed[1]).any()
    if wrong:
        raise EngineError("rounding did not keep the totals", code="rounding-failed")
