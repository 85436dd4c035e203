"""Numbers and dates in cells with public ends, so that an interval names nobody's own value.

The ends come from what the curator declared: cut points, bounds, or a hierarchy of intervals. Without
a declaration they lie on a grid of round numbers, about a twentieth of the range or two digits of the
number wide, whichever is finer, and of weeks or months for dates. Whole numbers such as ages lie in
cells of five or two, so that an end is not the age of somebody; only where a column has fewer than
16 possible values is each of them a cell. Between two cells that hold values the roundest number is
the end. Beyond the least and the largest value there is no end.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.data.hierarchy_sources import interval_name
from discreet.errors import InputError
from discreet.microdata.classes import Integers, Numbers
from discreet.microdata.columns import is_date, is_number
from discreet.microdata.frequency_set import Coded

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.schema import Schema

__all__ = ["PublicCells", "public_cells"]

_EPOCH = datetime.date(1970, 1, 1)
#: Dates that lie at least so many days apart are told by month, and by week.
_MONTHLY = 240
_WEEKLY = 28
#: Whole numbers that lie at least so far apart are told in cells of this width.
_WHOLE = ((40, 5.0), (16, 2.0))
#: Parts of the range of numbers that the grid has at least.
_PARTS = 20
#: A grid by two digits of the number gets no finer than this share of the grid by range.
_FINEST = 1e-4


@dataclasses.dataclass(frozen=True, eq=False)
class PublicCells:
    """The cells of a column in which there are values, and the ends between them.

    Parameters
    ----------
    place
        For each known value, in their order, the place of its cell.
    start, end
        Where each cell begins and ends; where it is one value, both are that value.
    low, high
        The declared ends of the whole column; infinite where none are declared.
    whole, dates
        Whether values are whole numbers, and whether they are days since 1970.
    cuts
        The declared cut points, where ends must be among them.
    """

    place: Integers
    start: Numbers
    end: Numbers
    low: float
    high: float
    whole: bool
    dates: bool
    cuts: Numbers | None = None

    def text(self, first: int, last: int) -> str:
        """Return the name of the interval from one cell to another."""
        if first == last and self.start[first] == self.end[first] and self.cuts is None:
            return self._value(float(self.start[first]))
        last_of_all = last == len(self.start) - 1
        low = self.low if first == 0 else self._lower(first)
        high = self.high if last_of_all else self._upper(last)
        if math.isinf(low) and math.isinf(high):
            return "any"
        if self.dates:
            return self._days_between(low, high)
        if last_of_all and math.isfinite(high):  # a declared end belongs to the interval
            if not self.whole:
                return f"[{self._value(low)}, {self._value(high)}]"
            high += 1
        return interval_name(low, high, whole=self.whole)

    def _days_between(self, low: float, high: float) -> str:
        if math.isinf(low):
            return f"before {self._value(high)}"
        if math.isinf(high):
            return f"from {self._value(low)}"
        return f"[{self._value(low)}, {self._value(high)})"

    def share(self, first: int, last: int) -> float:
        """Return the share of the range of values that an interval covers."""
        whole = float(self.end[-1] - self.start[0])
        return float(self.end[last] - self.start[first]) / whole if whole > 0 else 0.0

    def _value(self, value: float) -> str:
        if self.dates:
            return (_EPOCH + datetime.timedelta(days=int(value))).isoformat()
        return interval_name(value, value + 1, whole=True) if self.whole else f"{value:.12g}"

    def _lower(self, cell: int) -> float:
        return self._between(cell - 1) if self.cuts is None else float(self.start[cell])

    def _upper(self, cell: int) -> float:
        return self._between(cell) if self.cuts is None else float(self.end[cell])

    def _between(self, cell: int) -> float:
        """Return the round end between a cell and the next one."""
        low, high = float(self.end[cell]), float(self.start[cell + 1])
        if self.start[cell] == low:  # the cell is one whole number, which lies before the end
            low += 1
        return _round_date(low, high) if self.dates else _round_number(low, high)


def public_cells(coded: Coded, schema: Schema) -> PublicCells | None:
    """Return the cells of a column of numbers or dates; None where it is neither.

    >>> import pyarrow as pa
    >>> from discreet.data.schema import Column, Schema
    >>> from discreet.microdata.frequency_set import code_column
    >>> pay = code_column("pay", pa.array([1234.5, 1250.0, 3071.25, 88012.0]))
    >>> found = public_cells(pay, Schema((Column("pay"),)))
    >>> found.text(0, 0), found.text(1, 1), found.text(2, 2)
    ('<2000', '[2000, 50000)', '50000+')
    """
    values = _numbers(coded.values)
    if values is None:
        return None
    found, dates = values
    if np.isinf(found).any():
        raise InputError(
            f"column {coded.name!r} holds an infinite number, which lies in no interval",
            code="not-finite",
            hint="write a missing value where the number is not known",
            column=coded.name,
        )
    whole = dates or bool((found == np.floor(found)).all())
    cuts, low, high = (None, -math.inf, math.inf) if dates else _declared(coded.name, schema)
    if cuts is not None:
        return _declared_cells(coded.name, found, cuts, whole=whole)
    if len(found) and not (low <= found[0] and found[-1] <= high):
        raise _outside(coded.name)
    if dates:
        start, end = _days_on_grid(found)
    else:
        start, end = _grid(found, low, high, whole=whole)
    first = np.concatenate(([True], start[1:] != start[:-1])) if len(start) else np.ones(0, bool)
    place = np.cumsum(first) - 1
    return PublicCells(place, start[first], end[first], low, high, whole, dates)


def _numbers(values: pa.Array) -> tuple[Numbers, bool] | None:
    """Return the known values as numbers, dates as days since 1970, and whether they are dates."""
    import pyarrow as pa

    kind = values.type
    known = values.drop_null()
    if is_date(kind):
        days = known.cast(pa.timestamp("s"), safe=False).cast(pa.int64()).to_numpy() // 86_400
        return days.astype(np.float64), True
    if is_number(kind):
        return np.array(known.to_pylist(), dtype=np.float64), False
    return None


def _declared(name: str, schema: Schema) -> tuple[Numbers | None, float, float]:
    """Return the declared cut points and ends of a column."""
    trees = schema.hierarchies(name)
    if trees and trees[0].edges is not None:
        return np.asarray(trees[0].edges, dtype=np.float64), -math.inf, math.inf
    domain = schema[name].domain
    if domain is None or domain.range is None:
        return None, -math.inf, math.inf
    if domain.cuts is not None:
        return np.array(domain.cuts), -math.inf, math.inf
    return None, *domain.range


def _declared_cells(name: str, values: Numbers, cuts: Numbers, *, whole: bool) -> PublicCells:
    """Return cells between declared cut points; the last one holds its upper end."""
    if len(values) and not (cuts[0] <= values[0] and values[-1] <= cuts[-1]):
        raise _outside(name)
    cell = np.clip(np.searchsorted(cuts, values, side="right") - 1, 0, len(cuts) - 2)
    present, place = np.unique(cell, return_inverse=True)
    start, end = cuts[present], cuts[present + 1]
    # The least and the largest value stand for open ends where a share is computed.
    least, most = (values[0], values[-1]) if len(values) else (0.0, 0.0)
    low = float(start[0]) if len(start) else -math.inf
    high = float(end[-1]) if len(end) else math.inf
    finite = cuts[np.isfinite(cuts)]
    whole = whole and bool((finite == np.floor(finite)).all())
    return PublicCells(
        place.ravel().astype(np.int64),
        np.clip(start, least, most),
        np.clip(end, least, most),
        low,
        high,
        whole,
        dates=False,
        cuts=cuts,
    )


def _grid(values: Numbers, low: float, high: float, *, whole: bool) -> tuple[Numbers, Numbers]:
    """Return where the cell of each number begins and ends on a grid of round numbers."""
    if not len(values):
        return values, values
    ends = (low, high) if math.isfinite(low) else (float(values[0]), float(values[-1]))
    span = ends[1] - ends[0]
    if span <= 0:
        return values, values
    by_range = 10.0 ** math.floor(math.log10(span / _PARTS))
    size = np.abs(np.where(values < 0, np.nextafter(values, 0), values))
    digits = np.floor(np.log10(np.maximum(size, by_range * _FINEST))) - 1
    step = np.clip(10.0**digits, by_range * _FINEST, by_range)
    if whole:
        least = next((width for far, width in _WHOLE if span >= far), 1.0)
        step = np.maximum(np.round(step), least)
        start = np.floor(values / step) * step
        return np.where(step == 1, values, start), np.where(step == 1, values, start + step)
    # Rounding to the digits of the step keeps 0.3 from becoming 0.30000000000000004.
    place = [max(0, -math.floor(math.log10(one) + 1e-9)) for one in np.unique(step)]
    keep = np.array(place)[np.searchsorted(np.unique(step), step)]
    start = np.array(
        [round(v, k) for v, k in zip(np.floor(values / step) * step, keep, strict=True)]
    )
    end = np.array([round(v, k) for v, k in zip(start + step, keep, strict=True)])
    return start, end


def _days_on_grid(days: Numbers) -> tuple[Numbers, Numbers]:
    """Return where the month, week or day of each date begins and ends."""
    span = float(days[-1] - days[0]) if len(days) else 0.0
    if span >= _MONTHLY:
        return _months(days)
    if span >= _WEEKLY:
        monday = np.floor((days + 3) / 7) * 7 - 3  # 1970 began on a Thursday
        return monday, monday + 7
    return days, days


def _months(days: Numbers) -> tuple[Numbers, Numbers]:
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    return tuple(  # type: ignore[return-value]  # two arrays
        side.astype("datetime64[D]").astype(np.float64) for side in (months, months + 1)
    )


def _round_number(low: float, high: float) -> float:
    """Return the roundest number from one on that lies before another, or is it where they touch.

    >>> (
    ...     _round_number(22, 60),
    ...     _round_number(60, 60),
    ...     _round_number(1240, 1260),
    ...     _round_number(-3, 5),
    ... )
    (50.0, 60.0, 1250.0, 0.0)
    """
    if low >= high:
        return float(high)
    most = math.ceil(math.log10(max(abs(low), abs(high), 1e-300))) + 1
    for digits in range(most, most - 17, -1):
        for factor in (5, 2, 1):
            step = factor * 10.0**digits
            found = round(math.ceil(low / step - 1e-9) * step, max(0, -digits))
            if low <= found < high:
                return found + 0.0
    return low


def _round_date(low: float, high: float) -> float:
    """Return the roundest day from one on that lies before another, or is it where they touch.

    >>> day = lambda text: float((datetime.date.fromisoformat(text) - _EPOCH).days)
    >>> found = _round_date(day("1987-03-05"), day("1993-01-01"))
    >>> _EPOCH + datetime.timedelta(days=int(found))
    datetime.date(1990, 1, 1)
    """
    if low >= high:
        return high
    first = _EPOCH + datetime.timedelta(days=int(low))
    for months in (1200, 600, 240, 120, 60, 24, 12, 6, 3, 1):
        count = first.year * 12 + first.month - 1
        count = -(-(count + (first.day > 1)) // months) * months
        year, month = divmod(count, 12)
        if 1 <= year <= 9999 and low <= (day := _days(year, month + 1)) < high:
            return day
    return low


def _days(year: int, month: int) -> float:
    return float((datetime.date(year, month, 1) - _EPOCH).days)


def _outside(name: str) -> InputError:
    return InputError(
        f"column {name!r} has values outside its declared domain",
        code="outside-domain",
        hint="correct the values, or declare a wider domain or bounds",
        column=name,
    )
