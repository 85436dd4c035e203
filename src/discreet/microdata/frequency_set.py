"""The frequency set of a file: each combination of quasi-identifiers once, with its count.

It comes from the engine as one grouped query, and it is all that checking a model or searching
for a generalisation needs to know of the records. Where people own several records, combinations
are asked for with their owners, so that people are counted and not records.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from discreet.data.codes import code_text
from discreet.data.schema import Role
from discreet.errors import InputError
from discreet.microdata.classes import (
    UNITS,
    Cells,
    Classes,
    Domain,
    Integers,
    Numbers,
    units_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = [
    "Coded",
    "FrequencySet",
    "Promise",
    "labels",
    "owner",
    "quasi_identifiers",
    "require_apart",
]

# Names that no column of a file has.
_COUNT, _POPULATION = "\0count", "\0population"


class Promise(Protocol):
    """What must be known of a privacy model to count what it looks at."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The confidential columns the model looks at."""

    def check_domain(self, domain: Domain) -> None:
        """Raise an InputError if the model does not fit the values of a confidential column."""


@dataclasses.dataclass(frozen=True, eq=False)
class Coded:
    """A column as numbers: the place of each row's value among the sorted values."""

    name: str
    #: The different values, sorted, a missing value last.
    values: pa.Array
    codes: Integers

    def texts(self) -> list[str | None]:
        """Return the values as hierarchies spell them; None for a missing value."""
        return as_texts(self.values)


@dataclasses.dataclass(frozen=True, eq=False)
class FrequencySet:
    """Rows that differ in the quasi-identifiers, how many records each stands for, what they hide.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = pa.table({"sex": ["f", "m", "f"], "ill": ["flu", "flu", "flu"], "count": [2, 1, 3]})
    >>> table = FrequencySet.from_table(rows, ["sex"], ["ill"])
    >>> table.count, table.records
    (array([5, 1]), 6)
    """

    quasi: tuple[Coded, ...]
    count: Integers
    cells: Mapping[str, Cells]
    population: Numbers | None = None

    @property
    def records(self) -> int:
        """Number of records in the file."""
        return int(self.count.sum())

    @property
    def people(self) -> int:
        """Number of people in the file: distinct units where they are declared."""
        units = self.cells.get(UNITS)
        if units is None or units.unit is None:
            return self.records
        return len(np.unique(units.unit))

    def classes(self) -> Classes:
        """Return the rows as equivalence classes."""
        found = Classes.of(self.count, self.cells, self.population)
        return found if self.count.all() else found.chosen(self.count > 0)

    @classmethod
    def of(
        cls,
        data: Any,
        *,
        quasi: Sequence[str] | None = None,
        models: Sequence[Promise] = (),
        reference: Any = None,
    ) -> FrequencySet:
        """Ask the engine for the frequency set that some models need.

        Any: data and reference may be a dataset, a release or a frame.
        """
        from discreet.data.dataset import as_dataset

        dataset = as_dataset(data)
        keys = quasi_identifiers(dataset, quasi)
        confidential = require_apart(dataset, keys, models)
        require_countable(dataset, (*keys, *confidential))
        unit = owner(dataset)
        rows, has_population = _with_population(dataset, keys, confidential, models, unit)
        known = None if reference is None else as_dataset(reference)
        table = cls.from_table(
            rows,
            keys,
            confidential,
            hierarchies={c: dataset.schema.hierarchies(c) for c in confidential},
            reference={}
            if known is None
            else {column: _reference(known, column, unit) for column in confidential},
            count=_COUNT,
            population=_POPULATION if has_population else None,
            unit=unit,
        )
        for model in models:
            for column in model.columns:
                model.check_domain(table.cells[column].domain)
        return table

    @classmethod
    def from_table(
        cls,
        rows: pa.Table,
        quasi: Sequence[str],
        confidential: Sequence[str] = (),
        *,
        hierarchies: Mapping[str, Sequence[Any]] | None = None,
        reference: Mapping[str, pa.Table] | None = None,
        count: str = "count",
        population: str | None = None,
        unit: str | None = None,
    ) -> FrequencySet:
        """Make a frequency set from a table with counts, perhaps with population and owners."""
        coded = [code_column(name, rows.column(name)) for name in quasi]
        counts = _integers(rows.column(count))
        sizes = [len(c.values) for c in coded]
        label, first = labels([c.codes for c in coded], sizes, len(counts))
        keys = tuple(Coded(c.name, c.values, c.codes[first]) for c in coded)
        owners = None if unit is None else code_column(unit, rows.column(unit)).codes
        present = counts > 0
        cells = {} if owners is None else {UNITS: units_of(label[present], owners[present])}
        for name in confidential:
            known = (reference or {}).get(name)
            column = _Confidential(name, rows.column(name), label, counts, owners, known)
            cells[name] = column.cells((hierarchies or {}).get(name, ()))
        people = None
        if population is not None:
            weights = np.asarray(rows.column(population).to_numpy(), dtype=np.float64)
            people = np.bincount(label, weights=weights, minlength=len(first)).astype(np.float64)
        return cls(keys, _sums(label, counts, len(first)), cells, people)


def owner(dataset: Dataset) -> str | None:
    """Return the column that says whom a record belongs to, where somebody owns several records."""
    from sqlglot import exp

    from discreet.data.engines import sql

    unit = dataset.unit
    if unit is None or unit not in dataset.columns:
        return None
    different = exp.Count(this=exp.Distinct(expressions=[sql.column(unit)]))
    query = sql.select(
        sql.subquery(dataset.relation.query, "t"),
        [sql.alias(exp.Count(this=exp.Star()), "n"), sql.alias(different, "d")],
    )
    found = dataset.engine.fetch(query).to_pylist()[0]
    return None if int(found["n"]) == int(found["d"]) else unit


def require_countable(dataset: Dataset, columns: Sequence[str]) -> None:
    """Refuse to count by columns whose values have no single form, such as time spans."""
    import pyarrow as pa

    for name in columns:
        kind = dataset.relation.schema.field(name).type
        is_span = pa.types.is_duration(kind) or pa.types.is_interval(kind)
        if is_span or pa.types.is_nested(kind):
            raise InputError(
                f"column {name!r} holds {'time spans' if is_span else 'nested values'}, which "
                "are not counted",
                code="unsupported-type",
                hint="write it as a number, such as days or seconds"
                if is_span
                else "take it apart into columns",
                column=name,
            )


def quasi_identifiers(dataset: Dataset, given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns an intruder knows: those given, or those with the role."""
    keys = (given,) if isinstance(given, str) else tuple(given or dataset.schema.quasi)
    if not keys:
        raise InputError(
            "no column is a quasi-identifier",
            code="no-quasi-identifiers",
            hint="read the data with roles={'age': 'quasi', …}",
        )
    for name in keys:
        if dataset.schema[name].role is Role.CONFIDENTIAL:
            raise InputError(
                f"column {name!r} is confidential and used as quasi-identifier",
                code="confidential-among-keys",
                hint="give it one role: confidential or quasi",
                column=name,
            )
    if len(set(keys)) < len(keys):
        raise InputError("a quasi-identifier is named twice", code="duplicate-column")
    return keys


def require_apart(
    dataset: Dataset, keys: Sequence[str], models: Sequence[Promise]
) -> tuple[str, ...]:
    """Return the confidential columns of the models, none of which may be a key."""
    confidential = tuple(dict.fromkeys(c for model in models for c in model.columns))
    for column in confidential:
        dataset.schema[column]
        if column in keys:
            raise InputError(
                f"column {column!r} is protected as confidential and used as quasi-identifier",
                code="confidential-among-keys",
                hint="give it one role: confidential or quasi",
                column=column,
            )
    return confidential


def _with_population(
    dataset: Dataset,
    keys: Sequence[str],
    confidential: Sequence[str],
    models: Sequence[Promise],
    unit: str | None,
) -> tuple[pa.Table, bool]:
    """Return the frequencies, and with a k-map model the population's as rows without records."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = [model for model in models if hasattr(model, "population")]
    given = [model.population for model in wanted if model.population is not None]
    columns = list(dict.fromkeys([*keys, *confidential, *([] if unit is None else [unit])]))
    if not wanted:
        return dataset.frequencies(columns).rename_columns([*columns, _COUNT]), False
    if len(given) > 1:
        raise InputError(
            "two models name a population", code="two-populations", hint="give one k-map model"
        )
    if not given:
        if dataset.weight is None:
            raise InputError(
                "k-map needs to know the population",
                code="missing-population",
                hint="write KMap(k, population=…) or read the data with weight=…",
            )
        rows = dataset.frequencies(columns, weight=dataset.weight)
        rows = rows.rename_columns([*columns, _COUNT, _POPULATION])
        return rows if unit is None else _spread(rows, unit), True
    from discreet.data.dataset import as_dataset

    people = _people(as_dataset(given[0]), keys)
    sample = dataset.frequencies(columns).rename_columns([*columns, _COUNT])
    sample = sample.append_column(_POPULATION, pa.array(np.zeros(sample.num_rows)))
    fields = {field.name: field.type for field in sample.schema}
    known = {
        **{name: pa.nulls(people.num_rows, fields[name]) for name in columns},
        **{name: pc.cast(people.column(name), fields[name]) for name in keys},
        _COUNT: pa.array(np.zeros(people.num_rows, dtype=np.int64), fields[_COUNT]),
        _POPULATION: pc.cast(people.column(_COUNT), pa.float64()),
    }
    return pa.concat_tables([sample, pa.table(known).select(sample.column_names)]), True


def _people(population: Dataset, keys: Sequence[str]) -> pa.Table:
    """Return how many people of a population have each combination of keys."""
    unit = owner(population)
    columns = list(dict.fromkeys([*keys, *([] if unit is None else [unit])]))
    rows = population.frequencies(columns).rename_columns([*columns, _COUNT])
    return rows if unit is None else _once_each(rows)


def _once_each(rows: pa.Table) -> pa.Table:
    """Let every row count once, however many records it stands for."""
    import pyarrow as pa

    place = rows.column_names.index(_COUNT)
    return rows.set_column(place, _COUNT, pa.array(np.ones(rows.num_rows, dtype=np.int64)))


def _spread(rows: pa.Table, unit: str) -> pa.Table:
    """Give each record its share of what its owner stands for, so that nobody counts twice."""
    import pyarrow as pa

    owners = code_column(unit, rows.column(unit)).codes
    records = np.bincount(owners, weights=_integers(rows.column(_COUNT)))
    shares = np.asarray(rows.column(_POPULATION).to_numpy(), dtype=np.float64) / records[owners]
    place = rows.column_names.index(_POPULATION)
    return rows.set_column(place, _POPULATION, pa.array(shares))


def _reference(known: Dataset, column: str, unit: str | None) -> pa.Table:
    """Return how often, or with how many people, each value occurs in the file compared with."""
    if unit is None or unit not in known.columns or unit == column:
        return known.frequencies([column]).rename_columns([column, _COUNT])
    return _once_each(known.frequencies([column, unit]).rename_columns([column, unit, _COUNT]))


def code_column(name: str, column: pa.ChunkedArray | pa.Array) -> Coded:
    """Return a column as places among its sorted values, a missing value last.

    >>> import pyarrow as pa
    >>> code_column("age", pa.array([30, None, 20, 30])).codes
    array([1, 2, 0, 1])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):  # a number that is none is a missing value
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    encoded = column.dictionary_encode(null_encoding="encode")
    order = pc.array_sort_indices(encoded.dictionary)  # missing values last
    place = np.empty(len(order), dtype=np.int64)
    place[order.to_numpy()] = np.arange(len(order))
    values = encoded.dictionary.take(order)
    return Coded(name, values, place[encoded.indices.to_numpy(zero_copy_only=False)])


def as_texts(values: pa.Array) -> list[str | None]:
    """Return values as hierarchies spell them: whole numbers without a decimal point, ISO dates.

    >>> import datetime
    >>> import pyarrow as pa
    >>> as_texts(pa.array([30.0, 2.5, None]))
    ['30', '2.5', None]
    >>> as_texts(pa.array([datetime.datetime(2024, 5, 17, 8, 30)]))
    ['2024-05-17T08:30:00']
    """
    import pyarrow as pa

    if pa.types.is_floating(values.type):
        return [
            None if v is None else str(int(v)) if float(v).is_integer() else repr(float(v))
            for v in values.to_pylist()
        ]
    if pa.types.is_boolean(values.type):
        return [None if v is None else str(v).lower() for v in values.to_pylist()]
    return [None if v is None else code_text(v) for v in values.to_pylist()]


def labels(codes: Sequence[Integers], sizes: Sequence[int], rows: int) -> tuple[Integers, Integers]:
    """Give each combination of codes a number, in their order; also the first row of each.

    >>> label, first = labels([np.array([1, 0, 1]), np.array([0, 5, 0])], [2, 6], 3)
    >>> label, first
    (array([1, 0, 1]), array([1, 0]))
    """
    key, width = np.zeros(rows, dtype=np.int64), 1
    for code, size in zip(codes, sizes, strict=True):
        if width * max(size, 1) > 1 << 62:
            # What does not fit into 64 bits is numbered before it is combined further.
            distinct, key = np.unique(key, return_inverse=True)
            width = len(distinct)
        key, width = key * size + code, width * max(size, 1)
    _, first, label = np.unique(key, return_index=True, return_inverse=True)
    return label.astype(np.int64), first.astype(np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class _Confidential:
    """A confidential column of a frequency set: value, class, records and owner of each row."""

    name: str
    column: pa.ChunkedArray
    label: Integers
    count: Integers
    owners: Integers | None
    reference: pa.Table | None

    def cells(self, hierarchies: Sequence[Any]) -> Cells:
        """Return how often each value occurs in each class. Any: a list of hierarchies."""
        import pyarrow as pa

        column, rows = self.column, len(self.count)
        if self.reference is not None:
            # The file compared with may have values that this one lost: they get places too.
            other = self.reference.column(self.name).cast(column.type)
            column = pa.chunked_array([*column.chunks, *other.chunks], column.type)
        coded = code_column(self.name, column)
        values = tuple("" if text is None else text for text in coded.texts())
        own = coded.codes[:rows]
        if self.reference is not None:
            counts = _integers(self.reference.column(_COUNT))
            found = np.bincount(coded.codes[rows:], weights=counts, minlength=len(values))
            total = found.astype(np.float64)
        else:
            total = self._totals(own, len(values))
        present = self.count > 0
        seen = (total > 0) | (np.bincount(own[present], minlength=len(values)) > 0)
        domain = Domain(
            self.name,
            tuple(value for value, is_seen in zip(values, seen, strict=True) if is_seen),
            total[seen] / max(total.sum(), 1),
            hierarchies[0] if hierarchies else None,
        )
        number = np.cumsum(seen) - 1
        owners = None if self.owners is None else self.owners[present]
        raw = Cells(domain, self.label[present], number[own[present]], self.count[present], owners)
        if not len(raw.place):
            return raw
        # Several rows of one class and value occur when other confidential columns differ.
        return raw.merged(np.arange(self.label.max() + 1))

    def _totals(self, own: Integers, size: int) -> Numbers:
        """Return how many records, or people, have each value in the whole file."""
        if self.owners is None:
            return np.bincount(own, weights=self.count, minlength=size).astype(np.float64)
        present = self.count > 0
        pairs = np.stack((own[present], self.owners[present]))
        return np.bincount(np.unique(pairs, axis=1)[0], minlength=size).astype(np.float64)


def _sums(label: Integers, count: Integers, size: int) -> Integers:
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, label, count)
    return total


def _integers(column: pa.ChunkedArray) -> Integers:
    return np.asarray(column.to_numpy(), dtype=np.int64)
