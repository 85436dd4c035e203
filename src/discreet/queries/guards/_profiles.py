"""Profiles: the public side of the records, on which query sets are decided.

Conditions on public columns never tell records with the same public values apart. Their
combinations are counted once and kept in memory; which of them a question holds is decided here,
without touching a confidential value. Sums over the records of a profile are also taken once, so
that a question about public columns adds up profiles instead of reading all records again.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.engines.base import Engine, Relation, connect
from discreet.data.engines.driver import fetching
from discreet.data.schema import Role
from discreet.data.sql.conditions import operands
from discreet.data.sql.query import Catalog, Query, from_clause, raw_query
from discreet.data.sql.spelling import spelled
from discreet.data.sql.total import total_key
from discreet.errors import EngineError
from discreet.queries.guards._base import Protected

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.queries.guards._grouping import Parts

__all__ = ["Profiles", "Shortcut", "columns_with_gaps", "sorted_places"]

_ID, _COUNT, _VALUE = "__profile", "__count", "__value"
#: Memory for what single conditions hold, for codes of keys, and for sums of profiles.
REMEMBERED_BYTES = 200_000_000
#: Sums of whole numbers beyond this are left to the engine.
LARGEST = 2.0**62
#: Guards that can do without keep no more profiles, and none for the first questions.
MOST_PROFILES, QUESTIONS = 2_000_000, 8

Bits = npt.NDArray[np.uint8]
Ids = npt.NDArray[np.int64]
#: Codes of the profiles, and the value of each code.
Codes = tuple[npt.NDArray[np.int32], Any]


class Remembered:
    """Arrays by name, at hand until newer ones need their place; safe for threads."""

    def __init__(self, most: int = REMEMBERED_BYTES) -> None:
        self._most, self._held = most, 0
        self._values: collections.OrderedDict[str, tuple[Any, int]] = collections.OrderedDict()
        self._lock = threading.Lock()

    def has(self, name: str) -> bool:
        """Whether something is kept under a name."""
        with self._lock:
            return name in self._values

    def get(self, name: str, make: Callable[[], tuple[Any, int]]) -> Any:
        """Return what is kept under a name; `make` gives it and its bytes. Any: arrays."""
        with self._lock:
            if name in self._values:
                self._values.move_to_end(name)
                return self._values[name][0]
        made = make()
        with self._lock:
            if name not in self._values:
                self._values[name] = made
                self._held += made[1]
            while self._held > self._most and len(self._values) > 1:
                self._held -= self._values.popitem(last=False)[1][1]
        return made[0]


@dataclasses.dataclass(frozen=True, eq=False)
class _Coded:
    """The combination of keys of each profile, as a number."""

    codes: npt.NDArray[np.int32]
    total: int
    #: The values of each key. Any: Arrow.
    values: tuple[Any, ...]
    #: Which value of each key a number stands for, where it is not counted through.
    places: npt.NDArray[np.integer[Any]] | None = None

    def keys(self, present: Ids) -> pa.Table:
        """Return the keys that some numbers stand for."""
        import pyarrow as pa

        if self.places is None:
            places = list(np.unravel_index(present, [len(column) for column in self.values]))
        else:
            places = list(self.places[:, present])
        return pa.table(
            {f"k{n}": column.take(pa.array(places[n])) for n, column in enumerate(self.values)}
        )


@dataclasses.dataclass(eq=False)
class Profiles:
    """Distinct combinations of public values, with their numbers of records."""

    engine: Engine
    relation: Relation
    counts: npt.NDArray[np.int64]
    #: Per column that has nulls: which profiles have a value.
    known: dict[str, npt.NDArray[np.bool_]]
    public: frozenset[str]
    catalog: Catalog
    #: The columns and conditions that profiles are told apart by, and the rows themselves.
    _keys: list[Any]
    _source: Relation
    _remembered: Remembered = dataclasses.field(default_factory=Remembered)
    _numbers: dict[str, list[float]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, data: Protected, rows: Relation | None = None) -> Profiles:
        """Count the profiles where the data lives, and keep them here."""
        rows = rows or data.relation
        public = public_columns(data)
        nullable = columns_with_gaps(data)
        named: list[Any] = [exp.column(name, quoted=True) for name in public]
        missing: list[Any] = [
            exp.Is(this=exp.column(name, quoted=True), expression=exp.Null()) for name in nullable
        ]
        flags = [exp.alias_(tree, f"__null_{place}") for place, tree in enumerate(missing)]
        name = data.catalog.relation
        counted = _by_profile([*named, *missing], rows, [*named, *flags], name)
        rows.engine.require_combinations(rows, public, "profiles", rows=data.count)
        with fetching("profiles"):
            table = data.engine.fetch(counted)
        counts = table.column(_COUNT).to_numpy().astype(np.int64)
        known = {
            name: ~table.column(f"__null_{place}").to_numpy(zero_copy_only=False).astype(bool)
            for place, name in enumerate(nullable)
        }
        keys = [*named, *missing]
        return cls.held(table.select(public), counts, known, data.catalog, keys, rows)

    @classmethod
    def held(
        cls,
        table: pa.Table,
        counts: npt.NDArray[np.int64],
        known: dict[str, npt.NDArray[np.bool_]],
        catalog: Catalog,
        keys: list[Any],
        rows: Relation,
    ) -> Profiles:
        """Keep profiles that are counted already. Any: the trees that they are told apart by."""
        import pyarrow as pa

        from discreet.queries.guards._grouping import grouped

        public = frozenset(table.column_names)
        numbered = table.append_column(_ID, pa.array(np.arange(counts.size, dtype="i4")))
        engine = connect("duckdb://")
        relation = engine.materialize(engine.load(numbered))
        grouped(np.packbits([True]), np.zeros(1, np.int32), 1)  # compiled now, not when asked
        return cls(engine, relation, counts, known, public, catalog, keys, rows)

    def crowd(self, records: int) -> str | None:
        """Return what the curator should know if profiles are nearly as many as records."""
        if 2 * self.counts.size <= records:
            return None
        return (
            f"the columns that may be asked about tell {self.counts.size:,} of {records:,} records "
            "apart, and each of these profiles is kept in memory: say which columns people need "
            "(columns: […]), or coarsen those with many values"
        )

    def values(self, name: str) -> list[Any]:
        """Return the value of a public column in each profile. Any: whatever it holds."""
        rows = self.engine.fetch(self.engine.project(self.relation, [name, _ID]))
        found: list[Any] = rows.sort_by(_ID).column(name).to_pylist()
        return found

    # -- which profiles a question holds ---------------------------------------------------------
    def can_tell(self, query: Query) -> bool:
        """Whether a question's conditions and keys name public columns only."""
        named = query.predicate_columns.union(*(key.columns for key in query.keys))
        return named <= self.public

    def inside(self, query: Query) -> Ids:
        """Return the profiles a question holds, whatever its keys."""
        if query.predicate is None:
            return np.arange(self.counts.size)
        return np.flatnonzero(np.unpackbits(self._chosen(query), count=self.counts.size))

    def _chosen(self, query: Query) -> Bits:
        """Return one bit per profile: whether the question holds it.

        A conjunction is true where each of its conditions is; conditions come back again and
        again, so what each holds is remembered.
        """
        if query.predicate is None:
            return np.packbits(np.ones(self.counts.size, bool))
        is_and = isinstance(query.predicate, exp.And)
        conditions: list[Any] = operands(query.predicate) if is_and else [query.predicate]
        return functools.reduce(np.bitwise_and, (self._bits(c, query) for c in conditions))

    def _bits(self, condition: exp.Expression, query: Query) -> Bits:
        def made() -> tuple[Bits, int]:
            names = {column.name for column in condition.find_all(exp.Column)}
            if len(names) == 1:
                codes, values = self._codes(exp.column(next(iter(names)), quoted=True), "")
                held = self._true(condition, next(iter(names)), values, query)[codes]
            else:
                held = np.zeros(self.counts.size, bool)
                held[self._where(condition, query, self.relation)] = True
            found = np.packbits(held)
            return found, found.nbytes

        found: Bits = self._remembered.get("where " + spelled(condition), made)
        return found

    def _true(
        self, condition: exp.Expression, name: str, values: Any, query: Query
    ) -> npt.NDArray[np.bool_]:
        """Return for which of a column's values a condition on it alone is true. Any: Arrow."""
        import pyarrow as pa

        test = _whole_test(condition) if pa.types.is_signed_integer(values.type) else None
        if test is not None:
            null = values.is_null().to_numpy(zero_copy_only=False)
            whole = test(values.cast(pa.int64()).fill_null(0).to_numpy())
            return np.asarray(whole & ~null, bool)
        table = pa.table({name: values, _ID: pa.array(np.arange(len(values), dtype="i4"))})
        loaded = self.engine.load(table)
        try:
            held = np.zeros(len(values), bool)
            held[self._where(condition, query, loaded)] = True
            return held
        finally:
            self.engine.drop(loaded)

    def _where(self, condition: exp.Expression, query: Query, rows: Relation) -> Ids:
        alone = dataclasses.replace(query, predicate=condition)
        tree = raw_query(alone, rows.query, {_ID: exp.column(_ID, quoted=True)}, keys=False)
        return np.asarray(self.engine.fetch(tree).column(0).to_numpy(), np.int64)

    # -- groups ----------------------------------------------------------------------------------
    def _codes(self, key: exp.Expression, kind: str) -> Codes:
        """Return the value of a key for each profile, as codes and what they stand for."""

        def made() -> tuple[Codes, int]:
            value = exp.alias_(total_key(key, kind), _VALUE)
            tree = exp.select(value, exp.column(_ID, quoted=True)).from_(
                from_clause(self.relation.query, self.catalog.relation)
            )
            rows = self.engine.fetch(tree)
            encoded = _plain(rows.column(_VALUE)).dictionary_encode("encode")
            order = sorted_places([encoded.dictionary])  # groups come in the order of their keys
            values = encoded.dictionary.take(order)
            place = np.empty(len(values), np.int32)
            place[order] = np.arange(len(values), dtype=np.int32)
            codes = np.empty(self.counts.size, np.int32)
            codes[rows.column(_ID).to_numpy()] = place[encoded.indices.to_numpy()]
            return (codes, values), codes.nbytes + values.nbytes

        # Conditions name a column as `people.age`, the columns themselves as `age`.
        name = key.name if isinstance(key, exp.Column) else spelled(key)
        found: Codes = self._remembered.get("key " + name, made)
        return found

    def grouping(self, query: Query) -> tuple[pa.Table, Parts]:
        """Return the keys of each group, and the profiles group by group."""
        import pyarrow as pa

        from discreet.queries.guards._grouping import grouped

        if not query.keys:  # one group, also of nobody
            flat = self.inside(query)
            return pa.table({}), (flat, np.array([flat.size]), np.zeros(1, np.int64))
        coded = self._coded(query)
        parts = grouped(self._chosen(query), coded.codes, coded.total)
        return coded.keys(parts[2]), parts

    def marking(self, query: Query) -> tuple[pa.Table, Ids, Ids, int]:
        """Return the keys of each group, the profiles in order, the group of each, and how many."""
        import pyarrow as pa

        from discreet.queries.guards._grouping import marked

        if not query.keys:
            flat = self.inside(query)
            return pa.table({}), flat, np.zeros(flat.size, np.int64), 1
        coded = self._coded(query)
        places, group, present = marked(self._chosen(query), coded.codes, coded.total)
        return coded.keys(present), places, group, int(present.size)

    def _coded(self, query: Query) -> _Coded:
        """Return the combination of keys of each profile as a number."""
        keys = [self._codes(key.expression, key.kind) for key in query.keys]
        values = tuple(column for _, column in keys)
        codes, sizes = keys[0][0], tuple(len(column) for column in values)
        total = sizes[0]
        for (more, _), size in zip(keys[1:], sizes[1:], strict=True):
            wide = codes.astype(np.int64) * size + more
            total *= size
            if total > 4 * self.counts.size + 1024:
                # Combinations are many more than there are: those there are get numbers.
                columns = np.stack([codes for codes, _ in keys])
                unique, place = np.unique(columns, axis=1, return_inverse=True)
                return _Coded(place.ravel().astype(np.int32), unique.shape[1], values, unique)
            codes = wide.astype(np.int32)
        return _Coded(codes, total, values)

    def groups(self, query: Query) -> tuple[pa.Table, list[Ids]]:
        """Return the keys of each group, and the profiles in it."""
        keys, (flat, ends, _) = self.grouping(query)
        return keys, [flat[a:b] for a, b in itertools.pairwise([0, *ends])]

    def numbers(self, column: str) -> list[float]:
        """Return the numbers that occur in a public column, in order; none where it has others."""
        if column not in self._numbers:
            distinct = exp.select(exp.column(column, quoted=True)).distinct()
            select = distinct.from_(from_clause(self.relation.query, "t"))
            values = self.engine.fetch(select).column(0).to_pylist()
            known = [v for v in values if v is not None and v == v]
            plain = all(isinstance(v, int | float) and not isinstance(v, bool) for v in known)
            self._numbers[column] = sorted(float(v) for v in known) if plain else []
        return self._numbers[column]

    def rows(self) -> dict[str, npt.NDArray[Any]]:
        """Return the public values of each profile, by column. Any: of any type."""
        rows = self.engine.fetch(self.relation)
        order = np.argsort(rows.column(_ID).to_numpy())
        return {
            name: np.array(rows.column(name).to_pylist(), object)[order]
            for name in rows.column_names
            if name != _ID
        }

    def records(self, inside: Ids) -> int:
        """Return the number of records in some profiles."""
        return int(self.counts[inside].sum())

    # -- sums ------------------------------------------------------------------------------------
    def sums(
        self,
        name: str,
        tree: Callable[[], exp.Expression],
        parts: Parts,
        rows: Relation | None = None,
    ) -> npt.NDArray[Any] | None:
        """Return a count or sum for each group; None where whole numbers would grow too large.

        The tree is made and computed once for each profile, where the data lives. `rows` are the
        same records with more columns. Any: whole numbers or floats.
        """
        from discreet.queries.guards._grouping import summed

        found = self._remembered.get("sum " + name, lambda: self._by_profile(tree(), rows))
        return None if found is None else np.asarray(summed(found, parts[0], parts[1]))

    def are_known(self, names: Iterable[str]) -> bool:
        """Whether sums are at hand, so that the engine need not be asked."""
        return all(self._remembered.has("sum " + name) for name in names)

    def _by_profile(self, tree: exp.Expression, rows: Relation | None) -> tuple[Any, int]:
        source = rows or self._source
        value = exp.alias_(tree.copy(), _VALUE)
        try:
            table = source.engine.fetch(
                _by_profile(self._keys, source, [value], self.catalog.relation)
            )
        except EngineError as error:
            if error.facts.get("kind") in ("Conversion", "OutOfRange"):
                return None, 0  # beyond whole numbers of 64 bits
            raise
        counts = table.column(_COUNT).to_numpy()
        # Both are in the order of the profiles' values.
        if counts.size != self.counts.size or (counts != self.counts).any():
            raise EngineError("the records have changed", code="data-changed")
        values = table.column(_VALUE).to_numpy(zero_copy_only=False)
        if values.dtype.kind not in "iuf" or (
            values.dtype.kind != "f" and np.abs(values.astype(np.float64)).sum() > LARGEST
        ):
            return None, 0
        return values, values.nbytes

    def close(self) -> None:
        """Let go of the memory."""
        self.engine.close()


class Shortcut:
    """Profiles for guards that can do without: kept once questions come, where they are few."""

    def __init__(self, data: Protected, rows: Relation | None = None) -> None:
        self._data, self._rows = data, rows or data.relation
        self._asked, self._started = 0, False
        self._lock, self._starting = threading.Lock(), threading.Lock()
        self._profiles: Profiles | None = None

    def profiles(self, query: Query, asked: int = 1) -> Profiles | None:
        """Return profiles that can tell the records of a question, or None."""
        if self._due(asked):
            self.start()
        found = self._profiles
        return found if found is not None and found.can_tell(query) else None

    def start(self) -> None:
        """Count the profiles now, if they are few."""
        with self._starting:
            if not self._started and self._are_few():
                self._profiles = Profiles.of(self._data, self._rows)
            self._started = True

    def never(self) -> None:
        """Answer all questions from the records, however many are asked."""
        with self._starting:
            self._started = True

    def _due(self, asked: int) -> bool:
        """Whether this is the question from which on profiles pay."""
        with self._lock:
            self._asked += asked
            return asked > 0 and self._asked == QUESTIONS and not self._started

    def _are_few(self) -> bool:
        names: list[Any] = [exp.column(name, quoted=True) for name in public_columns(self._data)]
        if not names:
            return True
        distinct = exp.select(*names).distinct().from_(from_clause(self._rows.query, "t"))
        count = exp.alias_(exp.Count(this=exp.Star()), "n")
        tree = exp.select(count).from_(from_clause(distinct, "d"))
        number = int(self._rows.engine.fetch(tree).column(0)[0].as_py())
        return number <= MOST_PROFILES

    def close(self) -> None:
        """Let go of the memory."""
        if self._profiles is not None:
            self._profiles.close()


def sorted_places(columns: Sequence[Any]) -> Ids:
    """Return the places of rows in the order of some columns, missing values last. Any: Arrow."""
    import pyarrow as pa

    if not columns:
        return np.zeros(1, np.int64)  # one row, of all records
    keys = {str(number): _plain(column) for number, column in enumerate(columns)}
    places = pa.array(np.arange(len(columns[0])))
    names: list[Any] = [(name, "ascending") for name in keys]
    try:
        table = pa.table(keys | {_ID: places}).sort_by(names)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):  # as texts, such as spans of time
        texts = {
            name: pa.array([None if value is None else repr(value) for value in key.to_pylist()])
            for name, key in keys.items()
        }
        table = pa.table(texts | {_ID: places}).sort_by(names)
    return np.asarray(table.column(_ID).to_numpy(), np.int64)


def _plain(column: Any) -> Any:
    """Return a column in one piece, without a dictionary of its own. Any: Arrow."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def public_columns(data: Protected) -> list[str]:
    """Return the columns that conditions may name under every guard."""
    catalog = data.catalog
    hidden = data.confidential | catalog.with_role(Role.IDENTIFIER) | {catalog.unit}
    return [n for n in data.relation.columns if n not in hidden and data.is_askable(n)]


def _by_profile(keys: list[Any], rows: Relation, values: list[Any], name: str) -> exp.Select:
    """Return a tree of values for each profile, in the order of the profiles."""
    count = exp.alias_(exp.cast(exp.Count(this=exp.Star()), "bigint"), _COUNT)
    query = exp.select(*(v.copy() for v in values), count).from_(from_clause(rows.query, name))
    if keys:
        query = query.group_by(*(key.copy() for key in keys))
        query = query.order_by(*(exp.Ordered(this=k.copy(), nulls_first=False) for k in keys))
    return query


_COMPARISONS: dict[type[Any], Callable[[Any, int], Any]] = {
    exp.EQ: lambda values, other: values == other,
    exp.NEQ: lambda values, other: values != other,
    exp.GT: lambda values, other: values > other,
    exp.GTE: lambda values, other: values >= other,
    exp.LT: lambda values, other: values < other,
    exp.LTE: lambda values, other: values <= other,
}


def _whole_test(condition: exp.Expression) -> Callable[[Ids], npt.NDArray[np.bool_]] | None:
    """Return a comparison of a whole-number column with whole numbers, or None."""
    if not isinstance(condition.this, exp.Column):
        return None
    if isinstance(condition, exp.Between):
        low, high = (_whole_number(condition.args.get(end)) for end in ("low", "high"))
        if low is None or high is None or condition.args.get("symmetric"):
            return None
        return lambda values: (values >= low) & (values <= high)
    compare = _COMPARISONS.get(type(condition))
    other = _whole_number(condition.args.get("expression"))
    if compare is None or other is None:
        return None
    return lambda values: np.asarray(compare(values, other))


def _whole_number(tree: Any) -> int | None:
    """Return the value of a short whole-number literal. Any: part of a tree."""
    if isinstance(tree, exp.Neg):
        inner = _whole_number(tree.this)
        return None if inner is None else -inner
    if isinstance(tree, exp.Literal) and not tree.is_string:
        text = str(tree.this)
        return int(text) if text.isdecimal() and text.isascii() and len(text) <= 18 else None
    return None


def columns_with_gaps(data: Protected) -> list[str]:
    """Return the columns that have nulls and can be counted or summed."""
    unit = data.catalog.unit
    names = [n for n in data.relation.columns if n != unit and data.catalog[n].is_number]
    confidential = [n for n in data.confidential if n not in names and n != unit]
    names = [name for name in (*names, *confidential) if data.is_askable(name)]
    if not names:
        return []
    counts = [
        exp.alias_(exp.Count(this=exp.column(name, quoted=True)), f"n{place}")
        for place, name in enumerate(names)
    ]
    select = exp.select(*counts).from_(from_clause(data.relation.query, "t"))
    row = data.engine.fetch(select).to_pylist()[0]
    return [name for place, name in enumerate(names) if row[f"n{place}"] < data.count]
