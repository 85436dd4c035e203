"""What parts of a statement are called in SQL, for messages: never by the parser's names."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import ErrorLevel, exp

__all__ = ["clause", "written"]

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
    >>> written(exp.Rand()), written(exp.JSONArrayAgg(this=exp.column("a")))
    ('RANDOM', 'JSON_AGG')
    """
    if node is None:
        return "nothing"
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc) and node.name:
        return str(node.name).upper()
    word = _WORDS.get(type(node))
    if word is not None:
        return word
    if isinstance(node, exp.Connector):  # named for each of its parts, of which there may be many
        return type(node).__name__.upper()
    if isinstance(node, exp.Func):
        # The class is called as the parser likes, and the text that is made of it as SQL does.
        said = _FUNCTION.match(node.sql("postgres", unsupported_level=ErrorLevel.IGNORE))
        return said[0] if said is not None else "this function"
    return type(node).__name__.upper() if type(node) in _CLAUSES else "this form"


def clause(name: str) -> str:
    """Return the word of SQL for what a part of a statement may carry.

    >>> clause("locks"), clause("symmetric")
    ('FOR UPDATE', 'SYMMETRIC')
    """
    return _CARRIED.get(name, name.strip("_").upper())


_FUNCTION = re.compile(r"[A-Z][A-Z0-9_]*(?=\(|$)")
#: What the parser calls otherwise than SQL does.
_CARRIED = {
    "locks": "FOR UPDATE",
    "windows": "WINDOW",
    "sample": "TABLESAMPLE",
    "pivots": "PIVOT",
    "laterals": "LATERAL",
    "version": "AS OF",
    "match": "MATCH_RECOGNIZE",
    "kind": "STRUCT or VALUE",
    "operation_modifiers": "a modifier",
    "hint": "a hint",
    "hints": "a hint",
    "ignore_nulls": "IGNORE NULLS",
    "with_": "WITH",
    "distinct": "DISTINCT",
}

#: Parts whose name in the parser is their word in SQL.
_CLAUSES = {
    exp.And, exp.Or, exp.Not, exp.Between, exp.In, exp.Like, exp.ILike, exp.Is, exp.Case,
    exp.Distinct, exp.Having, exp.Limit, exp.Offset, exp.Join, exp.Interval, exp.Exists,
    exp.Filter, exp.Where, exp.Fetch, exp.With, exp.Union, exp.Except, exp.Intersect,
    exp.Lateral, exp.Values,
}  # fmt: skip
