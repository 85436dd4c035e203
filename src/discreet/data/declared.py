"""Hierarchies as people declare them: a file, nested names, or made from the values of a column.

The command line, the policy file and Python all come through here.
"""

from __future__ import annotations

import dataclasses
import decimal
import itertools
import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from discreet.data.codes import code_text, in_order
from discreet.data.hierarchy import Hierarchy
from discreet.data.hierarchy_builders import (
    date_levels,
    grid_levels,
    kmeans_cuts,
    order_levels,
    prefix_levels,
    quantile_cuts,
    redaction_levels,
    standard_levels,
)
from discreet.data.hierarchy_sources import is_header
from discreet.errors import InputError
from discreet.registry import Record, build, parameter

__all__ = [
    "Declared",
    "HierarchySource",
    "declared",
    "parse_hierarchies",
    "read_hierarchies",
    "read_hierarchy",
]

#: One or several hierarchies of a column, each made already or declared. Any: what a caller wrote.
Declared = tuple["Hierarchy | HierarchySource", ...]
#: Gives each value of a column with the number of its records.
Frequencies = Callable[[str], Mapping[Any, int]]


#: Where a hierarchy comes from; exactly one is declared.
_SOURCES = (
    *("file", "levels", "widths", "cuts", "rare", "dates", "prefixes", "redact", "standard"),
    *("order", "quantiles", "kmeans", "grid"),
)


def _labels() -> Iterator[str]:
    """Give names for merged values, until one is no value itself."""
    yield "Other"
    yield from (f"Other ({number})" for number in itertools.count(2))


_LISTS = ("widths", "cuts", "dates", "prefixes", "order", "grid")


@dataclasses.dataclass(frozen=True)
class HierarchySource(Record):
    """A hierarchy of an attribute: from a file, nested names, or made from the column's values.

    Examples
    --------
    >>> HierarchySource(widths=(10, 20)).open("age", lambda column: {21: 1, 38: 2}).root
    'Total'
    """

    spelled: ClassVar[str] = "file"

    file: str | None = parameter(None, help="a .hrc, ARX or child,parent file", file="read")
    format: Literal["hrc", "arx", "pairs"] | None = parameter(
        None, help="how to read the file; found from its name and content if left out"
    )
    levels: Mapping[str, Any] | None = parameter(None, help="nested names, the root first")
    widths: tuple[float, ...] | None = parameter(
        None,
        help="widths of intervals, one per level, each a multiple of the one before; without `low` "
        "they begin at multiples of the widest",
    )
    cuts: tuple[float, ...] | None = parameter(None, help="cut points of intervals")
    rare: int | None = parameter(None, help="merge values rarer than this", low=1)
    dates: tuple[Literal["month", "quarter", "year", "decade"], ...] | None = parameter(
        None, help="periods above dates, ISO weeks or years"
    )
    prefixes: tuple[int, ...] | None = parameter(
        None, help="lengths of prefixes of codes, longest first"
    )
    redact: int | None = parameter(
        None, help="how many characters are hidden from the end, one per level", low=1
    )
    standard: Literal["icd-10", "nace", "nuts"] | None = parameter(
        None, help="codes of a known system: ICD-10, NACE (ISIC) or NUTS"
    )
    order: tuple[str, ...] | None = parameter(
        None, help="ordered categories, least first; neighbours are joined two by two"
    )
    quantiles: int | None = parameter(
        None, help="classes of about equal size, between low and high", low=2, high=1000
    )
    kmeans: int | None = parameter(
        None, help="classes of near values (k-means), between low and high", low=2, high=1000
    )
    grid: tuple[float, ...] | None = parameter(
        None, help="sizes of the cells of a grid, for coordinates; one per level, small to large"
    )
    low: float | None = parameter(None, help="public lower end of classes or intervals of widths")
    high: float | None = parameter(None, help="public upper end of classes or intervals of widths")
    total: str = parameter("Total", help="the name of the root")

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(getattr(self, source) is not None for source in _SOURCES) != 1:
            raise InputError(
                "give exactly one of " + ", ".join(_SOURCES),
                code="hierarchy-source",
                hint="write age: {widths: [5, 10]} or region: region.hrc",
            )
        ends = self.low is not None and self.high is not None and self.low < self.high
        if (self.quantiles is not None or self.kmeans is not None) and not ends:
            raise InputError(
                "classes made from the records need ends that are public",
                code="hierarchy-ends",
                hint="write quantiles: 5, low: 0, high: 100; the records' own ends would be told",
            )

    @classmethod
    def declared_name(cls) -> str:
        """Return what it is called in messages."""
        return "hierarchy"

    @property
    def is_of_codes(self) -> bool:
        """Whether it groups texts; intervals group numbers, and periods group dates."""
        numeric = (self.widths, self.cuts, self.quantiles, self.kmeans, self.grid, self.dates)
        return all(setting is None for setting in numeric)

    def open(self, column: str, frequencies: Frequencies) -> Hierarchy:
        """Return the hierarchy; one that is neither in a file nor spelt out has the records' values."""
        if self.file is not None:
            return read_hierarchy(self.file, format=self.format, total=self.total)
        if self.levels is not None:
            return Hierarchy.from_levels({self.total: self.levels})
        return dataclasses.replace(self._of_values(column, frequencies), observed=True)

    def _of_values(self, column: str, frequencies: Frequencies) -> Hierarchy:
        # Engines give groups in any order; the same records make the same tree.
        given = frequencies(column)
        found = {code_text(value): value for value in given if value is not None}
        named = {code: given[found[code]] for code in in_order(list(found))}
        if self.rare is not None:
            label = next(word for word in _labels() if word not in named and word != self.total)
            return Hierarchy.from_rare(named, self.rare, label=label, total=self.total)
        rows = self._rows(list(named))
        if rows is not None:
            if not rows:
                raise InputError(
                    f"column {column!r} has no values to make a hierarchy of",
                    code="hierarchy-empty",
                    column=column,
                )
            return Hierarchy.from_level_rows(rows)
        values = {code: _number(found[code]) for code in named}
        known = {value: named[code] for code, value in values.items() if value is not None}
        numbers = list(known)
        if not numbers:
            raise InputError(
                f"column {column!r} holds no numbers, so it cannot be cut into intervals",
                code="not-a-number",
                hint="give its hierarchy by file or levels",
                column=column,
            )
        for classes, cut in ((self.quantiles, quantile_cuts), (self.kmeans, kmeans_cuts)):
            if classes is None:
                continue
            assert self.low is not None  # checked when it was declared
            assert self.high is not None
            cuts = cut(known, classes, self.low, self.high)
            return Hierarchy.from_intervals(cuts, values=numbers, total=self.total)
        if self.cuts is not None:
            return Hierarchy.from_intervals(self.cuts, values=numbers, total=self.total)
        widths = tuple(self.widths or ())
        low, high = _multiples(min(numbers), max(numbers), max(widths, default=0))
        return Hierarchy.from_intervals(
            width=widths,
            low=low if self.low is None else self.low,
            high=high if self.high is None else self.high,
            values=numbers,
            total=self.total,
        )

    def _rows(self, values: list[str]) -> list[list[str]] | None:
        """Return the level table that a builder makes of values; None where none is declared."""
        values = sorted(set(values))
        if self.dates is not None:
            return date_levels(values, self.dates, self.total)
        if self.prefixes is not None:
            return prefix_levels(values, self.prefixes, self.total)
        if self.redact is not None:
            return redaction_levels(values, self.redact, self.total)
        if self.grid is not None:
            return grid_levels(values, self.grid, self.total)
        if self.standard is not None:
            return standard_levels(values, self.standard, self.total)
        return None if self.order is None else order_levels(self.order, values, self.total)


def _multiples(low: float, high: float, width: float) -> tuple[float, float]:
    """Return the multiples of a width around some numbers: ends that are nobody's own value.

    >>> _multiples(13, 38, 20), _multiples(0.13, 0.4, 0.2)
    ((0, 40), (0.0, 0.6))
    """
    if not (width > 0 and all(map(math.isfinite, (low, high, width)))):
        return low, high  # which is refused where the intervals are made
    step = decimal.Decimal(str(width))
    first = (decimal.Decimal(str(low)) / step).to_integral_value(decimal.ROUND_FLOOR) * step
    last = (decimal.Decimal(str(high)) / step).to_integral_value(decimal.ROUND_FLOOR) * step + step
    exact = int if _is_whole(step) else float
    return exact(first), exact(last)


def _is_whole(value: decimal.Decimal) -> bool:
    """Whether a decimal is a whole number; a remainder by 1 fails beyond 28 digits.

    >>> _is_whole(decimal.Decimal("1e40")), _is_whole(decimal.Decimal("0.5"))
    (True, False)
    """
    return value == value.to_integral_value()


def _number(value: Any) -> float | None:
    """Return a value as a number, also of a decimal type; None if it is none. Any: engines' types."""
    if isinstance(value, decimal.Decimal):
        return int(value) if _is_whole(value) else float(value)
    return value if isinstance(value, int | float) else None


def read_hierarchy(
    path: str | Path, *, format: str | None = None, total: str = "Total"
) -> Hierarchy:
    """Read a hierarchy from a file: `.hrc`, child,parent pairs, or ARX lines.

    Parameters
    ----------
    format
        hrc, pairs or arx; by default found from the suffix and the first line.
    total
        The name of the root in a `.hrc` file; others name it themselves.
    """
    path = Path(path)
    kind = format or ("hrc" if path.suffix.lower() == ".hrc" else _csv_kind(path))
    if kind == "hrc":
        return Hierarchy.from_hrc(path, total=total)
    return Hierarchy.from_arx(path) if kind == "arx" else Hierarchy.from_pairs(path)


def _csv_kind(path: Path) -> str:
    """Return pairs where the first line says so, or where parents are children further on."""
    from discreet.data.files import read_rows

    if not path.is_file():
        return "pairs"  # whose reader says that the file is missing
    numbered = read_rows(path)
    rows = [[field.strip() for field in fields] for _, fields in numbered]
    if not rows or any(len(fields) != 2 for fields in rows):
        return "pairs" if rows and "parent" in " ".join(rows[0]).lower() else "arx"
    children, parents = ({fields[at] for fields in rows} for at in (0, 1))
    is_chain = bool((children & parents) - {"*"}) or is_header(numbered)
    return "pairs" if is_chain or "" in parents or "parent" in rows[0][1].lower() else "arx"


def declared(given: Mapping[str, Any] | None) -> dict[str, Declared]:
    """Return hierarchies by column, each as made or as declared.

    Any: a `Hierarchy`, a path, the settings of a `HierarchySource`, or a list of these.

    >>> declared({"age": {"cuts": [30, 60]}})["age"][0].cuts
    (30, 60)
    """
    found: dict[str, Declared] = {}
    for column, one in (given or {}).items():
        several = one if isinstance(one, list | tuple) else (one,)
        found[column] = tuple(
            item if isinstance(item, Hierarchy | HierarchySource) else _built(item, column)
            for item in several
        )
    return found


def _built(given: Any, column: str) -> HierarchySource:
    # Any: what the caller wrote.
    plain = str(given) if isinstance(given, Path) else given
    made: HierarchySource = build(HierarchySource, plain, path=("hierarchies", column))
    return made


def read_hierarchies(given: Sequence[str]) -> dict[str, Hierarchy]:
    """Read the files that `attribute=file` texts name, where there are no records to look at."""
    return {
        name: source.open(name, lambda _: {}) for name, source in parse_hierarchies(given).items()
    }


def parse_hierarchies(given: Sequence[str]) -> dict[str, HierarchySource]:
    """Read `attribute=file` texts, or `attribute setting=value …` for what needs no file.

    >>> parse_hierarchies(["region=region.hrc"])["region"].file
    'region.hrc'
    >>> parse_hierarchies(["age widths=10,20", "region=my file.hrc total=Land"])["region"].total
    'Land'
    """
    found: dict[str, HierarchySource] = {}
    known = {item.name for item in HierarchySource.parameters()}
    for text in given:
        settings: dict[str, Any] = {}
        words = shlex.split(text)
        while len(words) > 1 and words[-1].partition("=")[0] in known and "=" in words[-1]:
            key, _, value = words.pop().partition("=")
            settings[key] = value.split(",") if key in _LISTS else value
        name, _, file = " ".join(words).partition("=")
        settings["file"] = file or None
        if not name or not any(settings.values()):
            raise InputError(
                f"{text!r} does not name a hierarchy",
                code="malformed-hierarchy",
                hint="write attribute=file, such as region=region.hrc, or 'age widths=10,20'",
            )
        found[name] = build(HierarchySource, settings, path=("hierarchies", name))
    return found
