"""Columns as trees and regressions see them: places among sorted values, missing ones last."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.data.schema import Type
from discreet.errors import InputError
from discreet.microdata.columns import Numbers, Places, codes, is_date, is_number, require_finite
from discreet.microdata.synthesizers._base import owners

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["Variable", "folded", "variables"]

#: Microseconds of a day, an hour, a minute, a second, a millisecond.
_GRAINS = (86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1_000, 1)
#: The rest of an end has to weigh at least this share of its most extreme value (the p% rule).
_REST = 0.1


@dataclasses.dataclass(frozen=True, eq=False)
class Variable:
    """One column of the original: for each record the place of its value.

    Missing values have the place after the last, so that one split tells them from all others.
    """

    name: str
    #: The different values, sorted; none of them is missing.
    values: pa.Array
    places: Places
    #: Whether distances between values mean something.
    numeric: bool
    #: For each record the number of the unit that owns it; None where each is one unit's only one.
    owner: Places | None = None

    @property
    def width(self) -> int:
        """Number of places, that of missing values included."""
        return len(self.values) + 1

    @property
    def missing(self) -> Places:
        """Where values are missing."""
        return np.flatnonzero(self.places == len(self.values))

    @functools.cached_property
    def scale(self) -> Numbers:
        """The values as numbers, of numeric columns; not-a-number for the place of missing ones."""
        import pyarrow as pa

        kind = self.values.type
        if is_date(kind):
            days = self.values.cast(pa.timestamp("us")).cast(pa.int64())
            found = days.to_numpy(zero_copy_only=False).astype(np.float64)
        else:
            found = self.values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return np.append(np.asarray(found, np.float64), np.nan)

    @functools.cached_property
    def decimals(self) -> int:
        """The fewest decimals, up to nine, that write every value."""
        known = self.scale[:-1]
        for count in range(9):
            if np.allclose(known, np.round(known, count), rtol=0, atol=1e-9):
                return count
        return 9

    @functools.cached_property
    def _grain(self) -> int:
        """The longest of day, hour, minute and so on, in microseconds, that all dates are whole of."""
        known = self.scale[:-1].astype(np.int64)
        return next(one for one in _GRAINS if not (known % one).any())

    def taken(self, places: Places) -> pa.Array:
        """Return the values at places, in the column's own type."""
        import pyarrow as pa

        known = places < len(self.values)
        chosen = pa.array(np.where(known, places, 0), mask=~known)
        return self.values.take(chosen)

    def numbers(self, values: Numbers) -> pa.Array:
        """Return numbers in the column's own type, missing where they are not numbers."""
        import pyarrow as pa

        kind = self.values.type
        mask = np.isnan(values)
        known = np.where(mask, 0.0, values)
        if is_date(kind):
            grain = self._grain
            known = np.rint(known / grain).astype(np.int64) * grain
            return pa.array(known, mask=mask).cast(pa.timestamp("us")).cast(kind)
        if pa.types.is_integer(kind):
            return pa.array(np.rint(known).astype(np.int64), mask=mask).cast(kind)
        return pa.array(known, pa.float64(), mask=mask).cast(kind, safe=False)

    def place_of(self, value: Any) -> int:
        """Return the place of a value that somebody wrote. Any: as in a rule."""
        if value is None:
            return len(self.values)
        written = [str(known) for known in self.values.to_pylist()]
        if str(value) not in written:
            raise InputError(
                f"a rule gives column {self.name!r} a value that the column does not have",
                code="unknown-value",
                hint="write one of the column's own values, spelled as in the file",
                column=self.name,
            )
        return written.index(str(value))


def variables(dataset: Dataset, names: Sequence[str], *, in_order: bool = False) -> list[Variable]:
    """Return columns as variables, their records in an order of their own.

    Sorted by all values, so that what is drawn does not depend on the order of the file; or in the
    order of the file, where records stay in their places.
    """
    rows = dataset.arrow(names)
    if rows.num_rows < 2 or rows.num_rows < len(names):
        raise InputError(
            f"{rows.num_rows:,} records are too few to learn {len(names)} columns from",
            code="too-few-records",
            hint="give at least as many records as columns, or fewer columns",
        )
    found = []
    owner = owners(dataset)
    shared = owner if np.unique(owner).size < owner.size else None
    for name in names:
        places, values = codes(rows.column(name))
        if len(values) == 0:
            raise InputError(
                f"column {name!r} holds no value at all",
                code="all-missing",
                hint="leave the column out: give it the role identifier",
                column=name,
            )
        number = is_number(values.type) or is_date(values.type)
        if is_number(values.type):
            require_finite(values, name)
        numeric = number and dataset.schema[name].type is not Type.NOMINAL
        places = np.where(places < 0, len(values), places)
        found.append(Variable(name, values, places, numeric, shared))
    if in_order:
        return found
    order = np.lexsort([variable.places for variable in reversed(found)])
    sorted_owner = None if shared is None else shared[order]
    return [dataclasses.replace(v, places=v.places[order], owner=sorted_owner) for v in found]


def folded(variable: Variable, fewest: int) -> Variable:
    """Return a column of numbers in which no fewer units than this have its extreme values.

    From each end values are gathered until so many units have one of them, and get their mean; or
    until a value is met that so many units share, which those beyond it get. What is extreme is
    then never one person's, nor that of one who has many records; and a value far beyond the others
    of its end counts as the next one, as the mean would tell it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not variable.numeric or fewest < 2:
        return variable
    known = variable.places < len(variable.values)
    own = np.arange(known.size) if variable.owner is None else variable.owner
    # One record of each unit and value, so that a mean weighs people and not their records.
    pairs = np.unique(np.stack([variable.places[known], own[known]]), axis=1)
    count = np.bincount(pairs[0], minlength=len(variable.values))
    scale = variable.scale[:-1].copy()
    for sign, end in ((-1.0, np.arange(scale.size)[::-1]), (1.0, np.arange(scale.size))):
        many = _units_so_far(pairs, end)
        last = int(np.argmax(many >= fewest)) if many[-1] >= fewest else end.size - 1
        if count[end[last]] >= fewest:
            scale[end[:last]] = scale[end[last]]
        else:
            group = end[: last + 1]
            scale[group] = _mean(_by_unit(pairs, group, variable.scale, sign))
    moved = scale != variable.scale[:-1]
    if not moved.any():
        return variable
    # Values that stay are taken over as they are: large whole numbers would be rounded as floats.
    mean = variable.numbers(np.round(scale, variable.decimals))
    places, values = codes(pa.chunked_array([pc.if_else(pa.array(moved), mean, variable.values)]))
    again = np.append(places, len(values))
    return dataclasses.replace(variable, values=values, places=again[variable.places])


def _by_unit(pairs: np.ndarray, group: Places, scale: Numbers, sign: float) -> Numbers:
    """Return the mean of each unit's values among those of an end, the most extreme unit first."""
    own = pairs[:, np.isin(pairs[0], group)]
    _, unit = np.unique(own[1], return_inverse=True)
    means = np.bincount(unit, scale[own[0]]) / np.bincount(unit)
    return np.asarray(means[np.argsort(sign * means, kind="stable")])


def _mean(extremes: Numbers) -> float:
    """Return the mean of an end, the most extreme first, of which none makes nearly all."""
    found = extremes.copy()
    away = np.abs(found - found[-1])
    for place in range(found.size - 3):
        if away[place + 2 :].sum() >= _REST * away[place]:
            break
        found[: place + 1] = found[place + 1]
    return float(found.mean())


def _units_so_far(pairs: np.ndarray, end: Places) -> Places:
    """Return how many units have one of the first values from an end, for each number of values."""
    rank = np.empty(end.size, np.int64)
    rank[end] = np.arange(end.size)
    order = np.argsort(rank[pairs[0]], kind="stable")
    _, first = np.unique(pairs[1][order], return_index=True)
    return np.cumsum(np.bincount(rank[pairs[0]][order][first], minlength=end.size))
