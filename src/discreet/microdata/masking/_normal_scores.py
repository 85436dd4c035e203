"""Shuffling of records that stay in their engine: normal scores, their model, and new places by rank."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from discreet.data.engines import keyed, sql
from discreet.data.engines.base import ROW, Relation
from discreet.microdata.columns import Numbers, is_number
from discreet.microdata.masking._exchange import put_back
from discreet.microdata.masking._moments import summed

if TYPE_CHECKING:
    from discreet.randomness import Randomness

__all__ = ["normal_quantile", "shuffled", "tail_root"]

#: Columns of the model up to which products are summed in one statement.
_MOST = 40

# Rational approximations of the normal quantile (Acklam 2003), within 1.2e-9 of it, relatively: in
# the middle of the distribution, and of its tails below _TAIL.
_TAIL = 0.02425
_MIDDLE = (
    (-3.969683028665376e01, 2.209460984245205e02, -2.759285104469687e02,
     1.383577518672690e02, -3.066479806614716e01, 2.506628277459239e00),
    (-5.447609879822406e01, 1.615858368580409e02, -1.556989798598866e02,
     6.680131188771972e01, -1.328068155288572e01, 1.0),
)  # fmt: skip
_ENDS = (
    (-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e00,
     -2.549732539343734e00, 4.374664141464968e00, 2.938163982698783e00),
    (7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00, 1.0),
)  # fmt: skip


def normal_quantile(share: exp.Expr, root: exp.Expr) -> exp.Expr:
    """Return the quantile of the standard normal distribution at a share in (0, 1).

    `root` is what `tail_root` says; both are named columns, because each stands here many times.
    """
    half = _minus(share, _exact(0.5))
    square = _times(half, half)
    middle = _over(_times(_polynomial(_MIDDLE[0], square), half), _polynomial(_MIDDLE[1], square))
    tail = _over(_polynomial(_ENDS[0], root), _polynomial(_ENDS[1], root))
    low = exp.LT(this=share.copy(), expression=_exact(_TAIL))
    high = exp.GT(this=share.copy(), expression=_exact(1 - _TAIL))
    return exp.Case(default=middle).when(low, tail).when(high, exp.Neg(this=tail.copy()))


def tail_root(share: exp.Expr) -> exp.Expr:
    """Return the square root of −2 times the logarithm of the smaller of a share and its rest."""
    rest = _minus(_exact(1.0), share)
    is_low = exp.LT(this=share.copy(), expression=_exact(0.5))
    smaller = exp.Case(default=rest).when(is_low, share.copy())
    return sql.call("sqrt", _times(_exact(-2.0), sql.call("ln", smaller)))


def shuffled(
    relation: Relation, columns: Sequence[str], given: Sequence[str], rng: Randomness
) -> Relation | None:
    """Return a numbered relation with shuffled columns, or nothing if the model is too large."""
    engine = relation.engine
    numeric = [name for name in given if is_number(relation.schema.field(name).type)]
    basis = _Basis.of(relation, numeric, [name for name in given if name not in numeric])
    if basis.size + len(columns) > _MOST:
        return None
    scored = _scored(relation, [*columns, *numeric], [*columns, *given], rng)
    targets = [sql.column(f"__score{place}") for place in range(len(columns))]
    parts = basis.expressions(len(columns))
    slope, root = _model(scored, parts, targets)
    # The scores that decide on the new places look at the given columns and the lot alone.
    drawn = keyed.drawn(scored, list(scored.columns), rng, times=len(columns))
    normals = [keyed.normal(engine, sql.column(f"__drawn{p}")) for p in range(len(columns))]
    new = [
        sql.alias(_weighted([*slope[:, place], *root[place]], [*parts, *normals]), f"__new{place}")
        for place in range(len(columns))
    ]
    kept = [*columns, *(f"__rank{place}" for place in range(len(columns))), "__own", ROW]
    held = engine.materialize(
        engine.relation(sql.select(sql.subquery(drawn.query, "t"), [*map(sql.column, kept), *new]))
    )
    for place, name in enumerate(columns):
        relation = put_back(relation, _handed_out(held, name, place), [name])
    return relation


@dataclasses.dataclass(frozen=True)
class _Basis:
    """What the model is given: a constant, scores of numbers, indicators of categories."""

    numeric: tuple[str, ...]
    #: Each category but the first of its column.
    categories: tuple[tuple[str, exp.Expr], ...]

    @staticmethod
    def of(relation: Relation, numeric: Sequence[str], others: Sequence[str]) -> _Basis:
        found = []
        for name in others:
            values = relation.engine.frequencies(relation, [name]).column(0).drop_null()
            listed = sorted(values.to_pylist(), key=str)[1:]
            found += [(name, sql.literal(value)) for value in listed]
        return _Basis(tuple(numeric), tuple(found))

    @property
    def size(self) -> int:
        return 1 + len(self.numeric) + len(self.categories)

    def expressions(self, first: int) -> list[exp.Expr]:
        """Return the columns of the basis; scores of numbers are counted from `first`."""
        scores: list[exp.Expr] = [
            exp.Coalesce(this=sql.column(f"__score{first + place}"), expressions=[_exact(0.0)])
            for place in range(len(self.numeric))
        ]
        marks: list[exp.Expr] = [
            exp.Case(default=_exact(0.0)).when(
                exp.EQ(this=sql.column(name), expression=value.copy()), _exact(1.0)
            )
            for name, value in self.categories
        ]
        return [_exact(1.0), *scores, *marks]


def _scored(
    relation: Relation, names: Sequence[str], kept: Sequence[str], rng: Randomness
) -> Relation:
    """Return rows in a drawn order with `__rank` and normal `__score` of some columns.

    Ties are broken by the lot: rows keep their number as `__own` and get their place in the drawn
    order as `__row`, by which engines break ties.
    """
    engine = relation.engine
    kept = list(dict.fromkeys(kept))
    lots = keyed.drawn(relation, kept, rng)
    marked = engine.relation(
        sql.select(
            sql.subquery(lots.query, "t"),
            [
                *map(sql.column, [*kept, ROW]),
                sql.alias(keyed.mark(engine, sql.column("__drawn0")), "__mark"),
            ],
        )
    )
    placed = engine.rank(marked, "__mark", into="__lot")
    rows = engine.relation(
        sql.select(
            sql.subquery(placed.query, "t"),
            [
                *map(sql.column, kept),
                sql.alias(sql.column(ROW), "__own"),
                sql.alias(sql.column("__lot"), ROW),
            ],
        )
    )
    known, _ = summed(relation, [sql.column(name) for name in names])
    for place, name in enumerate(names):
        rows = engine.rank(rows, name, into=f"__rank{place}")
    shares, roots, scores = [], [], []
    for place, (name, count) in enumerate(zip(names, known, strict=True)):
        middle = _minus(sql.double(sql.column(f"__rank{place}")), _exact(0.5))
        share = _over(middle, _exact(float(max(count, 1))))
        is_known = sql.is_known(sql.column(name))
        shares.append(sql.alias(exp.Case().when(is_known, share), f"__share{place}"))
        column = sql.column(f"__share{place}")
        roots.append(sql.alias(tail_root(column), f"__root{place}"))
        score = normal_quantile(column, sql.column(f"__root{place}"))
        # A condition on nothing is not true, so the middle part stands for a missing share: missing.
        scores.append(sql.alias(score, f"__score{place}"))
    columns = [*rows.columns]
    for added in (shares, roots, scores):
        query = sql.select(sql.subquery(rows.query, "t"), [*map(sql.column, columns), *added])
        rows = engine.relation(query)
        columns = [*columns, *(one.alias for one in added)]
    kept = [*columns[: len(columns) - 3 * len(names)], *(one.alias for one in scores)]
    return engine.materialize(engine.project(rows, kept))


def _model(
    scored: Relation, parts: Sequence[exp.Expr], targets: Sequence[exp.Expr]
) -> tuple[Numbers, Numbers]:
    """Return slopes of the targets on the basis, and a root of the covariances of what is left."""
    complete = scored.engine.filter(scored, exp.and_(*(sql.is_known(t.copy()) for t in targets)))
    terms = [*parts, *targets]
    pairs = list(itertools.combinations_with_replacement(range(len(terms)), 2))
    counts, sums = summed(complete, [_times(terms[a], terms[b]) for a, b in pairs])
    products = np.zeros((len(terms), len(terms)))
    for (one, two), total in zip(pairs, sums, strict=True):
        products[one, two] = products[two, one] = total
    size = len(parts)
    slope = np.linalg.pinv(products[:size, :size], rcond=1e-12) @ products[:size, size:]
    rest = products[size:, size:] - slope.T @ products[:size, size:]
    share, axes = np.linalg.eigh((rest + rest.T) / 2 / max(float(counts.max(initial=0)), 1))
    return slope, axes * np.sqrt(np.maximum(share, 0))


def _handed_out(held: Relation, name: str, place: int) -> Relation:
    """Return the rows with the value whose rank is that of their new score."""
    engine = held.engine
    known = engine.filter(held, sql.is_known(sql.column(name)))
    by_score = engine.rank(
        engine.project(known, ["__own", f"__new{place}", ROW]), f"__new{place}", into="__place"
    )
    query = sql.select(
        sql.subquery(by_score.query, "s"),
        [
            sql.alias(sql.column("__own", "s"), ROW),
            sql.column(name, "v"),
            sql.alias(exp.Boolean(this=True), "__moved"),
        ],
    ).join(
        sql.subquery(known.query, "v"),
        on=exp.EQ(this=sql.column("__place", "s"), expression=sql.column(f"__rank{place}", "v")),
    )
    return engine.materialize(engine.relation(query))


def _polynomial(coefficients: Sequence[float], at: exp.Expr) -> exp.Expr:
    value: exp.Expr = _exact(coefficients[0])
    for one in coefficients[1:]:
        value = exp.Paren(this=exp.Add(this=_times(value, at), expression=_exact(one)))
    return value


def _weighted(weights: Sequence[float], values: Sequence[exp.Expr]) -> exp.Expr:
    total: exp.Expr = _exact(0.0)
    for weight, value in zip(weights, values, strict=True):
        total = exp.Add(this=total, expression=_times(_exact(float(weight)), value))
    return total


def _times(one: exp.Expr, two: exp.Expr) -> exp.Expr:
    return exp.Mul(this=exp.Paren(this=one.copy()), expression=exp.Paren(this=two.copy()))


def _minus(one: exp.Expr, two: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Sub(this=one.copy(), expression=two.copy()))


def _over(one: exp.Expr, two: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Div(this=one.copy(), expression=exp.Paren(this=two.copy())))


def _exact(value: float) -> exp.Expr:
    return sql.double(sql.number(value))
