"""Linear equations solved on shares, in fixed point: positive definite, with pivots in (0, 1].

Gauss's elimination. Reciprocals are found by Newton's iteration from 1, which converges for every
pivot between 0 and 1, slowly for small ones; how small the least may be is fixed beforehand.
"""

from __future__ import annotations

import numpy as np

from discreet.protocols.arithmetic.comparison import negative
from discreet.protocols.arithmetic.node import Node
from discreet.protocols.arithmetic.shares import BitShares, Shares

__all__ = ["BITS", "LEAST_PIVOT", "reciprocal", "solve", "times"]

#: Binary digits after the point. Products have twice as many, and are wrong with a chance of 2^-29.
BITS = 17
#: Where a pivot is below this, the result says so.
LEAST_PIVOT = 1 / 32
_STEPS = 9  # (1 - 1/32)^(2^9) is below 2^-23


def times(node: Node, x: Shares, y: Shares) -> Shares:
    """Return products of numbers in fixed point."""
    return node.truncate(node.multiply(x, y, "product"), BITS)


def reciprocal(node: Node, x: Shares) -> Shares:
    """Return 1/x of numbers between `LEAST_PIVOT` and 1 in fixed point."""
    two = node.constant(np.full(x.own.shape, 2 << BITS))
    found = two - x  # one step from 1
    for _ in range(_STEPS - 1):
        found = times(node, found, two - times(node, x, found))
    return found


def solve(node: Node, matrix: Shares, right: Shares) -> tuple[Shares, BitShares]:
    """Return X with A X = B, and a secret bit: whether some pivot was too small to trust it."""
    size = len(matrix)
    whole = Shares(
        np.concatenate([matrix.own, right.own], axis=1),
        np.concatenate([matrix.next, right.next], axis=1),
    )
    rows = [whole[place] for place in range(size)]
    pivots = []
    for place in range(size):
        pivot = rows[place][place : place + 1]
        pivots.append(pivot)
        rows[place] = times(node, rows[place], reciprocal(node, pivot))
        others = [one for one in range(size) if one != place]
        if not others:
            continue
        factors = Shares(
            np.stack([rows[one].own[place] for one in others])[:, None],
            np.stack([rows[one].next[place] for one in others])[:, None],
        )
        taken = times(node, factors, rows[place].reshape(1, -1))
        for n, one in enumerate(others):
            rows[one] = rows[one] - taken[n]
    found = Shares(
        np.stack([row.own[size:] for row in rows]), np.stack([row.next[size:] for row in rows])
    )
    least = node.constant(np.full(size, int(LEAST_PIVOT * 2**BITS)))
    small = negative(
        node,
        Shares(
            np.concatenate([one.own for one in pivots]),
            np.concatenate([one.next for one in pivots]),
        )
        - least,
    )
    return found, small
