"""What the protocols for clusters share: Lloyd's steps in the clear, and the nearest centre on shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import RefusedError
from discreet.protocols.arithmetic.comparison import less, numbers
from discreet.protocols.arithmetic.node import Node
from discreet.protocols.arithmetic.shares import Shares, stack
from discreet.protocols.joint.seat import Seat

__all__ = ["even_start", "known", "moved", "nearest_of", "same_rows", "squares"]

Floats = npt.NDArray[np.float64]


def even_start(k: int, bounds: Sequence[float]) -> Floats:
    """Return the centres to begin with: evenly between 0 and the bounds, known to all."""
    parts = (np.arange(k) + 0.5) / k
    return np.asarray(parts[:, None] * np.array(bounds)[None, :])


def same_rows(seat: Seat) -> int:
    """Return the number of records, which all owners must agree on."""
    if seat.is_owner:
        assert seat.records is not None
        for peer in seat.cast.everybody:
            if peer != seat.name:
                body = len(seat.records).to_bytes(8, "little")
                seat.wire.send(peer, "records", body)
    found = {
        len(seat.records)  # type: ignore[arg-type]  # an owner has them
        if owner == seat.name
        else int.from_bytes(seat.wire.receive(owner, "records", size=8), "little")
        for owner in seat.cast.owners
    }
    if len(found) > 1:
        raise RefusedError(
            "the owners hold different numbers of records",
            code="not-aligned",
            hint="align the records of the owners first",
        )
    return found.pop()


def squares(records: Floats, centres: Floats) -> Floats:
    """Return the squared distance of each record to each centre."""
    return np.asarray(((records[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2))


def moved(records: Floats, nearest: npt.NDArray[np.int64], centres: Floats) -> Floats:
    """Return the means of the clusters; an empty one stays where it is."""
    return np.array(
        [
            records[nearest == place].mean(axis=0) if (nearest == place).any() else centre
            for place, centre in enumerate(centres)
        ]
    )


def known(centres: Floats, sizes: npt.NDArray[Any]) -> Floats:
    """Return the centres of clusters that have records; that of an empty one is a mean of before.

    The records that it was of are now elsewhere, and nothing judged how few they were.
    """
    return np.where(np.asarray(sizes)[:, None] > 0, centres, np.nan)


def nearest_of(node: Node, values: Shares) -> Shares:
    """Return for each column which row is the smallest: one there, zero elsewhere.

    Rows are compared in turn with the best so far, so the first of equal ones is kept. A row is the
    smallest where it beat all before it and none after it beat it.
    """
    best, beats = values[0], []
    for row in range(1, len(values)):
        nearer = numbers(node, less(node, values[row], best))
        if row < len(values) - 1:
            best = best + node.multiply(nearer, values[row] - best, "choose")
        beats.append(nearer)
    left = node.constant(np.ones(values.own.shape[1:], dtype=np.int64))
    chosen = []
    for nearer in reversed(beats):
        chosen.append(node.multiply(nearer, left, "choose"))
        left = left - chosen[-1]
    return stack([left, *reversed(chosen)])
