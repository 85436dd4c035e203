"""A statistical test of differential privacy: can some set of outputs be too likely under one input?

Half of the draws choose the set, where one input looks likelier than the bound allows; the other half
test it, so that the choice does not bias the test. A mechanism that keeps its promise fails once in a
billion runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable

#: Standard errors that a fair draw stays within, but for once in a billion times.
SURE = 6.1


def excess(
    one: Iterable[Hashable], two: Iterable[Hashable], epsilon: float, delta: float = 0.0
) -> float:
    """Return by how many standard errors P(S | one) exceeds e^ε P(S | two) + δ on the worst set S."""
    first, second = list(one), list(two)
    half = len(first) // 2
    choosing = Counter(first[:half]), Counter(second[:half])
    growth = math.exp(epsilon)
    chosen = {x for x, n in choosing[0].items() if n > growth * choosing[1][x]}
    p, q = (sum(x in chosen for x in drawn[half:]) / half for drawn in (first, second))
    # One more draw on either side keeps the error of an empty set from being zero.
    spread = math.sqrt((p * (1 - p) + growth**2 * q * (1 - q)) / half) + growth / half
    return (p - growth * q - delta) / spread
