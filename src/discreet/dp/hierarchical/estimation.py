"""From measurements to tables: the best linear estimate, and the whole non-negative one.

Nothing here sees the truth: everything is made from `Measurements`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.dp.hierarchical.measurement import Measurements
from discreet.dp.hierarchical.nonnegative import fill_margins, project, simplex
from discreet.dp.hierarchical.rounding import round_blocks
from discreet.dp.hierarchical.tree import Fit, Floats, Gathered, Ints, fit, gather
from discreet.errors import EngineError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness

__all__ = ["Passes", "gathered_from", "linear_estimate", "whole_estimate"]

Passes = Literal["totals-first", "one"]
#: Cells of the children that are solved together.
_BLOCK = 400_000


def gathered_from(measured: Measurements) -> Gathered:
    """Return what is known of each node from its own measurements and those below it."""
    side = np.sqrt(measured.basis.cells)
    levels = range(measured.spine.depth)
    return gather(
        measured.spine,
        [measured.weighted(level) for level in levels],
        [measured.precisions(level) for level in levels],
        {level: totals / side for level, totals in measured.totals.items()},
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
            sums = _sums(
                measured, level, estimate[part, 0], precisions[part, 0], begin,
                above[first:last], part, passes, rng,
            )  # fmt: skip
            totals = above[first:last].astype(np.float64)
            cells = project(
                basis, estimate[part], precisions[part], begin, totals, sums=sums, possible=possible
            )
            cells = fill_margins(cells, begin, totals, sums)
            done[part] = round_blocks(cells, begin, rng.uniform(cells.size))
            _require_margins(done[part], begin, above[first:last], sums)
        above = done
        yield above


def _root(measured: Measurements, known: Gathered | None, passes: Passes, rng: Randomness) -> Ints:
    basis, possible = measured.basis, measured.possible
    estimate, precisions = _below(measured, known, 0)
    one = np.array([0, 1])
    sums = _published_totals(measured, 0)
    if sums is None and passes == "totals-first":
        sums = _drawn(np.maximum(estimate[:, 0] * np.sqrt(basis.cells), 0.0), rng)
    if sums is not None and possible is not None and not possible.any():
        sums = np.zeros(1)
    cells = project(basis, estimate, precisions, one, None, sums=sums, possible=possible)
    if sums is None:
        sums = _drawn(cells.sum(axis=1), rng)
    # The root is one row with a whole sum: turned, one column.
    places = np.flatnonzero(possible) if possible is not None else np.arange(basis.cells)
    column = fill_margins(cells[0, places][:, None], np.array([0, len(places)]), sums[:, None])
    found = np.zeros((1, basis.cells), dtype=np.int64)
    rounded = round_blocks(column, np.array([0, len(places)]), rng.uniform(len(places)))
    found[0, places] = rounded[:, 0]
    _require_margins(found.T, np.array([0, basis.cells]), sums[:, None].astype(np.int64), None)
    return found


def _published_totals(measured: Measurements, level: int) -> Floats | None:
    """Return the totals of a level that are known exactly, from its own or those of a level below."""
    exact = [number for number in measured.totals if number >= level]
    if not exact:
        return None
    totals = measured.totals[min(exact)]
    for number in range(min(exact), level, -1):
        totals = np.asarray(measured.spine.add_up(totals, number))
    return totals.astype(np.float64)


def _drawn(values: Floats, rng: Randomness) -> Floats:
    """Return numbers rounded up or down by lot, right on average."""
    floor = np.floor(values)
    return np.asarray(floor + (rng.uniform(len(values)) < values - floor))


def _sums(
    measured: Measurements,
    level: int,
    estimate: Floats,
    precisions: Floats,
    begin: Ints,
    above: Ints,
    part: slice,
    passes: Passes,
    rng: Randomness,
) -> Floats | None:
    """Return the total of each child where it is settled before its cells."""
    known = _published_totals(measured, level)
    if known is not None:
        return known[part]
    if passes == "one":
        return None
    side = np.sqrt(measured.basis.cells)
    totals = above.sum(axis=1).astype(np.float64)
    weight = np.where(precisions > 0, precisions, 1.0)
    found = simplex(estimate * side, weight, begin, totals)
    column = fill_margins(found[:, None], begin, totals[:, None])
    rounded = round_blocks(column, begin, rng.uniform(len(column)))
    return rounded[:, 0].astype(np.float64)


def _require_margins(
    cells: npt.NDArray[np.int64], begin: Ints, above: Ints, sums: Floats | None
) -> None:
    """Stop where a total is not the sum of its parts: nothing inconsistent ever leaves."""
    wrong = (np.add.reduceat(cells, begin[:-1], axis=0) != above).any() or (cells < 0).any()
    if sums is not None:
        wrong = wrong or (cells.sum(axis=1) != sums).any()
    if wrong:
        raise EngineError("rounding did not keep the totals", code="rounding-failed")
