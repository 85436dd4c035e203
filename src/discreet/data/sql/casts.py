"""The rule of casts: those that cannot fail, whatever the value."""

from __future__ import annotations

import dataclasses

from sqlglot import exp

from discreet.data.sql.kinds import NUMBERS, TIMES, dated
from discreet.data.sql.rebuilding import rebuild
from discreet.data.sql.scope import Scope
from discreet.data.sql.texts import digits
from discreet.data.sql.typed import Typed, closed, merge, refuse, require_arguments

__all__ = ["cast"]

#: Casts that cannot fail, whatever the value.
_CASTS = {
    "double": (NUMBERS, "number"),
    "float": (NUMBERS, "number"),
    "decimal": (NUMBERS, "number"),
    "date": (TIMES, "date"),
    "timestamp": (TIMES, "timestamp"),
}


def cast(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild a cast."""
    require_arguments(node, "this", "to")
    target = node.args["to"]
    require_arguments(target, "this", "expressions", "nested")
    name = target.this.value.lower()
    name = {"timestamptz": "timestamp", "smallint": "int"}.get(name, name)
    inner = rebuild(node.this, scope)
    if isinstance(inner.tree, exp.Literal) and inner.kind in NUMBERS and name in _CASTS:
        return dataclasses.replace(inner, kind="number")
    if isinstance(inner.tree, exp.Literal) and inner.kind == "text" and name in TIMES:
        return dated(inner.tree, name)
    if name in ("text", "varchar") and inner.kind == "text":
        return inner
    if name in ("text", "varchar") and inner.kind == "integer":
        return merge(digits(inner.tree), "text", inner, degree=0)
    if name in ("text", "varchar") and inner.kind == "date":
        day = exp.cast(inner.tree, "date")  # between the years that all engines write alike
        return merge(exp.cast(day, "text"), "text", inner, degree=0)
    if name in ("int", "bigint") and inner.kind == "integer":
        return inner
    if name in ("int", "bigint") and inner.kind == "number":
        # A whole number that stays a double: PostgreSQL rounds, and nothing can overflow.
        steps = (exp.Floor, exp.Ceil, exp.Round)
        if isinstance(inner.tree, steps):
            return inner
        return merge(exp.Round(this=inner.tree), "number", inner, size=(1.0, inner.most + 1))
    if name in ("int", "bigint") and inner.kind == "boolean":
        ifs = [
            exp.If(this=exp.Boolean(this=truth), true=exp.Literal.number(int(truth)))
            for truth in (True, False)
        ]
        tree = exp.Case(this=closed(inner.tree), ifs=ifs)
        return merge(tree, "integer", inner, degree=0, size=(1.0, 1.0))
    if name not in _CASTS or inner.kind not in _CASTS[name][0]:
        raise refuse(
            f"a cast from {inner.kind} to {name} is not accepted: it can fail on some values",
            "unsafe-cast",
            "cast numbers to double or integer, dates to date or timestamp, whole numbers to text",
        )
    kind = _CASTS[name][1]
    to = "double" if kind == "number" else name
    return merge(exp.cast(inner.tree, to), kind, inner)
