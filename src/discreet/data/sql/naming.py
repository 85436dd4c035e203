"""What parts of a statement are called in SQL, for messages: never by the parser's names."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

__all__ = ["written"]

_WORDS: dict[type[Any], str] = {
    exp.Star: "*",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Neg: "-",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.RegexpLike: "~",
    exp.RegexpILike: "~*",
    exp.Literal: "a literal",
    exp.Column: "a column",
    exp.Select: "SELECT",
    exp.Subquery: "a sub-select",
    exp.Tuple: "a row of values",
    exp.Array: "ARRAY[…]",
    exp.Bracket: "[…]",
    exp.Cast: "CAST",
    exp.Group: "GROUP BY",
    exp.Order: "ORDER BY",
    exp.Ordered: "ORDER BY",
    exp.AtTimeZone: "AT TIME ZONE",
    exp.TimestampTrunc: "DATE_TRUNC",
    exp.StrPosition: "STRPOS",
    exp.TimeToStr: "TO_CHAR",
    exp.StrToTime: "TO_TIMESTAMP",
    exp.Window: "OVER",
    exp.Dot: "a qualified name",
    exp.JSONExtract: "->",
    exp.JSONExtractScalar: "->>",
    exp.Identifier: "a name",
    exp.Table: "a table",
    exp.Anonymous: "a function",
}


def written(node: exp.Expr | None) -> str:
    """Return how a part of a statement is written in SQL.

    >>> written(exp.DPipe()), written(exp.Coalesce()), written(exp.Anonymous(this="pg_sleep"))
    ('||', 'COALESCE', 'PG_SLEEP')
    """
    if node is None:
        return "nothing"
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc) and node.name:
        return str(node.name).upper()
    word = _WORDS.get(type(node))
    if word is not None:
        return word
    if isinstance(node, exp.Func):
        return str(node.sql_name())
    return type(node).__name__.upper() if type(node) in _CLAUSES else "this form"


#: Parts whose name in the parser is their word in SQL.
_CLAUSES = {
    exp.And, exp.Or, exp.Not, exp.Between, exp.In, exp.Like, exp.ILike, exp.Is, exp.Case,
    exp.Distinct, exp.Having, exp.Limit, exp.Offset, exp.Join, exp.Interval, exp.Exists,
    exp.Filter, exp.Where, exp.Fetch, exp.With, exp.Union, exp.Except, exp.Intersect,
    exp.Lateral, exp.Values,
}  # fmt: skip
