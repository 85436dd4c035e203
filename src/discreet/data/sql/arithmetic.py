"""Rules of arithmetic, with the sizes that results can have."""

from __future__ import annotations

import dataclasses

from sqlglot import exp

from discreet.data.sql.kinds import NUMBERS, need
from discreet.data.sql.naming import written
from discreet.data.sql.rebuilding import rebuild
from discreet.data.sql.scope import Scope
from discreet.data.sql.times import shifted
from discreet.data.sql.typed import DEGREE, Typed, closed, merge, refuse, require_arguments

__all__ = ["arithmetic", "negative", "rounding", "truncation", "whole_step"]

#: Rounding leaves no difference of doubles smaller than this share of the smaller of them.
_ROUNDING = 2.0**-53
#: So many remainders and roundings may be taken of each other.
_MOST_LEVELS = 3


def arithmetic(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild +, −, *, / and %."""
    require_arguments(node, "this", "expression", "typed", "safe")
    if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression.unnest(), exp.Interval):
        plain = type(node)(this=node.this, expression=node.expression.unnest())
        return shifted(plain, scope)
    left = need(rebuild(node.this, scope), NUMBERS, written(node))
    right = need(rebuild(node.expression, scope), NUMBERS, written(node))
    degree = max(left.degree, right.degree)
    if isinstance(node, exp.Mul):
        degree = left.degree + right.degree
        if degree > DEGREE:
            raise refuse(
                "too many columns are multiplied with each other",
                "unbounded-product",
                f"multiply at most {DEGREE}",
            )
    kind = "integer" if left.kind == right.kind == "integer" else "number"
    if "null" in (left.kind, right.kind):
        kind = "null"  # whatever the other is
    if isinstance(node, exp.Div | exp.Mod):
        _need_divisor(right)
    if isinstance(node, exp.Div | exp.Mod) and kind == "integer":
        _need_shallow(left)
    if isinstance(node, exp.Mod) and kind == "number":
        raise refuse(
            "a remainder is accepted of whole numbers only",
            "unsupported-expression",
            "use a whole-number column and a whole number",
        )
    size = _sizes(node, left, right)
    if isinstance(node, exp.Div):
        # One meaning on every engine: that of PostgreSQL, where whole numbers give a whole one.
        tree: exp.Expression = exp.Div(
            this=exp.cast(closed(left.tree), "double"),
            expression=exp.cast(closed(right.tree), "double"),
        )
        tree = exp.Trunc(this=tree) if kind == "integer" else tree
    else:
        tree = type(node)(this=closed(left.tree), expression=closed(right.tree))
    return merge(tree, kind, left, right, degree=degree, size=size)


def _need_shallow(value: Typed) -> None:
    """Refuse what cuts fractions off, of each other: each level is written several times."""
    if _levels(value.tree) >= _MOST_LEVELS:
        raise refuse(
            "remainders, quotients, ROUND, FLOOR, CEIL, UPPER and LOWER are taken of each other too often",
            "too-complex",
            f"nest at most {_MOST_LEVELS}",
        )


#: What is written out with its argument several times.
_REPEATED = (exp.Mod, exp.Trunc, exp.Floor, exp.Ceil, exp.Round, exp.Upper, exp.Lower, exp.ILike)


def _levels(tree: exp.Expr) -> int:
    deepest = max((_levels(part) for part in tree.iter_expressions()), default=0)
    return deepest + isinstance(tree, _REPEATED)


def _sizes(node: exp.Expression, left: Typed, right: Typed) -> tuple[float, float]:
    """Return the smallest size of a result that is not zero, and the largest."""
    if isinstance(node, exp.Mul):
        return left.least * right.least, left.most * right.most
    if isinstance(node, exp.Div):
        return left.least / max(right.most, right.least), left.most / right.least
    if isinstance(node, exp.Mod):
        return 1.0, right.most
    return min(left.least, right.least) * _ROUNDING, left.most + right.most


def _need_divisor(value: Typed) -> None:
    number = value.tree.this if isinstance(value.tree, exp.Neg) else value.tree
    if not isinstance(number, exp.Literal) or float(number.this) == 0:
        raise refuse(
            "division is accepted only by a number other than zero",
            "unsafe-division",
            "divide by a number, or divide the aggregates: SUM(a) / SUM(b)",
        )


def negative(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild a minus sign."""
    require_arguments(node, "this")
    inner = need(rebuild(node.this, scope), NUMBERS, "minus")
    return dataclasses.replace(inner, tree=exp.Neg(this=closed(inner.tree)))


def whole_step(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild FLOOR and CEIL."""
    require_arguments(node, "this")
    inner = need(rebuild(node.this, scope), NUMBERS, written(node))
    _need_shallow(inner)
    return merge(type(node)(this=inner.tree), inner.kind, inner, size=(1.0, inner.most + 1))


def truncation(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild TRUNC."""
    require_arguments(node, "this")
    inner = need(rebuild(node.this, scope), NUMBERS, "TRUNC")
    _need_shallow(inner)
    kind = "null" if inner.kind == "null" else "integer"
    return merge(exp.Trunc(this=inner.tree), kind, inner, size=(1.0, inner.most + 1))


def rounding(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild ROUND."""
    require_arguments(node, "this", "decimals", "casts_non_integer_decimals")
    inner = need(rebuild(node.this, scope), NUMBERS, "ROUND")
    decimals = node.args.get("decimals")
    # Scaled by up to a thousand million before it is rounded, and back.
    size = 1e-9, 1e9 * (inner.most + 1)
    if decimals is None:
        return merge(exp.Round(this=inner.tree), inner.kind, inner, size=(1.0, inner.most + 1))
    places = rebuild(decimals, scope)
    number = places.tree
    if not (
        isinstance(number, exp.Literal) and str(number.this).isdigit() and int(number.this) < 10
    ):
        raise refuse("ROUND needs 0 to 9 decimals", "unsupported-expression", "write ROUND(x, 2)")
    return merge(exp.Round(this=inner.tree, decimals=number), inner.kind, inner, size=size)
