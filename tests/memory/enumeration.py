"""Every database that agrees with what was told: values of a few people, counted out one by one.

Nothing of the library is used here. Values are whole numbers from nothing to `most`; what every one of
the databases has in common is what an attacker knows for sure.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int16]

#: More databases than this are not counted out.
MANY = 300_000


def databases(sets: Sequence[set[int]], sums: Sequence[float], size: int, most: int) -> Ints | None:
    """Return all whole values of the records that give the sums, one database a row.

    None where they are too many to count out; records that are in no set are left at nothing.
    """
    inside = np.zeros((len(sets), size), dtype=bool)
    for row, one in enumerate(sets):
        inside[row, sorted(one)] = True
    totals = np.array(sums).round().astype(np.int16)
    # Where each sum must be reached: at the last of its records, in an order that closes sets early.
    order = sorted(range(size), key=lambda n: tuple(np.flatnonzero(inside[:, n])) or (len(sets),))
    last = [max((order.index(n) for n in one), default=-1) for one in sets]
    found = np.zeros((1, size), dtype=np.int16)
    partial = np.zeros((1, len(sets)), dtype=np.int16)
    for step, record in enumerate(order):
        rows = inside[:, record]
        if not rows.any():
            continue
        values = np.arange(most + 1, dtype=np.int16)
        found = np.repeat(found, len(values), axis=0)
        partial = np.repeat(partial, len(values), axis=0)
        tried = np.tile(values, len(found) // len(values))
        found[:, record] = tried
        partial[:, rows] += tried[:, None]
        keep = (partial <= totals).all(axis=1)
        ended = [row for row, end in enumerate(last) if end == step]
        keep &= (partial[:, ended] == totals[ended]).all(axis=1)
        found, partial = found[keep], partial[keep]
        if len(found) > MANY:
            return None
    return found


def determined(
    found: Ints,
    truth: Sequence[int],
    owners: Sequence[int],
    touched: set[int],
    fewer: int,
    *,
    known: int | None = None,
) -> list[tuple[int, ...]]:
    """Return groups of fewer records whose sum is the same in every database.

    `owners` says whose each record is. With `known`, somebody who knows his own values attacks:
    groups are then of others.
    """
    own = [n for n in touched if owners[n] == known]
    if own:
        found = found[(found[:, own] == np.array(truth, dtype=np.int16)[own]).all(axis=1)]
    records = [n for n in sorted(touched) if owners[n] != known]
    told = []
    for size in range(1, fewer):
        for group in itertools.combinations(records, size):
            sums = found[:, group].sum(axis=1)
            if (sums == sums[0]).all():
                told.append(group)
    return told
