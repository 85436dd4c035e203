"""Camouflage at work: hidden vectors in the engine, and ranges of statistics over their hull."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.engines.base import ROW, Relation
from discreet.data.sql.query import Measure, Query, raw_query
from discreet.errors import InputError, RefusedError
from discreet.queries.guards._base import Keeper, Proposal, Protected, aggregate
from discreet.queries.guards._hull_sums import Sums, are_additive
from discreet.queries.guards._profiles import Shortcut, sorted_places
from discreet.randomness import Randomness

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.ledger.store import Ledger
    from discreet.queries.guards.camouflage import Camouflage

__all__ = ["HullKeeper", "hidden_vectors", "least_variance"]

Floats = npt.NDArray[np.float64]
#: Ends are moved outward by this share, so that the rounding of sums cannot leave the truth out.
ROUNDING = 1e-9
_LINEAR = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren, exp.Cast)
_VARIANCES = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")
#: More than the rounding of a sum of products, as a share of the sum of squares.
CANCELLED = 1e-9


def hidden_vectors(
    values: Floats, widths: Floats, vectors: int, rng: Randomness
) -> tuple[Floats, Floats]:
    """Return vectors (one per column) of which the values are a convex combination, and its weights.

    Each row spreads by at least the row's width.

    >>> rows, weights = hidden_vectors(
    ...     np.array([10.0, 20.0]), np.array([3.0, 6.0]), 3, Randomness.seeded(1)
    ... )
    >>> np.allclose(rows @ weights, [10, 20]), bool((np.ptp(rows, axis=1) >= [3, 6]).all())
    (True, True)
    """
    # No weight is small: each vector matters to every record.
    weights = 0.5 + rng.uniform(vectors)
    weights /= weights.sum()
    spread = rng.uniform(values.size * vectors).reshape(values.size, vectors)
    # A constant record would have no room; two places are pulled apart in every record.
    spread -= (spread @ weights)[:, None]
    extent = np.ptp(spread, axis=1)
    scale = (1.0 + 0.5 * rng.uniform(values.size)) / np.maximum(extent, 1e-3)
    rows = values[:, None] + spread * (scale * widths)[:, None]
    short = np.ptp(rows, axis=1) < widths
    if short.any():  # draws that nearly coincide: the first two vectors are set apart instead
        rows[short] = values[short, None]
        rows[short, 0] -= widths[short] * weights[1]
        rows[short, 1] += widths[short] * weights[0]
        stretch = 1.0 / (weights[0] + weights[1])
        rows[short] = values[short, None] + (rows[short] - values[short, None]) * stretch * 1.01
    return rows, weights


class HullKeeper(Keeper):
    """Answers intervals; the vectors of a column are made when it is first asked about."""

    def __init__(self, guard: Camouflage, data: Protected, ledger: Ledger | None) -> None:
        self._guard, self._data, self._ledger = guard, data, ledger
        self._lock = threading.RLock()
        self._rows: dict[str, Relation] = {}
        self._shortcut = Shortcut(data)
        if guard.per_record is not None:
            data.relation.require(guard.per_record)

    def answer(self, query: Query, user: str, ready: Any = None) -> Proposal:
        secret = self._attribute(query)
        if secret is None:
            counted = self._added(query, None, self._data.relation)
            if counted is not None:
                return Proposal("interval", counted)
            columns = {f"m{n}": aggregate(m) for n, m in enumerate(query.measures)}
            return Proposal("interval", _plain(self._data.fetch(query, columns)))
        rows = self._hull(secret)
        if secret in query.predicate_columns:
            return Proposal("interval", self._selected(query, secret, rows))
        columns = {}
        for number, measure in enumerate(query.measures):
            columns |= self._columns(f"m{number}", measure, secret)
        table = self._added(query, secret, rows)
        if table is None:
            table = self._data.engine.fetch(raw_query(query, rows.query, columns))
        return Proposal("interval", self._ranges(query, secret, table))

    def _added(self, query: Query, secret: str | None, rows: Relation) -> pa.Table | None:
        """Return the aggregates from those of profiles; None where they do not add up."""
        if not are_additive(query, secret):
            return None
        profiles = self._shortcut.profiles(query)
        if profiles is None:
            return None
        sums = Sums(profiles, *profiles.grouping(query), secret, rows)
        return sums.table(query, self._guard.vectors, lambda: self._moments(""))

    def prepare(self, query: Query) -> None:
        self._shortcut.start()
        self.answer(query, "")

    def expect(self, query: Query, user: str) -> dict[str, Any]:
        try:
            secret = self._attribute(query)
            if secret is not None and secret not in query.predicate_columns:
                for measure in query.measures:
                    self._columns("m", measure, secret)
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
        """Return the aggregates that the range of one measure is made of."""
        if secret not in measure.columns or measure.argument is None:
            return {name: aggregate(measure)}
        function, p = measure.function, self._guard.vectors
        if function == "count":
            return {name: aggregate(measure)}
        if function in ("sum", "avg"):
            _require_linear(measure.argument, secret)
            kind = exp.Sum if function == "sum" else exp.Avg
            return {
                f"{name}_{j}": kind(this=_moved(measure.argument, secret, f"__v{j}"))
                for j in range(p)
            }
        if measure.column != secret:
            raise RefusedError(
                f"{function.upper()} of an expression has no range",
                code="not-a-column",
                hint=f"ask for {function.upper()}({secret})",
            )
        if function in _VARIANCES:
            return self._moments(name)
        # Minimum, maximum and quantiles grow with every value: they range between their values
        # at everybody's lower and upper end.
        moved = {end: _replaced(measure, secret, f"__{end}") for end in ("lower", "upper")}
        return {f"{name}_{end}": aggregate(m) for end, m in moved.items()}

    def _moments(self, name: str) -> dict[str, exp.Expression]:
        """Return the count, sums and sums of products of the vectors less a constant.

        They are plain sums, which engines compute faster than covariances, and which add up.
        """
        moved = [_vector(f"__c{j}") for j in range(self._guard.vectors)]
        found: dict[str, exp.Expression] = {f"{name}_n": exp.Count(this=_vector("__v0"))}
        found |= {f"{name}_{j}": exp.Sum(this=vector) for j, vector in enumerate(moved)}
        for i, j in itertools.combinations_with_replacement(range(len(moved)), 2):
            product = exp.Mul(this=moved[i].copy(), expression=moved[j].copy())
            found[f"{name}_{i}_{j}"] = exp.Sum(this=product)
        return found

    # -- ranges ----------------------------------------------------------------------------------
    def _ranges(self, query: Query, secret: str, table: pa.Table) -> pa.Table:
        import pyarrow as pa

        columns: dict[str, Any] = {f"k{n}": table.column(f"k{n}") for n in range(len(query.keys))}
        for number, measure in enumerate(query.measures):
            name = f"m{number}"
            if secret not in measure.columns or measure.function == "count":
                columns[name] = _simple(table.column(name))
                continue
            if measure.function in ("sum", "avg"):
                ends = np.array(
                    [_floats(table.column(f"{name}_{j}")) for j in range(self._guard.vectors)]
                )
                low, high = ends.min(axis=0), ends.max(axis=0)
            elif measure.function in _VARIANCES:
                low, high = self._variances(name, measure.function, table)
            else:
                low, high = (_floats(table.column(f"{name}_{end}")) for end in ("lower", "upper"))
            slack = ROUNDING * np.maximum(np.abs(low), np.abs(high))
            # An empty set has no value, and neither end of one.
            known = ~(np.isnan(low) | np.isnan(high))
            columns[f"{name}_lower"] = pa.array(low - slack, mask=~known)
            columns[f"{name}_upper"] = pa.array(high + slack, mask=~known)
        return pa.table(columns)

    def _variances(self, name: str, function: str, table: pa.Table) -> tuple[Floats, Floats]:
        p = self._guard.vectors
        counts = _floats(table.column(f"{name}_n"))
        share = np.where(counts > 0, counts, np.nan)
        means = [_floats(table.column(f"{name}_{j}")) / share for j in range(p)]
        matrix = np.zeros((counts.size, p, p))
        squares = np.zeros(counts.size)
        for i, j in itertools.combinations_with_replacement(range(p), 2):
            product = _floats(table.column(f"{name}_{i}_{j}")) / share
            squares = np.maximum(squares, np.abs(product))
            matrix[:, i, j] = matrix[:, j, i] = product - means[i] * means[j]
        # Variance is convex in the weights: largest at a vector, smallest by a small programme.
        high = np.array([m.diagonal().max() for m in matrix])
        low = np.array([least_variance(m) for m in matrix])
        # Cancellation leaves errors of the size of the largest entry, not of the smallest.
        low = np.maximum(low - 1e-8 * high - CANCELLED * squares, 0.0)
        high = np.maximum(high, 0.0) + CANCELLED * squares
        if function.endswith("samp"):
            with np.errstate(divide="ignore", invalid="ignore"):
                factor = np.where(counts > 1, counts / (counts - 1), np.nan)
            low, high = low * factor, high * factor
        if function.startswith("stddev"):
            low, high = np.sqrt(np.maximum(low, 0)), np.sqrt(np.maximum(high, 0))
        return low, high

    def _selected(self, query: Query, secret: str, rows: Relation) -> pa.Table:
        """Count by a condition on the confidential column: who certainly meets it, who may."""
        import pyarrow as pa

        if any(m.function != "count" or m.argument is not None for m in query.measures):
            raise RefusedError(
                f"a condition on {secret!r} is answered only for COUNT(*)",
                code="confidential-condition",
                hint="select by other columns",
            )
        assert query.predicate is not None
        parts = (
            list(query.predicate.flatten())
            if isinstance(query.predicate, exp.And)
            else [query.predicate]
        )
        public: list[Any] = []
        certain: list[Any] = []
        possible: list[Any] = []
        for part in parts:
            if not any(c.name == secret for c in part.find_all(exp.Column)):
                public.append(part.copy())
                continue
            sure, may = _both(cast("exp.Expression", part), secret)
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

    # -- the hidden vectors ----------------------------------------------------------------------
    def _hull(self, secret: str) -> Relation:
        with self._lock:
            if secret not in self._rows:
                self._rows[secret] = self._made(secret)
            return self._rows[secret]

    def _made(self, secret: str) -> Relation:
        import pyarrow as pa

        engine = self._data.engine
        rows = engine.number(self._data.relation)
        # In an order that the engine's scan does not change, so that a restart draws the same.
        unit = self._data.catalog.unit
        names = [unit] if unit else sorted(n for n in rows.columns if n != ROW)
        wanted = list(dict.fromkeys([ROW, secret, *names, *self._extra()]))
        table = engine.fetch(engine.project(rows, wanted))
        table = table.take(sorted_places([table.column(name) for name in [*names, ROW]]))
        values = _floats(table.column(secret))
        if not self._data.catalog[secret].is_number:
            raise RefusedError(
                f"column {secret!r} is not a number", code="type-mismatch", hint="ask COUNT(*)"
            )
        missing = np.isnan(values)
        filled = np.where(missing, 0.0, values)
        vectors, _ = hidden_vectors(
            filled, self._widths(filled, table), self._guard.vectors, self._source(secret)
        )
        vectors[missing] = np.nan
        made = {f"__v{j}": vectors[:, j] for j in range(self._guard.vectors)}
        # Near zero, so that sums of their products lose little.
        middle = float(filled.mean()) if filled.size else 0.0
        made |= {f"__c{j}": vectors[:, j] - middle for j in range(self._guard.vectors)}
        made |= {"__lower": vectors.min(axis=1), "__upper": vectors.max(axis=1)}
        attached = pa.table(
            {
                ROW: table.column(ROW),
                **{name: pa.array(column, mask=missing) for name, column in made.items()},
            }
        )
        return engine.materialize(engine.attach(rows, attached))

    def _extra(self) -> list[str]:
        return [self._guard.per_record] if self._guard.per_record else []

    def _widths(self, values: Floats, table: pa.Table) -> Floats:
        share = np.full(values.size, self._guard.bound)
        if self._guard.per_record is not None:
            asked = _floats(table.column(self._guard.per_record))
            if (asked[~np.isnan(asked)] < 0).any():
                raise InputError(
                    "a respondent's bound is negative",
                    code="negative-bound",
                    column=self._guard.per_record,
                )
            share = np.fmax(share, asked)
        minimum = self._guard.minimum
        if minimum is None:
            minimum = float(np.abs(values).mean()) / 30 if values.size else 0.0
        return np.asarray(np.maximum(share * np.abs(values), minimum), np.float64)

    def _source(self, secret: str) -> Randomness:
        key = os.urandom(32)
        if self._ledger is not None:
            settings = self._guard.settings()
            name = f"camouflage {self._data.name} {secret} {settings}"
            key = self._ledger.secret(name, key)
        return Randomness(key, secure=True)

    def close(self) -> None:
        """Drop the vectors."""
        self._shortcut.close()
        for rows in self._rows.values():
            self._data.engine.drop(rows)
        self._rows.clear()


def least_variance(matrix: Floats) -> float:
    """Return the least value of λ'Cλ over convex weights λ, exactly, by trying each support.

    >>> round(least_variance(np.array([[4.0, 0.0], [0.0, 4.0]])), 9)
    2.0
    """
    p = matrix.shape[0]
    if not np.isfinite(matrix).all():
        return float("nan")
    best = float(matrix.diagonal().min())
    for size in range(2, p + 1):
        for support in itertools.combinations(range(p), size):
            part = matrix[np.ix_(support, support)]
            # The conditions of the first order, which also hold where the matrix is singular.
            scale = float(part.diagonal().max()) or 1.0
            system = np.ones((size + 1, size + 1))
            system[:size, :size] = part / scale
            system[size, size] = 0.0
            weights = np.linalg.lstsq(system, np.eye(size + 1)[size], rcond=None)[0][:size]
            if (weights < -1e-9).any() or abs(weights.sum() - 1) > 1e-6:
                continue
            weights = np.maximum(weights, 0)
            weights /= weights.sum()
            best = min(best, float(weights @ part @ weights))
    return max(best, 0.0)


def _vector(name: str) -> exp.Expression:
    return exp.column(name, quoted=True)


def _moved(tree: exp.Expression, secret: str, name: str) -> exp.Expression:
    """Return an expression with a hidden vector in place of the confidential column."""
    moved = tree.copy().transform(
        lambda node: _vector(name) if isinstance(node, exp.Column) and node.name == secret else node
    )
    return moved if isinstance(moved, exp.Column) else exp.cast(moved, "double")


def _replaced(measure: Measure, secret: str, name: str) -> Measure:
    import dataclasses

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
    import dataclasses

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
