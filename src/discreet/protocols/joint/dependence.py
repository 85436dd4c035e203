"""Measures that follow from each other in an owner's own records."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Part", "dependences", "telling_part"]

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


#: Deviations beyond so many typical ones stand out: two others of typical size are a tenth of one.
_STANDS_OUT = 20
#: Rows on which a relation is fitted; all rows are compared with it.
_FITTED = 2_000
#: A relation is looked for where there are so many records for each of its factors.
_RECORDS = 4
#: Steps of reweighted least squares.
_STEPS = 40
#: Beyond so many columns a relation of three of them is not looked for.
_MOST_COLUMNS = 8


@dataclasses.dataclass(frozen=True)
class Part:
    """What few records have in one column beyond what others determine."""

    column: str
    #: The columns that determine it in most records, and their factors.
    factors: tuple[tuple[str, float], ...]

    @property
    def text(self) -> str:
        """The part as an expression.

        >>> Part("pay", (("salary", 1.02), ("overtime", 1.0))).text
        'pay less 1.02 salary less overtime'
        """
        rest = (f"{factor:.3g} {name}" if factor != 1 else name for name, factor in self.factors)
        return " less ".join([self.column, *rest])


def telling_part(columns: Mapping[str, Floats]) -> Part | None:
    """Return a part of a column that few records have: sums of the columns tell what it is.

    Most records lie on a line, or a plane, or nearly, and some stand out: of pay that is about
    1.02 times the salary, the sums of both tell who got a bonus, and how much. Where the part is a
    column itself, it is judged as such.

    Examples
    --------
    >>> salary = np.arange(2000.0, 4000.0, 50.0)
    >>> pay = np.round(1.02 * salary) + np.arange(40) % 3
    >>> telling_part({"salary": salary, "pay": pay}) is None
    True
    >>> bonus = np.where(np.arange(40) == 7, 500.0, 0.0)
    >>> telling_part({"salary": salary, "pay": pay + bonus}).text
    'pay less 1.02 salary'
    >>> telling_part({"salary": salary, "pay": pay + bonus, "bonus": bonus}) is None
    True
    """
    found = list(_parts(columns))
    # One column has it more than the other, or the other less: the first is easier to read.
    return max(found, key=lambda one: one[0] > 0)[1] if found else None


def _parts(columns: Mapping[str, Floats]) -> Iterator[tuple[float, Part]]:
    """Yield all such parts, each with the sum of what stands out."""
    names = [name for name, values in columns.items() if np.nanmax(np.abs(values), initial=0) > 0]
    for column in names:
        others = [name for name in names if name != column]
        groups: list[tuple[str, ...]] = [(one,) for one in others]
        if len(others) < _MOST_COLUMNS:
            groups += itertools.combinations(others, 2)
        if len(others) > 2:
            groups.append(tuple(others))
        for group in groups:
            found = _fitted(columns[column], [columns[name] for name in group])
            if found is None:
                continue
            rest, factors = found
            thirds = [columns[name] for name in others if name not in group]
            if not any(_explains(third, rest) for third in thirds):
                yield float(rest.sum()), Part(column, tuple(zip(group, factors, strict=True)))


def _fitted(target: Floats, others: Sequence[Floats]) -> tuple[Floats, list[float]] | None:
    """Return what others leave of a column, and their factors, where some records stand out."""
    there = np.isfinite(target) & np.all(np.isfinite(others), axis=0)
    with_target = np.flatnonzero(there & (target != 0))
    sample = with_target[:: max(len(with_target) // _FITTED, 1)]
    if len(sample) < _RECORDS * (len(others) + 1):
        return None
    design = np.column_stack([*others, np.ones(len(target))])
    scale = np.abs(design[sample]).max(axis=0)
    if not (scale > 0).all():
        return None
    spread = _middle(target[sample] - np.median(target[sample]))
    factors = _least_deviations(design[sample] / scale, target[sample]) / scale
    if not np.any(np.abs(factors[:-1]) * scale[:-1] > spread * 1e-3):
        return None  # a constant alone
    rest = np.where(there, target - design @ factors, 0.0)
    rest[~there | (design[:, :-1] == 0).all(axis=1) & (target == 0)] = 0.0
    size = np.abs(target[sample]).max()
    typical = max(_middle(rest[sample]), size * 1e-9)
    if not typical <= spread * _LEFT**0.5:
        return None
    stand_out = np.abs(rest) > _STANDS_OUT * typical
    return (rest, factors[:-1].tolist()) if stand_out.any() else None


def _explains(column: Floats, rest: Floats) -> bool:
    """Whether what stands out in a rest is what a column has, or a multiple of it."""
    there = np.isfinite(column)
    typical = max(_middle(rest[there]), float(np.abs(rest).max()) * 1e-9)
    out = there & (np.abs(rest) > _STANDS_OUT * typical)
    if not (column[out] != 0).all() or not out.any():
        return False
    factor = float(np.median(rest[out] / column[out]))
    left = rest[there] - factor * column[there]
    return bool((np.abs(left) <= _STANDS_OUT * typical).all())


def _middle(values: Floats) -> float:
    return float(np.median(np.abs(values), axis=0)) if len(values) else 0.0


def _least_deviations(design: Floats, target: Floats) -> Floats:
    """Return the factors that make the sum of absolute deviations small: few records move it little.

    By least squares in which each record weighs less the further it is off.
    """
    weights = np.ones(len(target))
    smallest = np.abs(target).max() * 1e-12
    factors: Floats = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        found = np.linalg.lstsq(design * weights[:, None], target * weights, rcond=None)[0]
        factors = np.asarray(found, dtype=np.float64)
        weights = 1 / np.sqrt(np.maximum(np.abs(target - design @ factors), smallest))
        weights /= weights.max()
    return factors
