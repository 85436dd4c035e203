"""From records to a table: cells, totals at every level, contributors, through the engine."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.data.codes import in_order
from discreet.data.dataset import Dataset
from discreet.data.decisions import require_shared_codes
from discreet.data.engines import sql
from discreet.data.engines.cells import cells_of
from discreet.data.hierarchy import Hierarchy
from discreet.data.schema import Column, Type
from discreet.data.table import Dimension, Floats, Ints, Table
from discreet.errors import InputError
from discreet.tables.signed import magnitudes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "RESERVED",
    "Source",
    "Tabulation",
    "counted",
    "declared_hierarchies",
    "mean_count",
    "number_alike",
    "require_attributes",
    "require_columns",
    "retabulate",
    "tabulated",
    "uncounted",
]

Statistic = Literal["sum", "mean"]
#: Columns that tables and releases have besides their attributes.
RESERVED = re.compile(
    r"value|lower|upper|count|status|conf_status|sum|sum_squares|units|weight|(top|unit)_\d+|(lower|upper)_95"
)
#: Whole numbers that differ by so much at most are a score.
_SCALE = 10


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """The records behind a table, for methods that must go back to them."""

    dataset: Dataset
    by: tuple[str, ...]
    measure: str | None
    unit: str | None
    weight: str | None
    hierarchies: Mapping[str, tuple[Hierarchy, ...]]
    #: The column of those who asked for protection, and the code for missing values.
    request: str | None = None
    missing: str | None = None

    def identities(self) -> list[str]:
        """Return for each record a text that stays the same from run to run and table to table.

        The unit where there is one, the identifiers where there are some, otherwise all that is
        known of the person. Columns without such a role do not count: with one more of them the
        noise made from the text would be drawn anew, and average out.
        """
        names = [self.unit] if self.unit is not None else self._identifying()
        columns = [self.dataset.arrow([name]).column(0).to_pylist() for name in names]
        return ["\x1f".join(map(str, row)) for row in zip(*columns, strict=True)]

    def codes(self) -> list[list[str]]:
        """Return for each attribute the code of each record, as text."""
        columns = (self.dataset.arrow([name]).column(0).to_pylist() for name in self.by)
        return [[str(self.missing if v is None else v) for v in column] for column in columns]

    def _identifying(self) -> list[str]:
        schema = self.dataset.schema
        known = schema.identifiers or (*schema.quasi, *schema.confidential)
        return list(known or self.dataset.columns)

    def numbers(self, name: str, *, missing: float = 0.0) -> Floats:
        """Return a numeric column of the records."""
        column = self.dataset.arrow([name]).column(0).to_pylist()
        return np.array([missing if value is None else float(value) for value in column])

    def has_value(self) -> npt.NDArray[np.bool_]:
        """Return which records count: with a measure, those that have a value of it."""
        if self.measure is None:
            return np.ones(len(self.dataset), dtype=bool)
        return ~np.isnan(self.numbers(self.measure, missing=np.nan))

    def undeclared(self) -> list[str]:
        """Return the attributes whose codes are those found in the records."""
        trees = {name: declared_hierarchies(self.dataset, name, "Total") for name in self.by}
        return [name for name in self.by if not _public(trees[name])]

    def sums(
        self, table: Table, columns: Mapping[str, Floats], *, weighted: bool = True
    ) -> list[Floats]:
        """Add up new columns of the records over the cells of a table, in the engine."""
        held = self.dataset.with_columns(dict(columns))
        by = {attribute: self.hierarchies[attribute] for attribute in self.by}
        weight = self.weight if weighted else None
        found = []
        for name in columns:
            rows = cells_of(
                held.relation, by, measure=name, weight=weight, largest=0, missing=self.missing
            )
            found.append(_aligned(table, rows, "sum"))
        return found

    def largest(self, table: Table, column: Floats, n: int = 1) -> tuple[Floats, Floats]:
        """Return sum and largest contributions of a new column over the cells of a table."""
        held = self.dataset.with_columns({"__column": column})
        rows = held.cells(
            {attribute: self.hierarchies[attribute] for attribute in self.by},
            measure="__column",
            unit=self.unit,
            largest=n,
            missing=self.missing,
        )
        tops = [_aligned(table, rows, f"top_{rank + 1}") for rank in range(n)]
        return _aligned(table, rows, "sum"), np.stack(tops, axis=1)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Tabulation(Table):
    """A table that remembers the records it was made from.

    The value of a table of means is the sum: that is what adds up and is protected.
    """

    source: Source | None = None
    #: Number of records of each cell, or the sum of their weights: what means are divided by.
    weights: Floats | None = None
    #: The same object for tables in which a contributor has the same number.
    numbering: object | None = None

    @property
    def mean(self) -> Floats:
        """The means of the cells."""
        count = mean_count(self)
        return self.value / np.where(count > 0, count, 1)


def mean_count(table: Table) -> Floats:
    """Return what sums are divided by to give means."""
    weights = getattr(table, "weights", None)
    if weights is not None:
        return np.asarray(weights)
    if table.count is None:
        raise InputError(
            "a mean needs the number of contributors, which the table lacks",
            code="table-without-count",
            hint="give the column of frequencies as count=",
        )
    return table.count.astype(np.float64)


def counted(table: Table) -> Table:
    """Return the table of numbers behind means, whose sensitive cells are those of the means.

    It has no levels: of each sensitive number another one must remain possible.
    """
    none = np.zeros(len(table))
    return table.replace(
        value=mean_count(table),
        statistic="count",
        measure=None,
        contributions=None,
        magnitude=None,
        requested=None,
        lower=none,
        upper=none,
        whole=None,
        least=None,
        most=None,
        steps=1.0,
    )


def tabulated(
    data: Dataset,
    by: Sequence[str],
    measure: str | None = None,
    statistic: Statistic = "sum",
    *,
    unit: str | None = None,
    weight: str | None = None,
    largest: int = 2,
    request: str | None = None,
    total: str = "Total",
    missing: str | None = None,
) -> Tabulation:
    """Cross attributes of a dataset into one table: see `discreet.tabulate`."""
    names = tuple(str(name) for name in by)
    require_columns(data, names, measure, statistic, (unit, weight, request))
    for name in names:
        data.schema.require_dimension(name)
    unit = data.unit if unit is None else unit
    weight = data.weight if weight is None else weight
    hierarchies = {name: declared_hierarchies(data, name, total) for name in names}
    rows = data.cells(
        hierarchies,
        measure=measure,
        unit=unit,
        weight=weight,
        largest=largest,
        identify=True,
        total=total,
        missing=missing,
    )
    dimensions = tuple(
        _dimension(data.schema[name], hierarchies[name], rows, total) for name in names
    )
    for dimension in dimensions:
        leaves = dimension.hierarchies[0].leaves
        require_shared_codes(data.schema, dimension.name, leaves, data.count)
    declared = {d.name: d.hierarchies for d in dimensions}
    source = Source(data, names, measure, unit, weight, declared, request, missing)
    rows = _sorted(dimensions, rows, [name for name in names if data.schema[name].order])
    table = _table(dimensions, rows, source, statistic, largest)
    return _with_range(_with_signs(_with_requests(table, request)))


def uncounted(
    data: Dataset,
    by: Sequence[str],
    measure: str | None = None,
    statistic: Statistic = "sum",
    *,
    weight: str | None = None,
) -> Tabulation:
    """Return the table of a demand without its cells: what is known of it before records are read."""
    names = tuple(str(name) for name in by)
    require_columns(data, names, measure, statistic, (weight,))
    trees = {name: declared_hierarchies(data, name, "Total") for name in names}
    dimensions = tuple(
        Dimension.of(name, several or Hierarchy.flat(["?"]), declared=_public(several))
        for name, several in trees.items()
    )
    weight = data.weight if weight is None else weight
    return Tabulation(
        dimensions,
        np.zeros((0, len(names)), dtype=np.int32),
        np.zeros(0),
        statistic="count" if measure is None else statistic,
        measure=measure,
        source=Source(data, names, measure, None, weight, trees),
    )


def declared_hierarchies(data: Dataset, name: str, total: str) -> tuple[Hierarchy, ...]:
    """Return the hierarchies of an attribute, or its declared values as a flat one."""
    several = data.schema.hierarchies(name)
    domain = data.schema.domain(name)
    if several or domain is None or domain.values is None:
        return several
    return (Hierarchy.flat([str(value) for value in domain.values], total=total),)


def _public(several: Sequence[Hierarchy]) -> bool:
    """Whether the codes of an attribute are known without the records."""
    return bool(several) and not any(tree.observed for tree in several)


def number_alike(tables: Sequence[Tabulation]) -> tuple[Tabulation, ...]:
    """Give a contributor the same number in several tables of the same records.

    Engines number contributors for each table anew. Who is alone in a cell is found by adding up
    numbers of our own over it; whoever is alone nowhere keeps a number of that table only.
    """
    source = tables[0].source
    if source is None or any(table.contributors is None for table in tables):
        return tuple(tables)
    if source.unit is None:
        units = np.arange(len(source.dataset))
    else:
        _, units = np.unique(np.array(source.identities(), dtype=object), return_inverse=True)
    size = int(units.max(initial=-1)) + 1
    token, start, numbered = object(), size, []
    for table in tables:
        assert table.source is not None
        assert table.count is not None
        assert table.contributors is not None
        present = table.source.has_value().astype(np.float64)
        columns = {"__unit": units * present, "__one": present}
        total, records = table.source.sums(table, columns, weighted=False)
        alone = np.flatnonzero((table.count == 1) & (records > 0))
        local = table.contributors[alone, 0]
        number = np.arange(start, start + int(table.contributors.max(initial=-1)) + 1)
        start += len(number)
        known = local >= 0
        number[local[known]] = np.round(total[alone] / records[alone])[known].astype(np.int64)
        contributors = np.where(
            table.contributors >= 0, number[np.maximum(table.contributors, 0)], -1
        )
        contributors[alone, 0] = np.round(total[alone] / records[alone]).astype(np.int64)
        numbered.append(dataclasses.replace(table, contributors=contributors, numbering=token))
    return tuple(numbered)


def retabulate(
    table: Tabulation, dimensions: Sequence[Dimension], codes: Mapping[str, Mapping[str, str]]
) -> Tabulation:
    """Tabulate the records again with codes replaced by others, below other hierarchies."""
    source = table.source
    assert source is not None
    data = source.dataset.recode({name: dict(change) for name, change in codes.items()})
    data = data.replace(hierarchies={d.name: d.hierarchies for d in dimensions})
    largest = 0 if table.contributions is None else table.contributions.shape[1]
    return tabulated(
        data,
        list(source.by),
        source.measure,
        "mean" if table.statistic == "mean" else "sum",
        unit=source.unit,
        weight=source.weight,
        largest=largest,
        request=source.request,
        missing=_missing_after(source, codes),
    )


def _missing_after(source: Source, codes: Mapping[str, Mapping[str, str]]) -> str | None:
    """Return the code for missing values after recoding: what it was merged into, if it was."""
    missing = source.missing
    if missing is None:
        return None
    there = [
        name for name in source.by if any(missing in h.codes for h in source.hierarchies[name])
    ]
    after = {codes.get(name, {}).get(missing, missing) for name in there}
    if len(after) > 1:
        raise InputError(
            f"the code {missing!r} for missing values of {', '.join(there)} cannot be merged in "
            "one of them only",
            code="recoding-missing",
            hint="write a code of its own for each into the records, or keep one of them",
        )
    return after.pop() if after else missing


def require_attributes(tables: Sequence[Sequence[str]]) -> None:
    """Refuse a demand that names no attribute for a table."""
    if not tables or not all(tables):
        raise InputError(
            "a table needs at least one attribute",
            code="no-attributes",
            hint="give by=[…], in a policy by: [sector, region], on the command line "
            "--by sector,region",
            parameter="by",
        )


def require_columns(
    data: Dataset,
    by: tuple[str, ...],
    measure: str | None,
    statistic: str,
    columns: tuple[str | None, ...],
) -> None:
    """Say which column of a demand is missing or of the wrong kind."""
    require_attributes((by,))
    for name in (*by, measure, *columns):
        if name is not None:
            data.schema[name]
    taken = [name for name in by if RESERVED.fullmatch(name)]
    if taken:
        raise InputError(
            f"an attribute cannot be called {taken[0]!r}, as a column of every table is",
            code="reserved-name",
            hint="rename the column",
            column=taken[0],
        )
    if len(set(by)) < len(by):
        raise InputError("an attribute is crossed with itself", code="duplicate-attribute")
    if measure in by:
        raise InputError(
            f"column {measure!r} cannot be an attribute and the measure of one table",
            code="measure-is-attribute",
            column=measure,
        )
    if statistic not in ("sum", "mean"):
        raise InputError(
            f"there is no statistic {statistic!r}",
            code="unknown-statistic",
            hint="choose sum or mean",
        )
    if measure is None and statistic == "mean":
        raise InputError(
            "a mean needs a measure", code="mean-without-measure", hint="give measure="
        )
    if measure is not None and data.schema[measure].type != Type.NUMERIC:
        raise InputError(
            f"column {measure!r} holds no numbers to add up",
            code="measure-not-numeric",
            column=measure,
            hint=_asked(data, measure)
            or "choose a numeric column, or leave the measure out to count records",
        )


def _asked(data: Dataset, name: str) -> str | None:
    """Return what the reader of the file asks about a column, which is a text until it is said."""
    asked = data.reading.questions if data.reading is not None else ()
    return next((each for each in asked if each.startswith(f"{name}: ")), None)


def _dimension(
    column: Column, hierarchies: tuple[Hierarchy, ...], rows: pa.Table, total: str
) -> Dimension:
    name = column.name
    if hierarchies:
        return Dimension.of(name, hierarchies, declared=_public(hierarchies))
    found = dict.fromkeys(rows.column(name).to_pylist())
    leaves = in_order([code for code in found if code != total], column.order)
    return Dimension.of(name, Hierarchy.flat(leaves, total=total), declared=False)


def _places(dimensions: Sequence[Dimension], rows: pa.Table) -> Any:
    columns = []
    for dimension in dimensions:
        coded = rows.column(dimension.name).combine_chunks().dictionary_encode()
        index = [dimension.index[code] for code in coded.dictionary.to_pylist()]
        columns.append(np.array(index, dtype=np.int32)[coded.indices.to_numpy()])
    return np.stack(columns, axis=1)


def _sorted(dimensions: tuple[Dimension, ...], rows: pa.Table, ordered: Sequence[str]) -> pa.Table:
    """Return cells in the order of their codes where categories have one; engines sort texts."""
    if not ordered:
        return rows
    return rows.take(np.lexsort(_places(dimensions, rows).T[::-1]))


def _table(
    dimensions: tuple[Dimension, ...],
    rows: pa.Table,
    source: Source,
    statistic: Statistic,
    largest: int,
) -> Tabulation:
    def column(name: str) -> Floats:
        return np.asarray(rows.column(name).to_numpy(zero_copy_only=False), dtype=np.float64)

    counting = source.measure is None
    count: Ints = column("units" if source.unit is not None else "count").astype(np.int64)
    weights = column("weight") if source.weight is not None else None
    records = column("count") if weights is None else weights
    tops = [f"top_{rank + 1}" for rank in range(largest)]
    units = [f"unit_{rank + 1}" for rank in range(largest)]
    has_tops = largest > 0 and tops[0] in rows.column_names
    return Tabulation(
        dimensions,
        _places(dimensions, rows),
        records if counting else column("sum"),
        count=count,
        contributions=np.stack([column(t) for t in tops], axis=1) if has_tops else None,
        contributors=np.stack([column(u) for u in units], axis=1).astype(np.int64)
        if largest > 0 and units[0] in rows.column_names
        else None,
        statistic="count" if counting else statistic,
        measure=source.measure,
        confidential=_confidential(source),
        source=source,
        weights=records,
    )


def _confidential(source: Source) -> tuple[str, ...]:
    names = (*source.by, source.measure)
    return tuple(name for name in source.dataset.schema.confidential if name in names)


def _with_requests(table: Tabulation, request: str | None) -> Tabulation:
    if request is None:
        return table
    source = table.source
    assert source is not None
    asked = source.dataset.arrow([request]).column(0).to_pylist()
    flags = np.array(
        [bool(flag) and str(flag).lower() not in ("0", "no", "false") for flag in asked]
    )
    amount = np.ones(len(flags)) if source.measure is None else source.numbers(source.measure)
    _, top = source.largest(table, np.where(flags, amount, 0.0))
    return dataclasses.replace(table, requested=top[:, 0])


def _with_signs(table: Tabulation) -> Tabulation:
    """Add the sum of the sizes of contributions where some are negative."""
    source = table.source
    if source is None or source.measure is None or table.contributions is None:
        return table
    if not ((table.contributions < 0).any() or (table.value < 0).any()):
        return table
    if source.unit is not None:
        amounts = source.numbers(source.measure)
        if source.weight is not None:
            amounts = amounts * source.numbers(source.weight)
        size = magnitudes(table, amounts, source.identities(), source.codes())
        return dataclasses.replace(table, magnitude=size)
    size = np.abs(source.numbers(source.measure))
    return dataclasses.replace(table, magnitude=source.sums(table, {"__size": size})[0])


def _with_range(table: Tabulation) -> Tabulation:
    """Add what sums of a confidential measure with few values lie between."""
    source = table.source
    if source is None or source.measure is None or source.measure not in table.confidential:
        return table
    scale = _scale(source.dataset, source.measure)
    if scale is None:
        return table
    low, high, step = scale
    people = mean_count(table)
    return dataclasses.replace(
        table,
        least=low * people,
        most=high * people,
        steps=(high - low) / step,
        # Sums of consecutive whole numbers are whole, and no whole number between is impossible.
        whole=True if source.weight is None and step == 1 and low.is_integer() else None,
    )


def _scale(data: Dataset, name: str) -> tuple[float, float, float] | None:
    """Return the least and greatest value of a column that has few, and between them the step.

    Any two values are few, and so are whole numbers that differ by ten at most, such as a score.
    Where all have one value, everybody is known to have it: the other end of its scale is zero.
    """
    values = sql.select(sql.subquery(data.relation.query, "t"), [sql.alias(sql.column(name), "v")])
    found = data.engine.fetch(values.distinct().limit(_SCALE + 4)).column(0).to_pylist()
    numbers = sorted({float(v) for v in found if v is not None and not math.isnan(v)})
    if len(numbers) == 1:
        numbers = sorted({0.0, numbers[0] or 1.0})
    if len(numbers) == 2:
        low, high = numbers
        return low, high, high - low
    if not numbers or not all(number.is_integer() for number in numbers):
        return None
    low, high = numbers[0], numbers[-1]
    if high - low > _SCALE:
        return None
    return low, high, float(math.gcd(*(int(number - low) for number in numbers)))


def _aligned(table: Table, rows: pa.Table, name: str) -> Floats:
    """Return a column of engine cells in the order of the table's cells."""
    codes = _places(table.dimensions, rows)
    keys = np.zeros(len(codes), dtype=np.int64)
    for place, dimension in enumerate(table.dimensions):
        keys = keys * len(dimension.codes) + codes[:, place]
    cells = table.find(keys)
    aligned = np.zeros(len(table))
    values = np.asarray(rows.column(name).to_numpy(zero_copy_only=False), dtype=np.float64)
    aligned[cells[cells >= 0]] = values[cells >= 0]
    return aligned
