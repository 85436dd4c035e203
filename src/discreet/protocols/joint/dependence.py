"""Measures that follow from each other in an owner's own records."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

__all__ = ["dependences"]

Floats = npt.NDArray[np.float64]
#: A measure follows from others where they leave less than this of its variance open.
_LEFT = 1e-3


def dependences(columns: Mapping[str, Floats]) -> list[tuple[str, ...]]:
    """Return groups of columns of which one is a weighted sum of the others, nearly or exactly.

    A constant may be added: a count that is opened beside them tells it too.

    Examples
    --------
    >>> salary, bonus, age = np.random.default_rng(1).uniform(0, 9, (3, 50))
    >>> dependences({"salary": salary, "bonus": bonus, "age": age, "pay": salary + bonus + 1})
    [('salary', 'bonus', 'pay')]
    """
    names = [name for name, values in columns.items() if len(values) and np.ptp(values) > 0]
    if not names:
        return []
    # Scaled first: amounts near the largest float have no square.
    scaled = [columns[name] / np.abs(columns[name]).max() for name in names]
    centred = np.stack([values - values.mean() for values in scaled])
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    related = unit @ unit.T
    found = {_support(related, place) for place in range(len(names))}
    return [tuple(names[place] for place in group) for group in sorted(found) if group]


def _support(related: Floats, place: int) -> tuple[int, ...]:
    """Return the columns from which one follows, with itself: each is needed."""
    kept = [other for other in range(len(related)) if other != place]
    if _left(related, place, kept) > _LEFT:
        return ()
    for other in list(kept):
        fewer = [one for one in kept if one != other]
        if _left(related, place, fewer) <= _LEFT:
            kept = fewer
    return tuple(sorted([place, *kept]))


def _left(related: Floats, place: int, others: list[int]) -> float:
    """Return the share of a column's variance that others leave open."""
    if not others:
        return 1.0
    inside = related[np.ix_(others, others)]
    along = related[others, place]
    return float(1.0 - along @ np.linalg.pinv(inside, rcond=1e-10) @ along)
