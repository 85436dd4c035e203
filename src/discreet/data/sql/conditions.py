"""Rules of conditions: AND, OR, NOT, comparisons, BETWEEN, IN, LIKE and IS."""

from __future__ import annotations

from typing import Any, cast

from sqlglot import exp

from discreet.data.sql.kinds import TEXTS, comparable, need
from discreet.data.sql.naming import written
from discreet.data.sql.rebuilding import rebuild, unsupported
from discreet.data.sql.scope import Scope
from discreet.data.sql.spelling import spelled
from discreet.data.sql.typed import Typed, closed, merge, refuse, require_arguments

__all__ = [
    "between",
    "comparison",
    "connector",
    "is_value",
    "like",
    "membership",
    "negated",
    "negation",
    "operands",
]


def connector(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild a chain of AND or of OR."""
    require_arguments(node, "this", "expression")
    # Long chains are left-deep: walked by hand, they do not exhaust the stack. Operands are put
    # in the order of their text, so that two spellings of one condition are one question.
    kind = type(node)
    parts = [_boolean(part, scope, written(node)) for part in operands(node)]
    wrapped: dict[str, exp.Expression] = {}
    for part in parts:
        inner = part.tree.this if isinstance(part.tree, exp.Paren) else part.tree
        closed = exp.Paren(this=inner) if isinstance(inner, exp.Connector) else inner
        wrapped.setdefault(spelled(closed), closed)
    ordered = [wrapped[text] for text in sorted(wrapped)]
    tree = ordered[0]
    for right in ordered[1:]:
        tree = kind(this=tree, expression=right)
    return merge(tree, "boolean", *parts)


def operands(node: exp.Expression) -> list[exp.Expression]:
    """Return the operands of a chain of AND or of OR."""
    return [cast("exp.Expression", part) for part in node.flatten()]


def _boolean(node: exp.Expression, scope: Scope, where: str) -> Typed:
    return need(rebuild(node, scope), ("boolean", "null"), where)


def negation(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild NOT."""
    require_arguments(node, "this")
    inner = _boolean(node.this, scope, "NOT")
    return merge(negated(inner.tree), "boolean", inner)


def negated(tree: exp.Expression) -> exp.Expression:
    """Return the negation of a condition, spelled in one way."""
    return exp.Not(this=closed(tree))


def comparison(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild =, <>, <, <=, > and >=."""
    require_arguments(node, "this", "expression")
    left, right = comparable(
        rebuild(node.this, scope), rebuild(node.expression, scope), written(node)
    )
    kind: type[Any] = type(node)
    if left.is_literal and not right.is_literal:
        # One spelling for one condition: the column first.
        left, right, kind = right, left, _FLIPPED[kind]
    tree = kind(this=closed(left.tree), expression=closed(right.tree))
    return merge(tree, "boolean", left, right)


_FLIPPED: dict[type[Any], type[Any]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
}


def between(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild BETWEEN."""
    require_arguments(node, "this", "low", "high")
    value = rebuild(node.this, scope)
    value, low = comparable(value, rebuild(node.args["low"], scope), "BETWEEN")
    value, high = comparable(value, rebuild(node.args["high"], scope), "BETWEEN")
    low, high = comparable(low, high, "BETWEEN")  # a NULL would compare with both, not they
    tree = exp.Between(this=closed(value.tree), low=closed(low.tree), high=closed(high.tree))
    return merge(tree, "boolean", value, low, high)


def membership(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild IN with a list of values."""
    if node.args.get("query") is not None or node.args.get("unnest") is not None:
        raise unsupported(exp.Subquery())
    require_arguments(node, "this", "expressions")
    value = rebuild(node.this, scope)
    items = [comparable(value, rebuild(item, scope), "IN")[1] for item in node.expressions]
    if not items or any(not item.is_literal for item in items):
        raise refuse("IN needs a list of values", "unsupported-expression", "write IN ('a', 'b')")
    known = [item for item in items if item.kind != "null"]
    items = [comparable(known[0], item, "IN")[1] for item in items] if known else items
    trees = {spelled(item.tree): item.tree for item in items}
    ordered = [trees[text] for text in sorted(trees)]
    return merge(exp.In(this=closed(value.tree), expressions=ordered), "boolean", value)


def like(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild LIKE and ILIKE."""
    require_arguments(node, "this", "expression", "negate")
    value = need(rebuild(node.this, scope), TEXTS, "LIKE")
    pattern = need(rebuild(node.expression, scope), TEXTS, "LIKE")
    if not pattern.is_literal:
        raise refuse("LIKE needs a pattern in quotes", "unsupported-expression", "write LIKE 'a%'")
    if isinstance(pattern.tree, exp.Literal) and "\\" in str(pattern.tree.this):
        # Engines read it differently, and one fails at the end of a pattern, for some values only.
        raise refuse(
            "a pattern with a backslash is not accepted",
            "unsupported-expression",
            "use % and _ alone, or compare with =",
        )
    tree: exp.Expression = type(node)(this=closed(value.tree), expression=pattern.tree)
    return merge(negated(tree) if node.args.get("negate") else tree, "boolean", value)


def is_value(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild IS NULL, IS TRUE and IS FALSE."""
    require_arguments(node, "this", "expression", "negate")
    value, right = rebuild(node.this, scope), rebuild(node.expression, scope)
    if not isinstance(right.tree, exp.Null | exp.Boolean):
        raise refuse("IS needs NULL, TRUE or FALSE", "unsupported-expression", "write IS NULL")
    if isinstance(right.tree, exp.Boolean):
        need(value, ("boolean", "null"), "IS TRUE")
    tree: exp.Expression = exp.Is(this=closed(value.tree), expression=right.tree)
    return merge(negated(tree) if node.args.get("negate") else tree, "boolean", value)
