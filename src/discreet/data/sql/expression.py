"""Row expressions, rebuilt node by node: a node or an argument not named here is refused.

Nothing is checked in place. Each rule takes a parsed node and returns a new tree made only of parts
that it has understood, so that an argument nobody thought of cannot travel along. Errors that an
engine would raise depending on the data (division by zero, failing casts, overflow) would tell one
bit per question. So each value carries how large and how small it can get; what could leave the
range of doubles is refused here, and `total.py` computes the rest so that nothing can fail.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from sqlglot import exp

from discreet.data.sql.arithmetic import arithmetic, negative, rounding, truncation, whole_step
from discreet.data.sql.casts import cast
from discreet.data.sql.choices import case, coalesce
from discreet.data.sql.conditions import (
    between,
    comparison,
    connector,
    is_value,
    like,
    membership,
    negation,
)
from discreet.data.sql.kinds import NUMBERS, TEXTS, need
from discreet.data.sql.naming import written
from discreet.data.sql.rebuilding import RULES, rebuild
from discreet.data.sql.scope import Scope
from discreet.data.sql.texts import joined, substring
from discreet.data.sql.times import date_part, extract, truncate_time
from discreet.data.sql.typed import Typed, literal, merge, number_literal, refuse, require_arguments

__all__ = ["rebuild"]


def _leaf_number(node: exp.Expression, _: Scope) -> Typed:
    require_arguments(node, "this", "is_string")
    if node.args.get("is_string"):
        return literal(node.this)
    text = str(node.this)
    try:
        return number_literal(text, float(text), "integer" if text.isdigit() else "number")
    except ValueError:
        raise refuse("a number is malformed", "malformed-literal", "write digits") from None


def _leaf_boolean(node: exp.Expression, _: Scope) -> Typed:
    require_arguments(node, "this")
    return literal(bool(node.this))


def _leaf_null(node: exp.Expression, _: Scope) -> Typed:
    require_arguments(node)
    return literal(None)


def _column(node: exp.Expression, scope: Scope) -> Typed:
    assert isinstance(node, exp.Column)
    meaning = scope.resolve(node)
    if meaning.kind == "identifier":
        raise refuse(
            f"column {node.name!r} identifies respondents and is not available",
            "identifier-column",
            "use other columns; COUNT(DISTINCT …) of the unit is accepted",
        )
    tree = meaning.tree.copy()
    if not isinstance(tree, exp.Column):
        scope.parameters.count_copied(tree)
    return dataclasses.replace(meaning, tree=tree)


def _parameter(node: exp.Expression, scope: Scope) -> Typed:
    return scope.parameters.take(node)


def _paren(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this")
    inner = rebuild(node.this, scope)
    if isinstance(inner.tree, exp.Column | exp.Literal | exp.Paren):
        return inner
    return dataclasses.replace(inner, tree=exp.Paren(this=inner.tree))


def function_rule(
    takes: Sequence[str],
    gives: str | None,
    degree: int | None = None,
    size: tuple[float, float] | None = None,
) -> Callable[[exp.Expression, Scope], Typed]:
    """Return the rule for a function of one argument that cannot fail."""

    def rule(node: exp.Expression, scope: Scope) -> Typed:
        require_arguments(node, "this")
        inner = need(rebuild(node.this, scope), takes, written(node))
        made = type(node)(this=inner.tree)
        return merge(made, gives or inner.kind, inner, degree=degree, size=size)

    return rule


RULES.update(
    {
        exp.Literal: _leaf_number,
        exp.Boolean: _leaf_boolean,
        exp.Null: _leaf_null,
        exp.Column: _column,
        exp.Parameter: _parameter,
        exp.Placeholder: _parameter,
        exp.Paren: _paren,
        exp.And: connector,
        exp.Or: connector,
        exp.Not: negation,
        exp.EQ: comparison,
        exp.NEQ: comparison,
        exp.GT: comparison,
        exp.GTE: comparison,
        exp.LT: comparison,
        exp.LTE: comparison,
        exp.Between: between,
        exp.In: membership,
        exp.Like: like,
        exp.ILike: like,
        exp.Is: is_value,
        exp.Add: arithmetic,
        exp.Sub: arithmetic,
        exp.Mul: arithmetic,
        exp.Div: arithmetic,
        exp.Mod: arithmetic,
        exp.DPipe: joined,
        exp.Neg: negative,
        exp.Case: case,
        exp.Coalesce: coalesce,
        exp.Abs: function_rule(NUMBERS, None),
        exp.Floor: whole_step,
        exp.Ceil: whole_step,
        exp.Lower: function_rule(TEXTS, "text"),
        exp.Upper: function_rule(TEXTS, "text"),
        exp.Length: function_rule(TEXTS, "integer", degree=0, size=(1.0, 1e10)),
        exp.Trim: function_rule(TEXTS, "text"),
        exp.Round: rounding,
        exp.Trunc: truncation,
        exp.Substring: substring,
        exp.Extract: extract,
        exp.Year: date_part,
        exp.Month: date_part,
        exp.Day: date_part,
        exp.TimestampTrunc: truncate_time,
        exp.Cast: cast,
    }
)
