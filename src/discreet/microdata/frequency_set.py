"""The frequency set of a file: each combination of quasi-identifiers once, with its count.

It comes from the engine as one grouped query, and it is all that checking a model or searching
for a generalisation needs to know of the records.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.data.schema import Role
from discreet.errors import InputError
from discreet.microdata.classes import Cells, Classes, Domain, Integers, Numbers

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset
    from discreet.microdata.models import Model

__all__ = ["Coded", "FrequencySet", "as_dataset", "labels", "quasi_identifiers", "require_apart"]


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

    def classes(self) -> Classes:
        """Return the rows as equivalence classes."""
        found = Classes(self.count, self.cells, self.population)
        return found if self.count.all() else found.chosen(self.count > 0)

    @classmethod
    def of(
        cls,
        data: Any,
        *,
        quasi: Sequence[str] | None = None,
        models: Sequence[Model] = (),
        reference: Any = None,
    ) -> FrequencySet:
        """Ask the engine for the frequency set that some models need.

        Any: data and reference may be a dataset, a release or a frame.
        """
        dataset = as_dataset(data)
        keys = quasi_identifiers(dataset, quasi)
        confidential = require_apart(dataset, keys, models)
        rows, has_population = _with_population(dataset, keys, confidential, models)
        known = None if reference is None else as_dataset(reference)
        table = cls.from_table(
            rows,
            keys,
            confidential,
            hierarchies={c: dataset.schema.hierarchies(c) for c in confidential},
            reference={}
            if known is None
            else {column: known.frequencies([column]) for column in confidential},
            population=has_population,
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
        population: bool = False,
    ) -> FrequencySet:
        """Make a frequency set from a table with a column `count` (and `population`)."""
        coded = [code_column(name, rows.column(name)) for name in quasi]
        count = _integers(rows.column("count"))
        label, first = labels([c.codes for c in coded], [len(c.values) for c in coded], len(count))
        keys = tuple(Coded(c.name, c.values, c.codes[first]) for c in coded)
        cells = {
            name: _cells(
                name,
                rows,
                label,
                count,
                (hierarchies or {}).get(name, ()),
                (reference or {}).get(name),
            )
            for name in confidential
        }
        people = None
        if population:
            weights = np.asarray(rows.column("population").to_numpy(), dtype=np.float64)
            people = np.bincount(label, weights=weights, minlength=len(first)).astype(np.float64)
        return cls(keys, _sums(label, count, len(first)), cells, people)


def as_dataset(data: Any) -> Dataset:
    """Return a dataset, the dataset of a release, or a frame as a dataset.

    Any: every library has its own frame.
    """
    from discreet.data.dataset import Dataset, read

    if isinstance(data, Dataset):
        return data
    inner = getattr(data, "dataset", None)
    return inner if isinstance(inner, Dataset) else read(data)


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
    dataset: Dataset, keys: Sequence[str], models: Sequence[Model]
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
    dataset: Dataset, keys: Sequence[str], confidential: Sequence[str], models: Sequence[Model]
) -> tuple[pa.Table, bool]:
    """Return the frequencies, and with a k-map model the population's as rows without records."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = [model for model in models if hasattr(model, "population")]
    given = [model.population for model in wanted if model.population is not None]
    columns = [*keys, *confidential]
    if not wanted:
        return dataset.frequencies(columns), False
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
        place = rows.column_names.index("weight")
        return rows.rename_columns(
            [n if i != place else "population" for i, n in enumerate(rows.column_names)]
        ), True
    people = as_dataset(given[0]).frequencies(list(keys))
    sample = dataset.frequencies(columns)
    sample = sample.append_column("population", pa.array(np.zeros(sample.num_rows)))
    fields = {field.name: field.type for field in sample.schema}
    known = {
        **{name: pc.cast(people.column(name), fields[name]) for name in keys},
        **{name: pa.nulls(people.num_rows, fields[name]) for name in confidential},
        "count": pa.array(np.zeros(people.num_rows, dtype=np.int64), fields["count"]),
        "population": pc.cast(people.column("count"), pa.float64()),
    }
    return pa.concat_tables([sample, pa.table(known).select(sample.column_names)]), True


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
    """Return values as hierarchies spell them: whole numbers without a decimal point.

    >>> import pyarrow as pa
    >>> as_texts(pa.array([30.0, 2.5, None]))
    ['30', '2.5', None]
    """
    import pyarrow as pa

    if pa.types.is_floating(values.type):
        return [
            None if v is None else str(int(v)) if float(v).is_integer() else repr(float(v))
            for v in values.to_pylist()
        ]
    if pa.types.is_boolean(values.type):
        return [None if v is None else str(v).lower() for v in values.to_pylist()]
    return [None if v is None else str(v) for v in values.to_pylist()]


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


def _cells(
    name: str,
    rows: pa.Table,
    label: Integers,
    count: Integers,
    hierarchies: Sequence[Any],
    reference: pa.Table | None,
) -> Cells:
    import pyarrow as pa

    column, weight = rows.column(name), count
    if reference is not None:
        # The file compared with may have values that this one lost: they get places too.
        other = reference.column(name).cast(column.type)
        column = pa.chunked_array([*column.chunks, *other.chunks], column.type)
        weight = np.concatenate((np.zeros_like(count), _integers(reference.column("count"))))
    coded = code_column(name, column)
    values = tuple("" if text is None else text for text in coded.texts())
    total = np.bincount(coded.codes, weights=weight, minlength=len(values))
    seen = (total > 0) | (
        np.bincount(coded.codes[: len(count)], weights=count, minlength=len(values)) > 0
    )
    domain = Domain(
        name,
        tuple(value for value, is_seen in zip(values, seen, strict=True) if is_seen),
        total[seen] / max(total.sum(), 1),
        hierarchies[0] if hierarchies else None,
    )
    number = np.cumsum(seen) - 1
    present = count > 0
    raw = Cells(domain, label[present], number[coded.codes[: len(count)][present]], count[present])
    if not len(raw.place):
        return raw
    # Several rows of one class and value occur when other confidential columns differ.
    return raw.merged(np.arange(label.max() + 1))


def _sums(label: Integers, count: Integers, size: int) -> Integers:
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, label, count)
    return total


def _integers(column: pa.ChunkedArray) -> Integers:
    return np.asarray(column.to_numpy(), dtype=np.int64)
