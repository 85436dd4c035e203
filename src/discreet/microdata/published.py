"""What may be told of figures that were measured with the original.

Whoever has the published file and the program can try every value that a withheld cell may have had
until the printed figures agree. A figure that one record moves at will tells its value by its
digits; a mean of parts between 0 and 1, told in wide classes, tells next to nothing about anybody.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

__all__ = ["loss_class", "rounded"]

_EDGES = (0.01, 0.05, 0.1, 0.25, 0.5)
#: Digits of a published risk.
_DIGITS = 2


def loss_class(value: float) -> str:
    """Return the class of a mean loss between 0 and 1, in words.

    >>> loss_class(0.0), loss_class(0.034), loss_class(0.8)
    ('less than 1%', '1% to 5%', 'more than 50%')
    """
    if math.isnan(value):
        return "an unknown part"
    if value < _EDGES[0]:
        return f"less than {_EDGES[0]:.0%}"
    for low, high in itertools.pairwise(_EDGES):
        if value < high:
            return f"{low:.0%} to {high:.0%}"
    return f"more than {_EDGES[-1]:.0%}"


def rounded(found: Any) -> Any:
    """Return figures with two digits behind the point; counts stay. Any: as deep as evidence goes.

    >>> rounded({"linked": 0.123456, "records": 10, "by": [0.5]})
    {'linked': 0.12, 'records': 10, 'by': [0.5]}
    """
    if isinstance(found, float):
        return round(found, _DIGITS)
    if isinstance(found, dict):
        return {name: rounded(value) for name, value in found.items()}
    return [rounded(value) for value in found] if isinstance(found, list | tuple) else found
