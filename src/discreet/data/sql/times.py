"""Rules of dates and timestamps: shifting by a span, parts, and truncation."""

from __future__ import annotations

import re

from sqlglot import exp

from discreet.data.sql.kinds import TIMES, need
from discreet.data.sql.naming import written
from discreet.data.sql.rebuilding import rebuild
from discreet.data.sql.scope import Scope
from discreet.data.sql.typed import Typed, closed, merge, refuse, require_arguments

__all__ = ["date_part", "extract", "shifted", "truncate_time"]

#: Spans that can be added to a time, and how many of them: a thousand years at most, so that no
#: date that people have leaves the range of an engine.
_SPANS = {
    "year": 1_000, "month": 12_000, "week": 52_000, "day": 365_000, "hour": 999_999,
    "minute": 999_999, "second": 999_999,
}  # fmt: skip


#: So many spans may be added to a time, one after another.
_MOST_SHIFTS = 3


def _span(node: exp.Interval) -> exp.Expression:
    """Return a span of time in one spelling."""
    require_arguments(node, "this", "unit")
    amount, unit = node.this, node.args.get("unit")
    sign = -1 if isinstance(amount, exp.Neg) else 1
    amount = amount.this if isinstance(amount, exp.Neg) else amount
    text = str(amount.this) if isinstance(amount, exp.Literal) else ""
    name = "" if unit is None else unit.name.lower().removesuffix("s")
    whole = re.fullmatch(r"-?[0-9]{1,6}", text) is not None
    if not whole or name not in _SPANS or abs(int(text)) > _SPANS[name]:
        raise refuse(
            "a span of time is a whole number of one unit, and at most a thousand years",
            "unsupported-expression",
            "write INTERVAL '1 day'",
        )
    return exp.Interval(this=exp.Literal.string(str(sign * int(text))), unit=exp.var(name.upper()))


def shifted(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild a time plus or minus an INTERVAL."""
    value = need(rebuild(node.this, scope), TIMES, written(node))
    if sum(1 for _ in value.tree.find_all(exp.Interval)) >= _MOST_SHIFTS:
        raise refuse(
            "a time is shifted too often", "unsupported-expression", "add one INTERVAL to it"
        )
    tree = type(node)(this=closed(value.tree), expression=_span(node.expression))
    return merge(tree, "timestamp", value)


_PARTS = (
    "year", "quarter", "month", "week", "day", "hour", "minute", "dow", "isodow", "doy",
)  # fmt: skip


def extract(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild EXTRACT."""
    require_arguments(node, "this", "expression")
    part = node.this.name.lower()
    if part == "epoch":
        inner = need(rebuild(node.expression, scope), TIMES, "EXTRACT")
        return merge(exp.Extract(this=exp.var("EPOCH"), expression=inner.tree), "number", inner)
    if part not in _PARTS:
        raise refuse(
            f"EXTRACT of {part.upper()} is not accepted",
            "unsupported-expression",
            "use one of " + ", ".join(_PARTS),
        )
    inner = need(rebuild(node.expression, scope), TIMES, "EXTRACT")
    tree = exp.Extract(this=exp.var(part.upper()), expression=inner.tree)
    return merge(tree, "integer", inner, size=(1.0, 1e4))


def date_part(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild YEAR, MONTH and DAY."""
    require_arguments(node, "this")
    inner = need(rebuild(node.this, scope), TIMES, written(node))
    tree = exp.Extract(this=exp.var(node.key.upper()), expression=inner.tree)
    return merge(tree, "integer", inner, size=(1.0, 1e4))


def truncate_time(node: exp.Expression, scope: Scope) -> Typed:
    """Rebuild DATE_TRUNC."""
    require_arguments(node, "this", "unit")
    unit = node.args["unit"].name.lower()
    if unit not in ("year", "quarter", "month", "week", "day", "hour", "minute"):
        raise refuse(
            f"DATE_TRUNC to {unit.upper()} is not accepted",
            "unsupported-expression",
            "use year, quarter, month, week, day, hour or minute",
        )
    inner = need(rebuild(node.this, scope), TIMES, "DATE_TRUNC")
    tree = exp.TimestampTrunc(this=inner.tree, unit=exp.var(unit.upper()))
    return merge(tree, "timestamp", inner)
