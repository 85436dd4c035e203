"""Hierarchies made from the values of a column: dates, prefixes of codes, digits, order, classes.

Every builder returns a level table: for each value its name at every level, the root last.
"""

from __future__ import annotations

import bisect
import datetime
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal, InvalidOperation

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError

__all__ = [
    "DATE_LEVELS",
    "STANDARDS",
    "date_levels",
    "grid_levels",
    "kmeans_cuts",
    "order_levels",
    "prefix_levels",
    "quantile_cuts",
    "redaction_levels",
    "standard_levels",
]

Rows = list[list[str]]

#: Steps of k-means, at most.
_ROUNDS = 100
#: Cut points depend on values that so many people reach, from either end of a column.
_FEW = 5

#: Levels above a day, finest first.
DATE_LEVELS = ("month", "quarter", "year", "decade")
_DAY = re.compile(r"(\d{4})-(\d{2})(-\d{2}([ T].*)?)?")
_WEEK = re.compile(r"(\d{4})-?W(\d{2})(-?\d)?")
_QUARTER = re.compile(r"(\d{4})-?Q([1-4])")
_YEAR = re.compile(r"\d{4}")


def date_levels(values: Iterable[str], levels: Sequence[str], total: str) -> Rows:
    """Return days, ISO weeks, months, quarters or years below coarser and coarser periods.

    >>> date_levels(["2024-05-17"], ("month", "quarter", "year", "decade"), "Total")
    [['2024-05-17', '2024-05', '2024-Q2', '2024', '2020s', 'Total']]
    """
    wanted = [level for level in DATE_LEVELS if level in levels]
    return [[value, *_periods(value, wanted), total] for value in values]


def _periods(value: str, wanted: Sequence[str]) -> list[str]:
    year, month = _year_and_month(value)
    words = {"year": year, "decade": year[:3] + "0s"}
    if month is not None:
        words |= {"month": f"{year}-{month:02}", "quarter": f"{year}-Q{(month + 2) // 3}"}
    elif found := _QUARTER.fullmatch(value):
        words |= {"month": value, "quarter": f"{year}-Q{found.group(2)}"}
    # What is coarser than a month stays as it is below the year.
    return [words.get(level, value) for level in wanted]


def _year_and_month(value: str) -> tuple[str, int | None]:
    if found := _DAY.fullmatch(value):
        return found.group(1), int(found.group(2))
    if found := _WEEK.fullmatch(value):
        # The Thursday of a week says to which month and year it belongs.
        try:
            day = datetime.date.fromisocalendar(int(found.group(1)), int(found.group(2)), 4)
        except ValueError:
            raise _no_date() from None
        return f"{day.year:04}", day.month
    if _QUARTER.fullmatch(value) or _YEAR.fullmatch(value):
        return value[:4], None
    raise _no_date()


def _no_date() -> InputError:
    return InputError(
        "a value is no date, ISO week, month, quarter or year",
        code="not-a-date",
        hint="write dates as 2024-05-17, 2024-W20, 2024-05, 2024-Q2 or 2024; where the file has "
        "others, say dates='day' or dates='month' when it is read",
    )


def prefix_levels(values: Iterable[str], lengths: Sequence[int], total: str) -> Rows:
    """Return codes below their first characters, as postcodes and classifications are built.

    >>> prefix_levels(["I25.1", "I25"], (3, 1), "Total")
    [['I25.1', 'I25*', 'I*', 'Total'], ['I25', 'I25*', 'I*', 'Total']]
    """
    if not lengths or any(b >= a for a, b in itertools.pairwise(lengths)):
        raise InputError(
            "prefixes are numbers of characters, each smaller than the one before",
            code="hierarchy-prefixes",
            hint="write prefixes=3,2,1",
        )
    return [[value, *(f"{value[:length]}*" for length in lengths), total] for value in values]


def redaction_levels(values: Iterable[str], characters: int, total: str) -> Rows:
    """Return codes with their last characters replaced one by one; shorter ones are filled up.

    >>> redaction_levels(["10115", "99"], 2, "Total")
    [['10115', '1011*', '101**', 'Total'], ['99', '99  *', '99 **', 'Total']]
    """
    listed = list(values)
    width = max(map(len, listed), default=0)
    count = min(characters, max(width - 1, 0))
    return [
        [value, *(_hidden(value.ljust(width), n) for n in range(1, count + 1)), total]
        for value in listed
    ]


def _hidden(value: str, characters: int) -> str:
    return value[: len(value) - characters] + "*" * characters


def order_levels(order: Sequence[str], values: Iterable[str], total: str) -> Rows:
    """Return ordered categories, neighbours joined two by two, then four by four.

    >>> order_levels(["0-9", "10-49", "50-249", "250+"], ["250+"], "Total")
    [['250+', '50-249 … 250+', 'Total']]
    """
    place = {code: at for at, code in enumerate(order)}
    sizes: list[int] = []
    while 2 ** (len(sizes) + 1) < len(order):
        sizes.append(2 ** (len(sizes) + 1))
    rows = []
    for value in values:
        if value not in place:
            raise InputError(
                "a value of the column is not in the order",
                code="hierarchy-order",
                hint="list every value, from the least to the largest",
            )
        groups = []
        for size in sizes:
            start = place[value] // size * size
            last = order[min(start + size, len(order)) - 1]
            groups.append(order[start] if order[start] == last else f"{order[start]} … {last}")
        rows.append([value, *groups, total])
    return rows


def quantile_cuts(
    counts: Mapping[float, int], classes: int, low: float, high: float
) -> list[float]:
    """Return cut points for classes of about equal size, between ends that are public.

    The ends never come from the records; the inner cuts are rounded to two significant digits, so
    that they say little about single records.

    >>> quantile_cuts({float(x): 1 for x in range(100)}, 4, 0, 100)
    [0, 25.0, 50.0, 75.0, 100]
    """
    ends: list[float] = []
    total, seen = sum(counts.values()), 0
    for value in sorted(counts):
        if seen >= total * (len(ends) + 1) / classes and len(ends) < classes - 1:
            ends.append(float(f"{value:.2g}"))
        seen += counts[value]
    inner = [cut for cut in dict.fromkeys(ends) if low < cut < high]
    return [low, *inner, high]


def kmeans_cuts(counts: Mapping[float, int], classes: int, low: float, high: float) -> list[float]:
    """Return cut points between clusters of near values (k-means), between ends that are public.

    As for quantiles, the inner cuts are rounded to two significant digits. The few least and largest
    records move no cut: one far from all others would be told by it.

    >>> kmeans_cuts({1.0: 5, 2.0: 5, 50.0: 3, 52.0: 3, 90.0: 5}, 3, 0, 100)
    [0, 26.0, 70.0, 100]
    """
    values = np.array(sorted(counts), dtype=float)
    weight = np.array([counts[value] for value in sorted(counts)], dtype=float)
    values, weight = _within(values, weight)
    # Lloyd's method, begun at evenly spaced values: the same records give the same cuts.
    centres = np.unique(values[np.linspace(0, len(values) - 1, classes).round().astype(int)])
    for _ in range(_ROUNDS):
        nearest = np.searchsorted((centres[1:] + centres[:-1]) / 2, values)
        size = np.bincount(nearest, weight, len(centres))
        moved = np.bincount(nearest, weight * values, len(centres))[size > 0] / size[size > 0]
        if len(moved) == len(centres) and np.allclose(moved, centres, rtol=1e-12):
            break
        centres = moved
    ends = [float(f"{cut:.2g}") for cut in (centres[1:] + centres[:-1]) / 2]
    return [low, *(cut for cut in dict.fromkeys(ends) if low < cut < high), high]


def _within(
    values: npt.NDArray[np.float64], weight: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return values without the few least and largest ones, which would tell where they are."""
    below, above = np.cumsum(weight), np.cumsum(weight[::-1])[::-1]
    inside = (below >= _FEW) & (above >= _FEW)
    return (values[inside], weight[inside]) if inside.any() else (values, weight)


def grid_levels(values: Iterable[str], sizes: Sequence[float], total: str) -> Rows:
    """Return coordinates with the cells of grids around them, from small cells to large.

    Cells begin at multiples of their size, whatever the records hold, so that no cell tells where
    the records end. A column of latitudes and one of longitudes make a grid together.

    >>> grid_levels(["52.517"], [0.1, 1], "Total")
    [['52.517', '52.5 – 52.6', '52 – 53', 'Total']]
    """
    steps = [Decimal(str(size)) for size in sizes]
    nested = all(large % small == 0 for small, large in itertools.pairwise(steps))
    if not steps or min(steps) <= 0 or not nested:
        raise InputError(
            "the cells of a grid do not lie within those of the next",
            code="hierarchy-grid",
            hint="write positive sizes, each a multiple of the one before: grid: [0.01, 0.1, 1]",
        )
    rows = []
    for value in values:
        try:
            place = Decimal(value)
        except InvalidOperation:
            raise InputError(
                "a value of the column is not a coordinate",
                code="not-a-number",
                hint="give the column another hierarchy, or correct the records",
            ) from None
        rows.append([value, *(_cell(place, step) for step in steps), total])
    return rows


def _cell(place: Decimal, step: Decimal) -> str:
    low = (place / step).to_integral_value(ROUND_FLOOR) * step
    return f"{low.normalize():f} – {(low + step).normalize():f}"


def _section(starts: Sequence[tuple[str, str]]) -> Callable[[str], str]:
    """Return the function that finds a code's section from the first code of each."""
    firsts = [first for first, _ in starts]

    def of(code: str) -> str:
        at = bisect.bisect_right(firsts, code) - 1
        return starts[at][1] if at >= 0 else "?"

    return of


#: First codes of the chapters of ICD-10, and the ranges by which they are called.
_ICD10 = [
    (span[:3], span)
    for span in [
        "A00-B99",
        "C00-D48",
        "D50-D89",
        "E00-E90",
        "F00-F99",
        "G00-G99",
        "H00-H59",
        "H60-H95",
        "I00-I99",
        "J00-J99",
        "K00-K93",
        "L00-L99",
        "M00-M99",
        "N00-N99",
        "O00-O99",
        "P00-P96",
        "Q00-Q99",
        "R00-R99",
        "S00-T98",
        "U00-U99",
        "V01-Y98",
        "Z00-Z99",
    ]
]
#: First divisions of the sections of NACE Rev. 2 (and ISIC Rev. 4).
_NACE = [
    (division, letter)
    for letter, division in zip(
        "ABCDEFGHIJKLMNOPQRSTU",
        [
            "01",
            "05",
            "10",
            "35",
            "36",
            "41",
            "45",
            "49",
            "55",
            "58",
            "64",
            "68",
            "69",
            "77",
            "84",
            "85",
            "86",
            "90",
            "94",
            "97",
            "99",
        ],
        strict=True,
    )
]
#: Code systems by name: lengths of prefixes, and the section above them if there is one.
STANDARDS: dict[str, tuple[tuple[int, ...], Callable[[str], str] | None]] = {
    "icd-10": ((3,), _section(_ICD10)),
    "nace": ((2,), _section(_NACE)),
    "nuts": ((4, 3, 2), None),
}


def standard_levels(values: Iterable[str], standard: str, total: str) -> Rows:
    """Return codes of a known system below its groups: ICD-10, NACE or NUTS.

    >>> standard_levels(["I25.1"], "icd-10", "Total")
    [['I25.1', 'I25*', 'I00-I99', 'Total']]
    >>> standard_levels(["47.11"], "nace", "Total")
    [['47.11', '47*', 'G', 'Total']]
    """
    lengths, section = STANDARDS[standard]
    rows = []
    for row in prefix_levels(values, lengths, total):
        code = row[0].strip().upper()
        above = [] if section is None else [section(code)]
        rows.append([*row[:-1], *above, total])
    return rows
