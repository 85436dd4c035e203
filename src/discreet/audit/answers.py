"""Exact answers of a gateway, as sets of records that releases are judged with.

Any, for memories and entries: the ledger stands beside the audit and is given as an argument.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from discreet.data.dataset import Dataset
from discreet.data.engines.base import ROW
from discreet.data.facts import LinearFacts
from discreet.data.sql import Catalog, Query, parse
from discreet.data.sql.query import from_clause
from discreet.data.sql.total import total
from discreet.errors import DiscreetError, RefusedError

__all__ = ["Answered", "answered_facts", "answered_measures"]

Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Answered:
    """An answer among earlier releases: what it is called, and the snapshot that it is about."""

    name: str
    snapshot: str


def answered_facts(
    memory: Any, quantity: tuple[str | None, str | None]
) -> list[tuple[Answered, LinearFacts]]:
    """Return exact answers about a quantity as tables by the group of a question."""
    measure, weight = quantity
    if weight is not None:
        return []  # a gateway answers without weights
    dataset = memory.roster.dataset
    assert dataset is not None
    found = []
    for entry, query in _questions(memory, dataset):
        if measure not in _told(query):
            continue
        parts = _parts(query, dataset, entry)[memory.roster.order]
        k = int(entry.details.get("k") or 2)
        name = Answered(f"answer {entry.number}", memory.identity)
        found.append((name, _facts(parts, measure, k, memory)))
    return found


def answered_measures(memory: Any) -> set[str | None]:
    """Return the columns of which sums were answered."""
    dataset = memory.roster.dataset
    if dataset is None:
        return set()
    return {name for _, query in _questions(memory, dataset) for name in _told(query)}


def _questions(memory: Any, dataset: Dataset) -> Iterator[tuple[Any, Query]]:
    """Give each answer with its question, or refuse what cannot be read again."""
    catalog = Catalog.of(dataset.name, dataset.schema, dataset.relation.schema)
    for entry in memory.answers:
        if entry.details.get("snapshot") != memory.identity:
            raise RefusedError(
                "the ledger holds exact answers about other records than these: what both tell "
                "together is not judged",
                code="changed-data",
                hint="release about the records that were answered about, or with differential "
                "privacy",
            )
        try:
            query = parse(entry.question, catalog)
        except DiscreetError:
            raise RefusedError(
                f"answer {entry.number} of the ledger cannot be judged with a table",
                code="unknown-answer",
                hint="open the records with the same columns as the gateway, without lookups",
            ) from None
        yield entry, query


def _facts(parts: Ints, measure: str | None, k: int, memory: Any) -> LinearFacts:
    """Return the answered sums, one group each, below a total that is not told."""
    count = int(parts.max(initial=-1)) + 1
    inside = parts >= 0
    amount = np.ones(len(parts))
    if measure is not None:
        column = memory.roster.column(measure)
        amount = pc.fill_null(pc.cast(column, "float64"), 0.0).to_numpy(zero_copy_only=False)
    told = np.bincount(parts[inside], weights=amount[inside], minlength=count).astype(np.float64)
    pairs = (("Total", ""), *((f"g{n}", "Total") for n in range(count)))
    codes = np.arange(1, count + 1, dtype=np.int64)[:, None]
    return LinearFacts(
        statistic="count" if measure is None else "sum",
        measure=measure,
        by=("group",),
        hierarchies=((pairs,),),
        codes=codes,
        lower=told,
        upper=told.copy(),
        k=k,
        members=parts,
        combinations=codes,
    )


def _told(query: Query) -> Iterator[str | None]:
    """Give the quantities that a question asks for; None is the number of records."""
    for measure in query.measures:
        if measure.function in ("sum", "avg"):
            yield measure.column
        if measure.function in ("count", "units", "avg"):
            yield None


def _parts(query: Query, dataset: Dataset, entry: Any) -> Ints:
    """Return for each record the number of the answered group that it is in; −1 for none."""
    keys = [exp.alias_(key.total(), f"k{n}") for n, key in enumerate(query.keys)]
    row = exp.alias_(exp.column(ROW, quoted=True), ROW, quoted=True)
    select = exp.select(row, *keys).from_(from_clause(dataset.relation.query, query.relation))
    if query.predicate is not None:
        select = select.where(total(query.predicate))
    rows = dataset.engine.fetch(select)
    numbers = _numbered(rows, len(keys), entry)
    every = dataset.engine.fetch(dataset.engine.project(dataset.relation, [ROW])).column(0)
    order = np.sort(every.to_numpy())
    parts = np.full(len(order), -1, dtype=np.int64)
    parts[np.searchsorted(order, rows.column(ROW).to_numpy())] = numbers
    return parts


def _numbered(rows: pa.Table, keys: int, entry: Any) -> Ints:
    if not keys:
        return np.zeros(rows.num_rows, dtype=np.int64)
    names = [f"k{n}" for n in range(keys)]
    with pa.ipc.open_stream(entry.answer) as reader:
        told = reader.read_all()
    number: dict[tuple[Any, ...], int] = {}
    for one in told.select(names).to_pylist():
        number.setdefault(tuple(one.values()), len(number))
    groups = zip(*(rows.column(name).to_pylist() for name in names), strict=True)
    return np.array([number.get(group, -1) for group in groups], dtype=np.int64)
