"""Camouflage at work: records known by their cells, and ranges of statistics over all that agree."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.audit.dependences import Dependence, families
from discreet.data.engines.base import ROW, Relation
from discreet.data.engines.changes import attach
from discreet.data.sql.query import Measure, Query, raw_query
from discreet.data.sql.total import total
from discreet.errors import InputError, RefusedError
from discreet.queries.guards._base import Keeper, Proposal, Protected, aggregate
from discreet.queries.guards._cells import LARGEST, Grid, Tree, leaves_of, round_up, step_of
from discreet.queries.guards._dependences import dependences, searched
from discreet.queries.guards._few_values import few_values
from discreet.queries.guards._followed import bent, require_straight
from discreet.queries.guards._interval_settings import IntervalSettings
from discreet.queries.guards._leaves import LeafSums, Told, added_by_leaf, by_leaf, is_plain
from discreet.queries.guards._missing import require_known_gaps
from discreet.queries.guards._profiles import (
    Shortcut,
    columns_with_gaps,
    public_columns,
    sorted_places,
)
from discreet.queries.guards._units import require_single

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.ledger.store import Ledger

__all__ = ["IntervalKeeper"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
#: Ends are moved outward by this share, so that the rounding of sums cannot leave the truth out.
ROUNDING = 1e-9
#: Steps that keep an expression growing or falling with the value.
_LINEAR = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren, exp.Cast, exp.Trunc)
_ENDS = ("lower", "upper")
_VARIANCES = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")


@dataclasses.dataclass(frozen=True, eq=False)
class Hidden:
    """What may be told of one column: the ends of each record's cell, and slots of sums.

    Arrays follow the order of the numbered records; records without a value have NaN and no leaf.
    """

    low: Floats
    high: Floats
    leaf: Ids
    tree: Tree
    rows: Relation
    #: The same added up by leaf and public values, where that is far less.
    parts: LeafSums | None
    #: Subtracted before squares are added up, so that they lose little.
    middle: float


class IntervalKeeper(Keeper):
    """Answers intervals; the cells of a column are made when it is first asked about."""

    def __init__(self, guard: IntervalSettings, data: Protected, ledger: Ledger | None) -> None:
        self._guard, self._data = guard, data
        self._lock = threading.RLock()
        self._hidden: dict[str, Hidden] = {}
        self._numbered: Relation | None = None
        if guard.per_record is not None:
            data.relation.require(guard.per_record)
        require_single(data, "camouflage")
        #: Columns that follow from others are told as what follows from the others' cells.
        plain, logarithms = searched(data), searched(data, "logarithm")
        found = dependences(data, guard.dependent, plain)
        self._dependent = {d.column: d for d in reversed(found)}
        self.family = families(found)
        require_straight(bent(data, (plain, logarithms)), self.family)
        require_known_gaps(data, columns_with_gaps(data), guard.missing)
        self._few = few_values(data)
        self._shortcut = Shortcut(data)
        self.notices = tuple(str(d) for d in self._dependent.values())

    def answer(self, query: Query, user: str, ready: Any = None) -> Proposal:
        secret = self._attribute(query)
        if secret is None:
            return Proposal("interval", self._public(query))
        if secret in query.predicate_columns:
            _require_conditions(query, secret)
            return Proposal("interval", self._selected(query, secret, self._of(secret).rows))
        columns: dict[str, exp.Expression] = {}
        for number, measure in enumerate(query.measures):
            columns |= self._columns(f"m{number}", measure, secret)
        columns = columns or {"n": exp.Count(this=exp.Star())}
        hidden = self._of(secret)
        parts = hidden.parts
        if (
            parts is not None
            and parts.profiles.can_tell(query)
            and all(is_plain(m, secret) for m in query.measures)
        ):
            told = parts.told(query, hidden.tree)
            return Proposal("interval", _ranges(query, secret, _counted(query, told), _known(told)))
        table = self._data.engine.fetch(raw_query(query, hidden.rows.query, columns))
        sums = None
        if any(is_plain(m, secret) and m.function != "count" for m in query.measures):
            cells = by_leaf(query, hidden.rows)
            group = _places(table, cells, len(query.keys))
            sums = _sums(hidden, cells, len(query.keys), group, table.num_rows)
        return Proposal("interval", _ranges(query, secret, table, sums))

    def _public(self, query: Query) -> pa.Table:
        """Return what is asked of public columns, as it is."""
        import pyarrow as pa

        from discreet.queries.guards._grouping import summed

        profiles = self._shortcut.profiles(query)
        if profiles is None or any(m.function != "count" or m.argument for m in query.measures):
            columns = {f"m{n}": aggregate(m) for n, m in enumerate(query.measures)}
            return _plain(self._data.fetch(query, columns))
        keys, (flat, ends, _) = profiles.grouping(query)
        number = pa.array(summed(profiles.counts, flat, ends))
        named = {name: keys.column(name) for name in keys.column_names}
        return pa.table(named | {f"m{n}": number for n in range(len(query.measures))})

    def prepare(self, query: Query) -> None:
        self._shortcut.start()
        self.answer(query, "")

    def expect(self, query: Query, user: str) -> dict[str, Any]:
        try:
            secret = self._attribute(query)
            if secret is not None and secret not in query.predicate_columns:
                for measure in query.measures:
                    self._columns("m", measure, secret)
            elif secret is not None:
                _require_conditions(query, secret)
        except RefusedError as error:
            return {"kind": "refused", "reason": error.message, "instead": error.hint or ""}
        if secret is None:
            return {"kind": "exact", "reason": "no confidential column is asked about"}
        return {"reason": f"a single record's interval is at least {self._guard.bound:.0%} wide"}

    # -- what is asked ---------------------------------------------------------------------------
    def _attribute(self, query: Query) -> str | None:
        """Return the one confidential column a question is about."""
        confidential = self._data.confidential
        if named := sorted(
            frozenset[str]().union(*(key.columns for key in query.keys)) & confidential
        ):
            raise RefusedError(
                f"groups of the confidential column {named[0]!r} are not shown",
                code="confidential-key",
                hint="group by other columns",
            )
        used = query.predicate_columns.union(*(m.columns for m in query.measures)) & confidential
        if len(used) > 1:
            raise RefusedError(
                "a question may concern one confidential column",
                code="several-confidential",
                hint="ask about " + " and ".join(sorted(used)) + " separately",
            )
        return next(iter(used), None)

    def _columns(self, name: str, measure: Measure, secret: str) -> dict[str, exp.Expression]:
        """Return the aggregates that the range of one measure is made of, but for plain sums."""
        if secret not in measure.columns or measure.argument is None:
            return {name: aggregate(measure)}
        function = measure.function
        if function == "count":
            return {name: aggregate(measure)}
        if function in ("sum", "avg"):
            if measure.column == secret:
                return {}  # from the tree
            _require_linear(measure.argument, secret)
            kind = exp.Sum if function == "sum" else exp.Avg
            low, high = (total(_moved(measure.argument, secret, f"__{e}")) for e in _ENDS)
            return {
                f"{name}_lower": kind(this=exp.Least(this=low, expressions=[high])),
                f"{name}_upper": kind(
                    this=exp.Greatest(this=low.copy(), expressions=[high.copy()])
                ),
            }
        if measure.column != secret:
            raise RefusedError(
                f"{function.upper()} of an expression has no range",
                code="not-a-column",
                hint=f"ask for {function.upper()}({secret})",
            )
        if function in _VARIANCES:
            return _moments(name)
        # Minimum, maximum and quantiles grow with every value: they range between their values
        # at everybody's lower and upper end.
        moved = {end: _replaced(measure, secret, f"__{end}") for end in ("lower", "upper")}
        return {f"{name}_{end}": aggregate(m) for end, m in moved.items()}

    def _selected(self, query: Query, secret: str, rows: Relation) -> pa.Table:
        """Count by a condition on the confidential column: who certainly meets it, who may."""
        import pyarrow as pa

        assert query.predicate is not None
        parts = _conditions(query.predicate)
        public: list[Any] = []
        certain: list[Any] = []
        possible: list[Any] = []
        for part in parts:
            if not any(c.name == secret for c in part.find_all(exp.Column)):
                public.append(part.copy())
                continue
            sure, may = _both(part, secret)
            certain.append(sure)
            possible.append(may)
        condition: Any = exp.and_(*public) if public else None
        wider = _with_predicate(query, condition)
        columns = {
            f"m{n}_{end}": exp.Coalesce(
                this=exp.Sum(
                    this=exp.Case(
                        ifs=[exp.If(this=exp.and_(*tests), true=exp.Literal.number(1))],
                        default=exp.Literal.number(0),
                    )
                ),
                expressions=[exp.Literal.number(0)],
            )
            for n in range(len(query.measures))
            for end, tests in (("lower", certain), ("upper", possible))
        }
        table = self._data.engine.fetch(raw_query(wider, rows.query, columns))
        return pa.table(
            {
                name: table.column(name)
                if name.startswith("k")
                else pa.array(_floats(table.column(name)).astype(np.int64))
                for name in table.column_names
            }
        )

    # -- cells and slots -------------------------------------------------------------------------
    def _of(self, secret: str) -> Hidden:
        with self._lock:
            if secret not in self._hidden:
                found = self._dependent.get(secret)
                self._hidden[secret] = (
                    self._made(secret) if found is None else self._derived(secret, found)
                )
            return self._hidden[secret]

    def _rows(self) -> Relation:
        if self._numbered is None:
            self._numbered = self._data.engine.number(self._data.relation)
        return self._numbered

    def _made(self, secret: str) -> Hidden:
        engine, rows = self._data.engine, self._rows()
        if not self._data.catalog[secret].is_number:
            raise RefusedError(
                f"column {secret!r} is not a number", code="type-mismatch", hint="ask COUNT(*)"
            )
        public = public_columns(self._data)
        unit = self._data.catalog.unit
        wanted = list(
            dict.fromkeys([ROW, secret, *public, *([unit] if unit else []), *self._extra()])
        )
        table = engine.fetch(engine.project(rows, wanted))
        table = table.take(sorted_places([table.column(ROW)]))
        values = np.clip(_floats(table.column(secret)), -LARGEST, LARGEST)
        known = ~np.isnan(values)
        grid = self._grid(values[known])
        low, high = np.full(values.size, np.nan), np.full(values.size, np.nan)
        low[known], high[known] = grid.cells(values[known], self._shares(table)[known])
        leaf = np.full(values.size, -1, np.int64)
        # Records of one profile, and in it those of one cell, come together; what decides among
        # them must not be their values.
        order = _order(table, [*public, *([unit] if unit else [])], low, known, len(public))
        here = np.flatnonzero(known)[order[0]]
        leaf[here] = leaves_of(order[1], self._guard.group)
        if secret in self._few:
            # Whoever knows the few values there are would read them from sums.
            leaf[known], tree = 0, Tree.flat(low[known], high[known])
        else:
            tree = Tree.of(leaf[known], values[known], low[known], high[known], grid.step)
        return self._attached(low, high, leaf, tree)

    def _derived(self, secret: str, found: Dependence) -> Hidden:
        """Return the cells of a column that follows from others: from their cells.

        Records that do not follow, because another column has no value or a far other one, have
        cells of their own, and those that have no value have none.
        """
        bases = {name: self._of(name) for name in found.factors}
        low = high = np.zeros(self._data.count)
        for name, factor in found.factors.items():
            ends = factor * bases[name].low, factor * bases[name].high
            low, high = low + np.minimum(*ends), high + np.maximum(*ends)
        low, high = low + found.shift + found.slack[0], high + found.shift + found.slack[1]
        engine = self._data.engine
        table = engine.fetch(engine.project(self._rows(), [ROW, secret, *self._extra()]))
        table = table.take(sorted_places([table.column(ROW)]))
        values = np.clip(_floats(table.column(secret)), -LARGEST, LARGEST)
        known = ~np.isnan(values)
        near = 1e-9 * np.abs(values)  # what rounding may differ by
        apart = known & ~((low - near <= values) & (values <= high + near))
        if apart.any():
            own = self._grid(values[known]).cells(values[apart], self._shares(table)[apart])
            # Together with what would have followed: that it does not follow narrows nothing.
            low[apart], high[apart] = np.fmin(low[apart], own[0]), np.fmax(high[apart], own[1])
        low[~known] = high[~known] = np.nan
        (base, *others) = bases.values()
        if not others and not apart.any() and np.array_equal(known, base.leaf >= 0):
            (factor,) = found.factors.values()
            counts = np.bincount(base.leaf[base.leaf >= 0])
            tree = base.tree.scaled(factor, found.shift, counts, found.slack)
            return self._attached(low, high, base.leaf, tree)
        leaf = np.where(known, 0, -1).astype(np.int64)
        return self._attached(low, high, leaf, Tree.flat(low[known], high[known]))

    def _attached(self, low: Floats, high: Floats, leaf: Ids, tree: Tree) -> Hidden:
        import pyarrow as pa

        missing = leaf < 0
        centre, half = (low + high) / 2, (high - low) / 2
        middle = float(centre[~missing].mean()) if (~missing).any() else 0.0
        made = {"__lower": low, "__upper": high, "__centre": centre - middle, "__half": half}
        columns: dict[str, Any] = {ROW: pa.array(np.arange(leaf.size))}
        columns |= {name: pa.array(column, mask=missing) for name, column in made.items()}
        columns["__leaf"] = pa.array(leaf, mask=missing)
        engine = self._data.engine
        rows = engine.materialize(attach(self._rows(), pa.table(columns)))
        parts = added_by_leaf(rows, public_columns(self._data), leaf.size, self._data.catalog)
        return Hidden(low, high, leaf, tree, rows, parts, middle)

    def _grid(self, values: Floats) -> Grid:
        """Return the grid of a column: its order of magnitude and its step may be known."""
        mean = float(np.abs(values).mean()) if values.size else 0.0
        largest = round_up(float(np.abs(values).max(initial=0.0)))
        minimum = self._guard.minimum
        if minimum is None:
            minimum = round_up(mean / 30)
        return Grid(minimum, step_of(values), largest or 1.0)

    def _extra(self) -> list[str]:
        return [self._guard.per_record] if self._guard.per_record else []

    def _shares(self, table: pa.Table) -> Floats:
        share = np.full(table.num_rows, self._guard.bound)
        if self._guard.per_record is not None:
            asked = _floats(table.column(self._guard.per_record))
            if (asked[~np.isnan(asked)] < 0).any():
                raise InputError(
                    "a respondent's bound is negative",
                    code="negative-bound",
                    column=self._guard.per_record,
                )
            share = np.fmax(share, asked)
        return share

    def close(self) -> None:
        """Drop the cells."""
        self._shortcut.close()
        for hidden in self._hidden.values():
            self._data.engine.drop(hidden.rows)
            if hidden.parts is not None:
                hidden.parts.profiles.close()
        self._hidden.clear()


def _ranges(
    query: Query, secret: str, table: pa.Table, sums: tuple[Floats, Floats, Floats] | None
) -> pa.Table:
    """Return the range of each measure of each group."""
    import pyarrow as pa

    columns: dict[str, Any] = {f"k{n}": table.column(f"k{n}") for n in range(len(query.keys))}
    for number, measure in enumerate(query.measures):
        name = f"m{number}"
        if secret not in measure.columns or measure.function == "count":
            columns[name] = _simple(table.column(name))
            continue
        if measure.column == secret and measure.function in ("sum", "avg"):
            assert sums is not None
            low, high, count = sums
            if measure.function == "avg":
                low, high = low / count, high / count
        elif measure.function in _VARIANCES:
            low, high = _variances(name, measure.function, table)
        else:
            low, high = (_floats(table.column(f"{name}_{end}")) for end in ("lower", "upper"))
        slack = ROUNDING * np.maximum(np.abs(low), np.abs(high))
        if measure.function in _VARIANCES:
            low = np.maximum(low, slack)  # no variance is negative
        # An empty set has no value, and neither end of one.
        known = ~(np.isnan(low) | np.isnan(high))
        columns[f"{name}_lower"] = pa.array(low - slack, mask=~known)
        columns[f"{name}_upper"] = pa.array(high + slack, mask=~known)
    return pa.table(columns)


def _sums(
    hidden: Hidden, parts: pa.Table, keys: int, group: Ids, groups: int
) -> tuple[Floats, Floats, Floats]:
    """Return the range of each group's sum, and its number of values, NaN where there is none."""
    leaf = _floats(parts.column(f"k{keys}"))
    has = ~np.isnan(leaf)
    low, high, number = (_floats(parts.column(name))[has] for name in ("low", "high", "n"))
    count = np.bincount(group[has], weights=number, minlength=groups)
    ends = hidden.tree.ranges(group[has], groups, leaf[has].astype(np.int64), low, high)
    return _where_known(count, *ends)


def _known(told: Told) -> tuple[Floats, Floats, Floats]:
    return _where_known(told.known, told.low, told.high)


def _where_known(count: Any, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
    """Return ends and number of values of each group, NaN where there is none. Any: an array."""
    values: Floats = np.where(count > 0, count, np.nan).astype(np.float64)
    return np.where(count > 0, low, np.nan), np.where(count > 0, high, np.nan), values


def _counted(query: Query, told: Told) -> pa.Table:
    """Return the keys of groups with their counts."""
    import pyarrow as pa

    columns: dict[str, Any] = {name: told.keys.column(name) for name in told.keys.column_names}
    for number, measure in enumerate(query.measures):
        if measure.function == "count":
            columns[f"m{number}"] = pa.array(
                told.everybody if measure.argument is None else told.known
            )
    return pa.table(columns)


def _order(
    table: pa.Table, names: list[str], low: Floats, known: Any, public: int
) -> tuple[Ids, Ids]:
    """Return the order of records by public values, cell and unit, and the profile of each.

    Any: a mask of those that have a value.
    """
    import pyarrow as pa

    kept = table.filter(pa.array(known))
    columns: list[Any] = [kept.column(name) for name in names]
    cells = pa.array(low[known])
    order = sorted_places([*columns[:public], cells, *columns[public:], kept.column(ROW)])
    codes = np.zeros(order.size, np.int64)
    for column in columns[:public]:
        encoded = _codes(column)[order]
        codes += np.r_[0, encoded[1:] != encoded[:-1]].cumsum() if order.size else 0
    return order, codes


def _codes(column: Any) -> Ids:
    """Return a number for each value of a column, the same for the same. Any: Arrow."""
    import pyarrow as pa

    plain = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(plain.type):
        plain = plain.cast(plain.type.value_type)
    try:
        encoded = plain.dictionary_encode("encode")
    except pa.ArrowNotImplementedError:  # such as spans of time
        encoded = pa.array([repr(value) for value in plain.to_pylist()]).dictionary_encode("encode")
    return np.asarray(encoded.indices.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def _places(table: pa.Table, parts: pa.Table, keys: int) -> Ids:
    """Return the row of the table that has the same keys, for each of the parts."""
    import pyarrow as pa

    codes = np.zeros(table.num_rows + parts.num_rows, np.int64)
    for number in range(keys):
        both = [table.column(f"k{number}"), parts.column(f"k{number}")]
        kind = both[0].type.value_type if pa.types.is_dictionary(both[0].type) else both[0].type
        chunks = [
            chunk if chunk.type == kind else chunk.cast(kind)
            for column in both
            for chunk in column.chunks
        ]
        indices = _codes(pa.chunked_array(chunks, kind))
        _, codes = np.unique(
            codes * (int(indices.max(initial=0)) + 1) + indices, return_inverse=True
        )
        codes = codes.ravel()
    place = np.empty(int(codes.max(initial=0)) + 1, np.int64)
    place[codes[: table.num_rows]] = np.arange(table.num_rows)
    return place[codes[table.num_rows :]]


def _moments(name: str) -> dict[str, exp.Expression]:
    """Return the count, sum and sums of squares of the cells' centres and half widths."""
    centre, half = _vector("__centre"), _vector("__half")
    return {
        f"{name}_n": exp.Count(this=centre),
        f"{name}_1": exp.Sum(this=centre.copy()),
        f"{name}_2": exp.Sum(this=exp.Mul(this=centre.copy(), expression=centre.copy())),
        f"{name}_h": exp.Sum(this=exp.Mul(this=half, expression=half.copy())),
    }


def _variances(name: str, function: str, table: pa.Table) -> tuple[Floats, Floats]:
    """Return the range of a variance or deviation.

    A deviation changes by no more than the root of the mean square of what the values change by.
    """
    counts = _floats(table.column(f"{name}_n"))
    share = np.where(counts > 0, counts, np.nan)
    squares = _floats(table.column(f"{name}_2")) / share
    mean = _floats(table.column(f"{name}_1")) / share
    # Cancellation leaves errors of the size of the squares.
    error = ROUNDING * squares
    variance = np.maximum(squares - mean**2, 0.0)
    reach = np.sqrt(_floats(table.column(f"{name}_h")) / share)
    low = np.maximum(np.sqrt(np.maximum(variance - error, 0.0)) - reach, 0.0) ** 2
    high = (np.sqrt(variance + error) + reach) ** 2
    if function.endswith("samp"):
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(counts > 1, counts / (counts - 1), np.nan)
        low, high = low * factor, high * factor
    return (np.sqrt(low), np.sqrt(high)) if function.startswith("stddev") else (low, high)


def _require_conditions(query: Query, secret: str) -> None:
    """Refuse what a condition on the confidential column is not answered for."""
    if any(m.function != "count" or m.argument is not None for m in query.measures):
        raise RefusedError(
            f"a condition on {secret!r} is answered only for COUNT(*)",
            code="confidential-condition",
            hint="select by other columns",
        )
    assert query.predicate is not None
    for part in _conditions(query.predicate):
        if any(c.name == secret for c in part.find_all(exp.Column)):
            _both(part, secret)


def _conditions(predicate: exp.Expression) -> list[exp.Expression]:
    parts = predicate.flatten() if isinstance(predicate, exp.And) else [predicate]
    return [cast("exp.Expression", part) for part in parts]


def _vector(name: str) -> exp.Expression:
    return exp.column(name, quoted=True)


def _moved(tree: exp.Expression, secret: str, name: str) -> exp.Expression:
    """Return an expression with one end of each record's cell in place of its value."""
    end = _vector(name)
    end.type = "bigint"  # cells are cut to a size already
    return tree.copy().transform(
        lambda node: end if isinstance(node, exp.Column) and node.name == secret else node
    )


def _replaced(measure: Measure, secret: str, name: str) -> Measure:
    assert measure.argument is not None
    return dataclasses.replace(measure, argument=_moved(measure.argument, secret, name))


def _require_linear(tree: exp.Expression, secret: str) -> None:
    found = [c for c in tree.find_all(exp.Column) if c.name == secret]
    node: Any = found[0]
    linear = len(found) == 1
    while linear and node is not tree:
        parent = node.parent
        linear = isinstance(parent, _LINEAR) and not (
            isinstance(parent, exp.Div) and parent.expression is node
        )
        node = parent
    if not linear:
        raise RefusedError(
            f"the expression is not linear in {secret!r}",
            code="not-linear",
            hint=f"use {secret} once, with + − * / only",
        )


def _both(part: exp.Expression, secret: str) -> tuple[exp.Expression, exp.Expression]:
    """Return a comparison as it certainly holds, and as it may hold."""
    flipped: dict[type[Any], type[Any]] = {
        exp.GT: exp.LT,
        exp.GTE: exp.LTE,
        exp.LT: exp.GT,
        exp.LTE: exp.GTE,
    }
    kind: type[Any] = type(part)
    left, right = part.this, part.args.get("expression")
    if isinstance(right, exp.Column) and kind in flipped:
        kind, left, right = flipped[kind], right, left
    is_plain = (
        isinstance(left, exp.Column)
        and left.name == secret
        and right is not None
        and right.find(exp.Column) is None
    )
    if is_plain and kind in (exp.GT, exp.GTE):
        ends = "__lower", "__upper"
    elif is_plain and kind in (exp.LT, exp.LTE):
        ends = "__upper", "__lower"
    else:
        raise RefusedError(
            f"this condition on {secret!r} has no range",
            code="confidential-condition",
            hint=f"compare {secret} with a number by <, <=, > or >=",
        )
    assert right is not None
    sure, may = (kind(this=_vector(end), expression=right.copy()) for end in ends)
    return sure, may


def _with_predicate(query: Query, predicate: exp.Expression | None) -> Query:
    return dataclasses.replace(query, predicate=predicate)


def _floats(column: Any) -> Floats:
    import pyarrow as pa

    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _simple(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column


def _plain(table: pa.Table) -> pa.Table:
    import pyarrow as pa

    columns: Mapping[str, Any] = {n: _simple(table.column(n)) for n in table.column_names}
    return pa.table(dict(columns))
