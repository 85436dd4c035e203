"""What an epsilon means in words, said wherever a budget is set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from discreet.registry import Member

__all__ = ["caution", "cautions"]


def caution(epsilon: float) -> str:
    """Return a warning for an epsilon above 1, a stronger one above 10, nothing otherwise.

    >>> caution(1.0)
    ''
    >>> print(caution(2.0))
    epsilon = 2 is above 1: one person's data can make an outcome 7.4 times likelier, which is more than the usual promise
    >>> print(caution(12.0))
    epsilon = 12 is above 10: one person's data can make an outcome 160,000 times likelier, which protects hardly anybody
    >>> print(caution(math.inf))
    epsilon is infinite: there are outcomes that tell one person's data for certain
    """
    if math.isinf(epsilon):
        return "epsilon is infinite: there are outcomes that tell one person's data for certain"
    if not epsilon > 1:
        return ""
    bound, judged = (
        (10, "which protects hardly anybody")
        if epsilon > 10
        else (1, "which is more than the usual promise")
    )
    return (
        f"epsilon = {epsilon:g} is above {bound}: one person's data can make an outcome "
        f"{_times(epsilon)} times likelier, {judged}"
    )


def cautions(declared: Any) -> tuple[str, ...]:
    """Return the warnings on every epsilon that a member or job sets, those within it included.

    Any: members, and tuples and mappings of them.

    >>> from discreet.dp.local.one_bit_mean import OneBitMean
    >>> cautions([OneBitMean(9.0, epsilon=1.0)]), len(cautions(OneBitMean(9.0, epsilon=3.0)))
    ((), 1)
    """
    if isinstance(declared, Mapping):
        declared = tuple(declared.values())
    if isinstance(declared, list | tuple):
        return tuple(dict.fromkeys(word for item in declared for word in cautions(item)))
    if not isinstance(declared, Member):
        return ()
    settings = {item.name: getattr(declared, item.name) for item in declared.parameters()}
    epsilon = settings.pop("epsilon", None)
    own = getattr(declared, "caution", None)  # of members that set another parameter, such as ρ
    if not isinstance(own, str):
        own = caution(epsilon) if isinstance(epsilon, int | float) else ""
    named = (f"{declared.name}: {own}",) if own else ()
    return (*named, *cautions(tuple(settings.values())))


def _times(epsilon: float) -> str:
    """Return e**epsilon with two digits."""
    if epsilon > 23:
        return f"10^{epsilon / math.log(10):.0f}"
    times = math.exp(epsilon)
    digits = 1 - math.floor(math.log10(times))
    return f"{round(times, digits):,.{max(digits, 0)}f}"
