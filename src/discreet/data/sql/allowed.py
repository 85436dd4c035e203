"""What a free query over released rows may be made of: a list of what is understood, no more.

Nothing in it reads a file, another table, a setting or the clock, calls what could grow without
bound, or changes anything. Whatever the parser reads beyond it is refused.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from discreet.data.sql.naming import written
from discreet.data.sql.typed import refuse

__all__ = ["require_allowed"]

#: A query over released rows has at most so many parts, and reads so many tables.
MOST_NODES = 3_000
MOST_TABLES = 16

_SYNTAX: tuple[type[Any], ...] = (
    exp.Select, exp.Subquery, exp.With, exp.CTE, exp.Union, exp.Except, exp.Intersect, exp.From,
    exp.Join, exp.Where, exp.Group, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Having, exp.Order,
    exp.Ordered, exp.Limit, exp.Offset, exp.Fetch, exp.LimitOptions, exp.Distinct, exp.Qualify,
    exp.Window, exp.WindowSpec, exp.Filter, exp.WithinGroup, exp.Alias, exp.TableAlias,
    exp.Table, exp.Column, exp.Identifier, exp.Star, exp.Tuple, exp.Paren,
    exp.Literal, exp.Boolean, exp.Null, exp.Var, exp.Cast, exp.DataType, exp.DataTypeParam,
    exp.Interval, exp.Exists,
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is,
    exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In, exp.Like, exp.ILike, exp.Case, exp.If,
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg, exp.DPipe, exp.AtTimeZone,
)  # fmt: skip
_FUNCTIONS: tuple[type[Any], ...] = (
    exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Quantile, exp.PercentileCont,
    exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Variance, exp.VariancePop, exp.Corr,
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag,
    exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Grouping,
    exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Abs, exp.Floor, exp.Ceil, exp.Round,
    exp.Trunc, exp.Sign, exp.Sqrt, exp.Ln, exp.Exp, exp.Pow, exp.Lower, exp.Upper, exp.Length,
    exp.Trim, exp.Left, exp.Right, exp.Substring, exp.StrPosition, exp.Concat, exp.SplitPart,
    exp.Extract, exp.TimestampTrunc, exp.DateTrunc, exp.StrToTime, exp.StrToDate, exp.TimeToStr,
    exp.UnixToTime, exp.Year, exp.Month, exp.Day, exp.DateFromParts,
)  # fmt: skip
_TYPES = {
    exp.DType.INT, exp.DType.BIGINT, exp.DType.SMALLINT, exp.DType.DOUBLE, exp.DType.FLOAT,
    exp.DType.DECIMAL, exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.BOOLEAN, exp.DType.DATE,
    exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.INTERVAL,
}  # fmt: skip


def require_allowed(query: exp.Query, tables: frozenset[str]) -> None:
    """Refuse a query that is made of more than is understood, or reads other tables."""
    common = {cte.alias for cte in query.find_all(exp.CTE)}
    nodes = read = 0
    for node in query.walk():
        nodes += 1
        if not isinstance(node, _SYNTAX + _FUNCTIONS):
            raise refuse(
                f"{written(node)} is not accepted over released rows",
                "unsupported-expression",
                "use joins, sub-selects, aggregates, windows, CASE and arithmetic on them",
            )
        if isinstance(node, exp.With) and node.args.get("recursive"):
            raise refuse(
                "WITH RECURSIVE is not accepted", "unsupported-clause", "leave out RECURSIVE"
            )
        if isinstance(node, exp.DataType) and node.this not in _TYPES:
            raise refuse(
                "a cast to this type is not accepted", "unsupported-cast", "cast to text, numeric, bigint, double precision, date or timestamp"
            )  # fmt: skip
        if isinstance(node, exp.LimitOptions | exp.Group) and any(
            node.args.get(name) for name in ("percent", "with_ties", "totals", "all")
        ):
            raise refuse(
                "this form of LIMIT or GROUP BY is not accepted",
                "unsupported-clause",
                "name the columns and the number of rows",
            )
        if isinstance(node, exp.Table):
            read += 1
            _require_table(node, tables, common)
    if nodes > MOST_NODES or read > MOST_TABLES:
        raise refuse("the statement has too many parts", "too-complex", "ask for less at a time")


def _require_table(node: exp.Table, tables: frozenset[str], common: set[str]) -> None:
    given = {name for name, value in node.args.items() if value not in (None, False, [])}
    known = isinstance(node.this, exp.Identifier) and (node.name in tables or node.name in common)
    if not known or not given <= {"this", "alias"}:
        raise refuse(
            f"there is no relation {node.name!r} here",
            "unknown-relation",
            "join answers with each other: each must be a SELECT with an aggregate",
        )
