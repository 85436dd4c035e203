"""Rebuild an expression by the rule of its node; a node without a rule is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from discreet.data.sql.naming import written
from discreet.data.sql.scope import Scope
from discreet.data.sql.typed import Typed, refuse
from discreet.errors import RefusedError

__all__ = ["RULES", "rebuild", "unsupported"]

#: The rule of each kind of node. `expression.py` fills it: rules rebuild their parts with `rebuild`,
#: so they cannot be imported here.
RULES: dict[type[Any], Callable[[Any, Scope], Typed]] = {}


def rebuild(node: exp.Expression | None, scope: Scope) -> Typed:
    """Return the understood copy of a row expression."""
    rule = RULES.get(type(node))
    if node is None or rule is None:
        raise unsupported(node)
    return rule(node, scope)


def unsupported(node: exp.Expression | None) -> RefusedError:
    """Return why a node has no rule."""
    if isinstance(node, exp.AggFunc):
        return refuse(
            "an aggregate stands where a value of one row is needed",
            "misplaced-aggregate",
            "put conditions on aggregates into HAVING",
        )
    if isinstance(node, exp.Query | exp.Subquery | exp.Exists):
        return refuse(
            "a sub-select is accepted only in FROM",
            "misplaced-subquery",
            "write the condition on the columns of the relation",
        )
    name = written(node)
    return refuse(
        f"{name} is not accepted in an expression",
        "unsupported-expression",
        "use comparisons, AND, OR, NOT, BETWEEN, IN, LIKE, IS NULL, CASE, + − * /, date parts",
    )
