"""Mondrian: halving the records at medians, as long as both halves keep the models.

All parts of one depth are halved together with array operations, so the number of steps grows
with the depth of the halving, not with the number of parts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.microdata.classes import Cells, Classes, Integers, Numbers
from discreet.microdata.models import Model
from discreet.progress import Progress, silent

__all__ = ["Rows", "partition"]


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Rows to be halved: places of their values, how many records each is, and what they hide.

    `width` holds for each attribute and place its position on a scale of 0 to 1, so that the
    spread of numbers and of categories can be compared.
    """

    places: Integers
    width: Sequence[Numbers]
    count: Integers
    cells: dict[str, Cells]


def partition(
    rows: Rows,
    models: Sequence[Model],
    *,
    relaxed: bool = False,
    progress: Progress = silent,
) -> Integers:
    """Return the number of the part that each row falls into.

    In the strict form rows that agree in the attribute stay together; in the relaxed form a part
    is cut exactly in the middle, wherever that is.
    """
    size, attributes = rows.places.shape
    label = np.zeros(size, dtype=np.int64)
    tried = np.zeros((1, attributes), dtype=bool)
    active = np.ones(1, dtype=bool)
    total = int(rows.count.sum())
    spread = np.stack([rows.width[j][rows.places[:, j]] for j in range(attributes)], axis=1)
    # Rows that can still be halved, those of one part side by side: halving sorts them anyway.
    inside = np.arange(size)
    while active.any():
        inside = inside[active[label[inside]]]
        progress("halving", total - int(rows.count[inside].sum()), total)
        attribute = _widest(label[inside], spread[inside], tried, active)
        active &= attribute >= 0
        inside = inside[active[label[inside]]]
        if not len(inside):
            break
        side, order = _sides(rows, label, inside, attribute, relaxed=relaxed)
        good = _good(rows, models, label, inside, side, active)
        failed = active & ~good
        tried[failed, attribute[failed]] = True
        label, tried, active = _split(label, inside, side, good, tried, active)
        inside = inside[order]
    progress("halving", total, total)
    return np.unique(label, return_inverse=True)[1].astype(np.int64)


def _widest(
    label: Integers,
    spread: Numbers,
    tried: npt.NDArray[np.bool_],
    active: npt.NDArray[np.bool_],
) -> Integers:
    """Return for each part the attribute of widest spread not tried yet; −1 where none is left."""
    width = np.full(tried.shape, -1.0)
    first = np.flatnonzero(np.concatenate((label[:1] >= 0, label[1:] != label[:-1])))
    parts = label[first]
    for j in range(spread.shape[1] if len(first) else 0):
        column = spread[:, j]
        width[parts, j] = np.maximum.reduceat(column, first) - np.minimum.reduceat(column, first)
    width[tried | (width <= 0)] = -1.0
    widest = width.argmax(axis=1)
    return np.where((width.max(axis=1) > 0) & active, widest, -1)


def _sides(
    rows: Rows, label: Integers, inside: Integers, attribute: Integers, *, relaxed: bool
) -> tuple[npt.NDArray[np.bool_], Integers]:
    """Return which of the rows go to the upper half of their part, and the rows in order of halves."""
    part = label[inside]
    value = rows.places[inside, attribute[part]]
    if relaxed:
        # Rows of one value go to either half; the other attributes decide, not the file's order.
        others = [rows.places[inside, j] for j in range(rows.places.shape[1])]
        order = np.lexsort((*others, value, part))
    else:
        # One key sorts faster than two; places and parts are small numbers.
        order = np.argsort(part * (int(value.max()) + 1) + value)
    part, value, count = part[order], value[order], rows.count[inside][order]
    starts = np.concatenate(([True], part[1:] != part[:-1]))
    first = np.flatnonzero(starts)
    number = np.cumsum(starts) - 1
    sums = np.cumsum(count)
    before = (sums[first] - count[first])[number]
    half = (np.add.reduceat(count, first) / 2)[number]
    reached = sums - before
    if relaxed:
        upper = reached > half
    else:
        # A cut lies behind the last row of a value; the one nearest the middle is taken.
        last = np.concatenate((part[1:] != part[:-1], [True]))
        ends = np.concatenate((value[1:] != value[:-1], [True])) | last
        away = np.where(ends & ~last, np.abs(reached - half), np.inf)
        nearest = np.minimum.reduceat(away, first)[number]
        places = np.where(away == nearest, np.arange(len(away)), len(away))
        cut = np.minimum.reduceat(places, first)[number]
        upper = np.arange(len(away)) > cut
    side = np.empty(len(inside), dtype=bool)
    side[order] = upper
    return side, order


def _good(
    rows: Rows,
    models: Sequence[Model],
    label: Integers,
    inside: Integers,
    side: npt.NDArray[np.bool_],
    active: npt.NDArray[np.bool_],
) -> npt.NDArray[np.bool_]:
    """Return for each part whether both halves keep every model."""
    halves = np.full(len(label), -1, dtype=np.int64)
    halves[inside] = label[inside] * 2 + side
    sizes = np.bincount(halves[inside], weights=rows.count[inside], minlength=2 * len(active))
    present = sizes > 0
    number = np.cumsum(present) - 1
    cells = {}
    for column, old in rows.cells.items():
        there = halves[old.place] >= 0
        some = old.chosen(there)
        to = np.where(halves >= 0, number[np.maximum(halves, 0)], 0)
        cells[column] = some.merged(to)
    classes = Classes.of(sizes[present].astype(np.int64), cells)
    fine = np.ones(len(classes), dtype=bool)
    for model in models:
        fine &= model.satisfied(classes)
    both = np.zeros(2 * len(active), dtype=bool)
    both[np.flatnonzero(present)] = fine
    pairs = both.reshape(-1, 2)
    found: npt.NDArray[np.bool_] = pairs[:, 0] & pairs[:, 1] & active
    return found


def _split(
    label: Integers,
    inside: Integers,
    side: npt.NDArray[np.bool_],
    good: npt.NDArray[np.bool_],
    tried: npt.NDArray[np.bool_],
    active: npt.NDArray[np.bool_],
) -> tuple[Integers, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Give the upper halves of the good parts numbers of their own."""
    new = np.full(len(good), -1, dtype=np.int64)
    new[good] = len(good) + np.arange(int(good.sum()))
    moved = inside[side & good[label[inside]]]
    label = label.copy()
    label[moved] = new[label[moved]]
    tried[good] = False
    more = int(good.sum())
    return (
        label,
        np.concatenate((tried, np.zeros((more, tried.shape[1]), dtype=bool))),
        np.concatenate((active, np.ones(more, dtype=bool))),
    )
