"""Bounds from arrays in memory: one pass over the records, without a database.

The release is ordered by group, so hits are counted in one run over the column that a condition
is about, and everything else is a look-up per group. Conditions on one column are decided once
per distinct value, by the engine itself, so that they mean exactly what they mean in SQL.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from discreet.microdata.permutation.groups import GROUP
from discreet.microdata.permutation.statement import Aggregate, Statement

if TYPE_CHECKING:
    from discreet.data.engines.base import Engine

__all__ = ["Memory", "NotInMemory"]

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]


#: Groupings that are kept, one code per record each.
_GROUPINGS = 8


class NotInMemory(Exception):  # noqa: N818  # tells the caller to ask the engine; nothing failed
    """The statement is answered by the engine only."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Hits:
    """Hits by key and group, where there are any."""

    key: Integers
    group: Integers
    count: Integers
    keys: int
    #: The keys there are, among all that could be.
    present: Integers

    def sum(self, values: Integers) -> Integers:
        from discreet.microdata.permutation import _passes

        total: Integers = _passes.sum_by_key(self.key, values, self.keys)
        return total


class Memory:
    """A release as arrays."""

    def __init__(
        self, permuted: pa.Table, help_table: pa.Table, *, sensitive: str, kind: str, engine: Engine
    ) -> None:
        self._permuted = permuted
        self._help = help_table
        self._sensitive = sensitive
        self._kind = kind
        self._engine = engine
        self._coded: dict[str, tuple[npt.NDArray[Any], pa.Array]] = {}
        self._decided: dict[str, Flags] = {}
        self._partly: dict[str, npt.NDArray[Any]] = {}
        self._ends: tuple[Statement, tuple[npt.NDArray[Any], ...]] | None = None
        self._grouped: dict[str, tuple[npt.NDArray[Any], list[pa.Array]]] = {}

    @functools.cached_property
    def _starts(self) -> Integers:
        ids = self._permuted.column(GROUP).to_numpy()
        return np.append(np.flatnonzero(np.diff(ids, prepend=-1)), len(ids)).astype(np.int64)

    def _column(self, name: str) -> npt.NDArray[Any]:
        if name not in self._partly:
            values = self._help.column(name)
            self._partly[name] = (
                values.cast(pa.float64()) if pa.types.is_decimal(values.type) else values
            ).to_numpy()
        return self._partly[name]

    def answer(self, statement: Statement) -> pa.Table:
        """Return lower, upper and estimate of every aggregate, one row per key."""
        unsupported = {"variance", "weighted"} & {a.kind for a in statement.aggregates}
        if unsupported or (self._kind == "decimal" and not _only_counts(statement)):
            raise NotInMemory
        if statement.values is not None and self._mixed(statement.values):
            raise NotInMemory
        hits, labels = self._hits(statement)
        columns: dict[str, Any] = {
            key.label: column
            for key, column in zip(statement.keys, labels, strict=True)
            if key.shown
        }
        for aggregate in statement.aggregates:
            ends = getattr(self, f"_{aggregate.kind}")(aggregate, statement, hits)
            for word, values in zip(("lower", "upper", "estimate"), ends, strict=True):
                columns[f"{aggregate.label}_{word}"] = values
        table = pa.table(columns)
        if statement.order:
            shown = [
                (statement.keys[place].label, "descending" if falls else "ascending")
                for place, falls in statement.order
                if statement.keys[place].shown
            ]
            if len(shown) != len(statement.order):
                raise NotInMemory
            table = table.sort_by(shown)
        return table

    # -- hits --------------------------------------------------------------------------------------
    def _hits(self, statement: Statement) -> tuple[_Hits, list[pa.Array]]:
        from discreet.microdata.permutation import _passes

        if not statement.keys:
            if statement.where is None:
                count = np.diff(self._starts)
            else:
                count = _passes.hits_of_codes(*self._selection(statement), self._starts)
            group = np.flatnonzero(count)
            one = np.zeros(len(group), dtype=np.int64)
            return _Hits(one, group, count[group], 1, one[:1]), []
        key, labels = self._keys(statement)
        size = len(labels[0])
        if size * (len(self._starts) - 1) > 50_000_000:
            raise NotInMemory
        found = _passes.hits_by_key(*self._selection(statement), key, size, self._starts)
        # Keys without a hit give no row, as in SQL.
        present, dense = np.unique(found[0], return_inverse=True)
        hits = _Hits(dense.astype(np.int64), found[1], found[2], len(present), present)
        return hits, [label.take(pa.array(present)) for label in labels]

    def _selection(self, statement: Statement) -> tuple[npt.NDArray[Any], Flags]:
        """Return one code per record, and which codes are selected."""
        where = statement.where
        if where is None:
            return self._zeros, np.array([1], dtype=np.uint8)
        single = self._only_column(where)
        if single is not None:
            return self._codes(single)[0], self._decide(where, single)
        return self._select(where, negated=False), np.array([0, 1], dtype=np.uint8)

    @functools.cached_property
    def _zeros(self) -> Flags:
        return np.zeros(len(self._permuted), dtype=np.uint8)

    def _keys(self, statement: Statement) -> tuple[npt.NDArray[Any], list[pa.Array]]:
        """Return one key per record, and for each key the values of the grouping expressions."""
        asked = "; ".join(item.expression.sql() for item in statement.keys)
        if asked not in self._grouped:
            if len(self._grouped) >= _GROUPINGS:
                del self._grouped[next(iter(self._grouped))]
            self._grouped[asked] = self._combined(statement)
        return self._grouped[asked]

    def _combined(self, statement: Statement) -> tuple[npt.NDArray[Any], list[pa.Array]]:
        combined: npt.NDArray[Any] = self._zeros
        labels: list[pa.Array] = []
        size = 1
        for item in statement.keys:
            name = self._only_column(item.expression)
            if name is None:
                raise NotInMemory
            codes, dictionary = self._codes(name)
            values = self._evaluate(item.expression, name, dictionary).dictionary_encode(
                null_encoding="encode"
            )
            part = values.indices.to_numpy()
            before, own = size, len(values.dictionary)
            size *= own
            if size > 1_000_000:
                raise NotInMemory
            small = np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.int32
            code = part.astype(small)[codes]
            if before > 1:
                code = np.asarray(combined.astype(small) * own + code, dtype=small)
            combined = code
            pairs = np.arange(size)
            labels = [
                *(label.take(pa.array(pairs // own)) for label in labels),
                values.dictionary.take(pa.array(pairs % own)),
            ]
        return combined, labels

    def _codes(self, name: str) -> tuple[npt.NDArray[Any], pa.Array]:
        if name not in self._coded:
            column = self._permuted.column(name)
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            coded = column.dictionary_encode(null_encoding="encode").combine_chunks()
            if isinstance(coded, pa.ChunkedArray):
                coded = coded.chunk(0)
            size = len(coded.dictionary)
            small = np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.int32
            self._coded[name] = coded.indices.to_numpy().astype(small), coded.dictionary
        return self._coded[name]

    # -- conditions --------------------------------------------------------------------------------
    def _only_column(self, tree: exp.Expression) -> str | None:
        names = {column.name for column in tree.find_all(exp.Column)}
        return names.pop() if len(names) == 1 else None

    def _mixed(self, tree: exp.Expression) -> bool:
        return self._only_column(tree) is None

    def _evaluate(self, tree: exp.Expression, name: str, dictionary: pa.Array) -> pa.Array:
        """Return an expression of one column for each of its distinct values."""
        from discreet.data.engines import sql

        place = pa.array(np.arange(len(dictionary)))
        held = self._engine.load(pa.table({name: dictionary, "__place": place}))
        values = [sql.column("__place"), sql.alias(exp.paren(tree.copy()), "__value")]
        try:
            rows = self._engine.fetch(sql.select(sql.subquery(held.query, "t"), values))
        finally:
            self._engine.drop(held)
        found = rows.sort_by("__place").column("__value").combine_chunks()
        return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found

    def _decide(self, tree: exp.Expression, name: str) -> Flags:
        """Return for each distinct value of a column whether a condition on it is true."""
        key = tree.sql()
        if key not in self._decided:
            truth = self._evaluate(tree, name, self._codes(name)[1])
            self._decided[key] = truth.cast(pa.uint8()).fill_null(0).to_numpy().astype(np.uint8)
        return self._decided[key]

    def _select(self, tree: exp.Expression, *, negated: bool) -> Flags:
        """Return where a condition is true; negated, where it is false: unknown is neither."""
        while isinstance(tree, exp.Paren):
            tree = tree.this
        name = self._only_column(tree)
        if name is not None:
            asked = exp.Not(this=exp.paren(tree.copy())) if negated else tree
            chosen: Flags = self._decide(asked, name)[self._codes(name)[0]]
            return chosen
        if isinstance(tree, exp.Not):
            return self._select(tree.this, negated=not negated)
        if isinstance(tree, exp.And | exp.Or):
            left = self._select(tree.this, negated=negated)
            right = self._select(tree.expression, negated=negated)
            return left & right if isinstance(tree, exp.And) != negated else left | right
        raise NotInMemory

    # -- aggregates --------------------------------------------------------------------------------
    def _rows(self, hits: _Hits) -> Integers:
        return self._starts[hits.group] + hits.count - 1

    def _count(
        self, _: Aggregate, statement: Statement, hits: _Hits
    ) -> tuple[npt.NDArray[Any], ...]:
        if statement.values is None:
            count = hits.sum(hits.count)
            return count, count, count
        codes, _dictionary = self._codes(self._sensitive)
        from discreet.microdata.permutation import _passes

        accepted = self._decide(statement.values, self._sensitive)
        inside = _passes.hits_of_codes(codes, accepted, self._starts)[hits.group]
        size = np.diff(self._starts)[hits.group]
        low = hits.sum(np.maximum(hits.count + inside - size, 0))
        high = hits.sum(np.minimum(hits.count, inside))
        expected = np.bincount(hits.key, hits.count * inside / size, minlength=hits.keys)
        return low, high, expected

    def _sum(self, _: Aggregate, __: Statement, hits: _Hits) -> tuple[pa.Array, ...]:
        rows = self._rows(hits)
        ends = []
        for name in ("lb_sum", "ub_sum"):
            values = self._column(name)[rows]
            if self._kind == "integer":
                ends.append(_or_null(hits.sum(values), hits))
            else:  # sums of these doubles are exact: see `Amounts`
                ends.append(_or_null(np.bincount(hits.key, values, minlength=hits.keys), hits))
        expected = np.bincount(
            hits.key, hits.count * self._column("mean")[rows], minlength=hits.keys
        )
        return ends[0], ends[1], _or_null(expected, hits)

    def _avg(self, aggregate: Aggregate, statement: Statement, hits: _Hits) -> tuple[pa.Array, ...]:
        import pyarrow.compute as pc

        count = pa.array(np.maximum(hits.sum(hits.count), 1).astype(np.float64))
        sums = self._sum(aggregate, statement, hits)
        return tuple(pc.divide(end.cast(pa.float64(), safe=False), count) for end in sums)

    def _min(self, _: Aggregate, statement: Statement, hits: _Hits) -> tuple[pa.Array, ...]:
        return self._extreme("min", statement, hits)

    def _max(self, _: Aggregate, statement: Statement, hits: _Hits) -> tuple[pa.Array, ...]:
        return self._extreme("max", statement, hits)

    def _extreme(self, end: str, statement: Statement, hits: _Hits) -> tuple[pa.Array, ...]:
        from discreet.microdata.permutation import _passes

        rows = self._rows(hits)
        pick = np.minimum if end == "min" else np.maximum
        order = np.argsort(hits.key, kind="stable")
        starts = np.flatnonzero(np.diff(hits.key[order], prepend=-1))
        bounds = [self._column(f"{side}_{end}")[rows][order] for side in ("lb", "ub")]
        if not len(order):
            return tuple(
                pa.nulls(hits.keys, pa.from_numpy_dtype(bounds[0].dtype)) for _ in range(3)
            )
        ends = self._ends
        if ends is None or ends[0] is not statement:  # MIN and MAX share the pass
            key, size = (self._zeros, 1) if not statement.keys else self._sized_keys(statement)
            found = _passes.ends_by_key(
                *self._selection(statement), key, size, self._sensitive_values()
            )
            self._ends = ends = statement, found
        world = ends[1][0 if end == "min" else 1][hits.present]
        return (*(pa.array(pick.reduceat(values, starts)) for values in bounds), pa.array(world))

    def _sized_keys(self, statement: Statement) -> tuple[npt.NDArray[Any], int]:
        key, labels = self._keys(statement)
        return key, len(labels[0])

    def _sensitive_values(self) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = self._permuted.column(self._sensitive).to_numpy()
        return found

    def _world(self, statement: Statement) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return key and value of the released rows that are selected."""
        values = self._sensitive_values()
        codes, accepted = self._selection(statement)
        chosen = slice(None) if statement.where is None else accepted[codes] == 1
        if not statement.keys:
            picked = values[chosen]
            return np.zeros(len(picked), dtype=np.int64), picked
        key, _ = self._keys(statement)
        _, dense = np.unique(key[chosen], return_inverse=True)
        return dense, values[chosen]

    def _quantile(
        self, aggregate: Aggregate, statement: Statement, hits: _Hits
    ) -> tuple[pa.Array, ...]:
        rows = _ragged(self._starts[hits.group], hits.count)
        key = np.repeat(hits.key, hits.count)
        ends = [
            _pick(aggregate, key, values, hits.keys)
            for key, values in (
                (key, self._column("lb_max")[rows]),
                (key, self._column("ub_min")[rows]),
                self._world(statement),
            )
        ]
        widened = not aggregate.discrete and (
            aggregate.quantile.denominator > 2 or self._kind == "float"
        )
        if widened:
            for place, sign in ((0, -1.0), (1, 1.0)):
                ends[place] = ends[place] + sign * np.abs(ends[place]) * 2.0**-50
        return tuple(_or_null(end, hits) for end in ends)


def _only_counts(statement: Statement) -> bool:
    return all(aggregate.kind == "count" for aggregate in statement.aggregates)


def _or_null(values: npt.NDArray[Any], hits: _Hits) -> pa.Array:
    # Without GROUP BY an empty selection still gives one row, of nulls.
    return (
        pa.array(values)
        if len(hits.key)
        else pa.nulls(hits.keys, pa.from_numpy_dtype(values.dtype))
    )


def _ragged(starts: Integers, sizes: Integers) -> Integers:
    ends = np.cumsum(sizes)
    shift = np.repeat(starts - (ends - sizes), sizes)
    return np.asarray(np.arange(len(shift)) + shift)


def _pick(
    aggregate: Aggregate, key: Integers, values: npt.NDArray[Any], keys: int
) -> npt.NDArray[Any]:
    if not len(key):
        return np.zeros(keys)
    order = np.lexsort((values, key))
    ordered, sizes = values[order], np.bincount(key, minlength=keys)
    first = np.cumsum(sizes) - sizes
    top, bottom = aggregate.quantile.numerator, aggregate.quantile.denominator
    if aggregate.discrete:
        place = np.maximum((top * sizes + bottom - 1) // bottom, 1) - 1
        return np.asarray(ordered[first + place])
    at, rest = np.divmod(top * (sizes - 1), bottom)
    here = ordered[first + at].astype(np.float64)
    then = ordered[first + at + (rest > 0)].astype(np.float64)
    return np.asarray(here + (then - here) * (rest / bottom))
