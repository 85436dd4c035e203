"""What PostgreSQL lets people write in several ways, written in the one that the rest understands.

Names lose the announced schema and database, parameters become literals, `= ANY (…)` becomes IN,
constants (now() − INTERVAL '30 days') are computed, and functions of public columns are spelled
with simpler ones. Nothing here is trusted: what comes out is read by the strict whitelist.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import re
from collections.abc import Callable
from typing import Any, cast

from sqlglot import exp

from discreet.data.engines.sandbox import compute
from discreet.data.sql.allowed import require_allowed
from discreet.data.sql.naming import written
from discreet.data.sql.reading import read_statements
from discreet.data.sql.scope import Parameters
from discreet.data.sql.typed import literal, refuse
from discreet.errors import RefusedError

__all__ = ["DATABASE", "SCHEMA", "normalized", "write_lists"]

#: The names that the catalog announces, and that clients put before relations.
SCHEMA, DATABASE = "public", "discreet"
_CONSTANTS = (
    exp.Literal, exp.Boolean, exp.Null, exp.Var, exp.DataType, exp.DataTypeParam, exp.Interval, exp.Paren,
    exp.Neg, exp.Cast, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.DPipe, exp.AtTimeZone, exp.Func,
    exp.IntervalSpan,
)  # fmt: skip
#: Constants that need no computing: the whitelist reads them as they are.
_PLAIN = (
    exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Paren, exp.Interval, exp.Cast, exp.Var,
    exp.DataType, exp.DataTypeParam, exp.IntervalSpan,
)  # fmt: skip
#: Parts of a constant that are none by themselves.
_PARTS = (exp.DataType, exp.DataTypeParam, exp.Var, exp.IntervalSpan, exp.Table)
_MOST_CONSTANTS = 50
#: Functions that write their argument several times may stand inside each other so often.
_MOST_LEVELS = 3
#: Parts without which there is nothing to compute, and those among them that need rows.
_COMPUTED = (exp.Func, exp.DPipe, exp.AtTimeZone, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_OF_ROWS = (exp.AggFunc, exp.Connector, exp.Case, exp.If, exp.Coalesce, exp.Window)
_LISTED = {exp.Any, exp.All, exp.Anonymous}


def normalized(tree: exp.Query, parameters: Parameters) -> exp.Query:
    """Return a statement in the forms that are understood; its tree is changed.

    >>> from sqlglot import parse_one
    >>> sql = "SELECT COUNT(*) FROM public.people AS p WHERE p.sex = ANY (ARRAY['f', 'm'])"
    >>> normalized(parse_one(sql, dialect="postgres"), Parameters(None)).sql()
    "SELECT COUNT(*) FROM people AS p WHERE p.sex IN ('f', 'm')"
    """
    nodes = list(tree.walk())
    kinds = {type(node) for node in nodes}
    for node in nodes:
        if isinstance(node, exp.Table | exp.Column) and "db" in node.args:
            _unqualify(node)
    if kinds & _LISTED:
        write_lists(tree, parameters)
    if kinds & {exp.Parameter, exp.Placeholder}:
        for place in list(tree.find_all(exp.Parameter, exp.Placeholder)):
            place.replace(parameters.take(place).tree)
    if any(issubclass(kind, _COMPUTED) and not issubclass(kind, _OF_ROWS) for kind in kinds):
        _fold(tree)
    if kinds & _REWRITTEN:
        _require_shallow(tree)
        for node in reversed(list(tree.walk())):
            rule = _REWRITES.get(type(node))
            if rule is not None and (new := rule(node)) is not None:
                node.replace(new)
    return tree


def _require_shallow(tree: exp.Query) -> None:
    """Refuse functions inside each other whose argument is written several times."""
    for node in tree.find_all(exp.Nullif, exp.WidthBucket):
        above, depth = node.parent, 1
        while above is not None:
            depth += isinstance(above, exp.Nullif | exp.WidthBucket)
            above = above.parent
        if depth > _MOST_LEVELS:
            raise refuse(
                f"{written(node)} stands inside {written(node)} too often",
                "too-complex",
                f"nest at most {_MOST_LEVELS}",
            )


def _unqualify(node: exp.Table | exp.Column) -> None:
    """Drop the announced schema and database before a name; other ones stay and are refused."""
    schema, database = node.args.get("db"), node.args.get("catalog")
    if schema is None or schema.name.casefold() != SCHEMA:
        return
    if database is None or database.name.casefold() == DATABASE:
        node.set("db", None)
        node.set("catalog", None)


# -- lists -----------------------------------------------------------------------------------------
def write_lists(tree: exp.Query, parameters: Parameters, *, strict: bool = True) -> None:
    """Write `= ANY (list)` as IN and `<> ALL (list)` as NOT IN; else refuse, or leave it if not strict."""
    for comparison in list(tree.find_all(exp.EQ, exp.NEQ)):
        given = comparison.expression
        every = isinstance(given, exp.All) or (
            isinstance(given, exp.Anonymous) and given.name.upper() == "ALL"
        )
        if not isinstance(given, exp.Any) and not every:
            continue
        if every != isinstance(comparison, exp.NEQ):
            if not strict:
                continue
            raise refuse(
                "ANY goes with =, and ALL with <>", "unsupported-expression", "write x IN (…)"
            )
        inner = given.expressions[0] if isinstance(given, exp.Anonymous) else given.this
        try:
            items = _items(inner.unnest(), parameters)
        except RefusedError:
            if strict:
                raise
            continue
        new: exp.Expr = exp.In(this=comparison.this.copy(), expressions=items)
        if not items:
            new = exp.false()
        comparison.replace(exp.Not(this=exp.Paren(this=new)) if every else new)


def _items(node: exp.Expr, parameters: Parameters) -> list[exp.Expr]:
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    if isinstance(node, exp.Array):
        return [item.copy() for item in node.expressions]
    if isinstance(node, exp.Parameter | exp.Placeholder):
        given = parameters.value(node)
        given = _array(given) if isinstance(given, str) else given
        if isinstance(given, list | tuple):
            return [literal(value).tree for value in given]
    if isinstance(node, exp.Literal) and node.is_string:
        return [literal(value).tree for value in _array(str(node.this))]
    raise refuse("ANY and ALL need a list of values", "unsupported-expression", "write x IN (…)")


_ELEMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,{}"]*))\s*(,|$)')


def _array(text: str) -> list[str | None]:
    """Return the elements of an array as PostgreSQL writes it: {a,"b c",NULL}."""
    inner = text.strip()
    if not (inner.startswith("{") and inner.endswith("}")):
        raise refuse("a list is written in braces", "malformed-literal", "write '{a,b}'")
    inner, found, at = inner[1:-1], [], 0
    while inner.strip():
        match = _ELEMENT.match(inner, at)
        if match is None:
            raise refuse("a list of lists is not accepted", "malformed-literal", "write '{a,b}'")
        quoted, bare, comma = match.groups()
        bare = (bare or "").strip()
        unescaped = None if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        found.append(unescaped if quoted is not None else None if bare.upper() == "NULL" else bare)
        at = match.end()
        if not comma:
            break
    return found


# -- constants -------------------------------------------------------------------------------------
def _fold(tree: exp.Query) -> None:
    """Compute what reads no column; the time is that of the minute, so that it can be repeated."""
    now = datetime.datetime.now(datetime.UTC).replace(second=0, microsecond=0, tzinfo=None)
    for clock in list(tree.find_all(exp.CurrentTimestamp, exp.CurrentDate, exp.Localtimestamp)):
        clock.replace(literal(now.date() if isinstance(clock, exp.CurrentDate) else now).tree)
    found = _folded(tree)
    if len(found) > _MOST_CONSTANTS:
        raise refuse("too many constants are computed", "too-complex", "write their values")
    for node in found:
        value = _computed(node)
        if not isinstance(value, datetime.timedelta):
            node.replace(literal(value).tree)


def _folded(tree: exp.Expr) -> list[exp.Expr]:
    """Return the largest parts that are constant and have to be computed."""
    constant = _constants(tree)
    found, left = [], [tree]
    while left:
        node = left.pop()
        if isinstance(node, _PARTS):
            continue
        if isinstance(node, exp.Window):  # what it computes is of many rows
            left.extend(node.this.iter_expressions())
            left.extend(part for part in node.iter_expressions() if part is not node.this)
        elif isinstance(node, exp.Query | exp.Subquery | exp.If) or id(node) not in constant:
            left.extend(node.iter_expressions())
        elif any(not isinstance(part, _PLAIN) or _zoned(part) for part in node.walk()):
            found.append(node)
    return found


def _zoned(node: exp.Expr) -> bool:
    """Whether a cast gives a time with a zone, which columns do not have."""
    return isinstance(node, exp.Cast) and node.to.this in (
        exp.DType.TIMESTAMPTZ,
        exp.DType.TIMESTAMPLTZ,
    )


def _constants(tree: exp.Expr) -> set[int]:
    """Return the identities of nodes that read no column, each looked at once, its parts before it."""
    found: set[int] = set()
    for node in reversed(list(tree.walk())):
        if (
            isinstance(node, _CONSTANTS)
            and not isinstance(node, exp.AggFunc | exp.Anonymous)
            and all(id(part) in found for part in node.iter_expressions())
        ):
            found.add(id(node))
    return found


def _computed(node: exp.Expr) -> Any:
    """Return the value of a constant. Any: a number, text, truth, date, time or span."""
    query = exp.select(exp.alias_(node.copy(), "value"))
    require_allowed(query, frozenset())
    return _value(query.sql("postgres"))


@functools.lru_cache(maxsize=1024)
def _value(text: str) -> Any:
    (tree,) = read_statements(text)
    assert isinstance(tree, exp.Query)
    try:
        (value,) = compute(tree).column(0).to_pylist()
    except RefusedError:
        raise refuse(
            "a constant cannot be computed", "malformed-literal", "check its types, or write it out"
        ) from None
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, decimal.Decimal):
        return int(value) if value.as_tuple().exponent == 0 else float(value)
    if isinstance(value, bytes | list | dict):
        raise refuse("a constant is no plain value", "malformed-literal", "write it out")
    return value


# -- functions -------------------------------------------------------------------------------------
def _whole(node: exp.Expr | None) -> int | None:
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
        return int(node.this)
    return None


def _number(node: exp.Expr | None) -> float | None:
    sign = 1.0
    if isinstance(node, exp.Neg):
        node, sign = node.this, -1.0
    if isinstance(node, exp.Literal) and not node.is_string:
        return sign * float(node.this)
    return None


def _left(node: Any) -> exp.Expr | None:
    length = _whole(node.expression)
    if length is None:
        return None
    return exp.Substring(
        this=node.this.copy(), start=exp.Literal.number(1), length=exp.Literal.number(length)
    )


def _nullif(node: Any) -> exp.Expr:
    same = exp.EQ(this=node.this.copy(), expression=node.expression.copy())
    return exp.Case(ifs=[exp.If(this=same, true=exp.null())], default=node.this.copy())


def _width_bucket(node: Any) -> exp.Expr | None:
    names = ("min_value", "max_value", "num_buckets")
    low, high, count = (_number(node.args.get(name)) for name in names)
    if low is None or high is None or count is None or not low < high or not 1 <= count <= 10_000:
        return None
    value = node.this.copy()
    numbers = [literal(n if n % 1 else int(n)).tree for n in (low, high, (high - low) / count)]
    below = exp.LT(this=value.copy(), expression=numbers[0].copy())
    above = exp.GTE(this=value.copy(), expression=numbers[1].copy())
    step = exp.Floor(
        this=exp.Div(
            this=exp.Paren(this=exp.Sub(this=exp.cast(value, "double"), expression=numbers[0])),
            expression=numbers[2],
        )
    )
    inside = exp.Add(this=step, expression=exp.Literal.number(1))
    ends = exp.Literal.number(0), exp.Literal.number(int(count) + 1)
    return exp.Case(
        ifs=[exp.If(this=below, true=ends[0]), exp.If(this=above, true=ends[1])], default=inside
    )


def _concat(node: Any) -> exp.Expr | None:
    """Concatenate; unlike ||, a NULL counts as nothing."""
    parts: list[exp.Expr] = [
        part.copy()
        if isinstance(part, exp.Literal)
        else exp.Coalesce(this=part.copy(), expressions=[exp.Literal.string("")])
        for part in node.expressions
    ]
    if not parts:
        return None
    tree = parts[0]
    for part in parts[1:]:
        tree = exp.DPipe(this=tree, expression=part)
    return tree


def _position(node: Any) -> exp.Expr | None:
    """Write `STRPOS(x, 'a') > 0` as LIKE."""
    found, number = node.this.unnest(), _number(node.expression)
    if not isinstance(found, exp.StrPosition) or found.args.get("position") is not None:
        return None
    wanted = found.args.get("substr")
    wanted = wanted.this if isinstance(wanted, exp.Cast) else wanted
    is_there = (type(node), number) in ((exp.GT, 0.0), (exp.GTE, 1.0), (exp.NEQ, 0.0))
    is_away = (type(node), number) in ((exp.EQ, 0.0), (exp.LT, 1.0), (exp.LTE, 0.0))
    if not isinstance(wanted, exp.Literal) or not (is_there or is_away):
        return None
    if re.search(r"[%_\\]", str(wanted.this)):
        return None
    like = exp.Like(this=found.this.copy(), expression=exp.Literal.string(f"%{wanted.this}%"))
    return like if is_there else exp.Not(this=exp.Paren(this=like))


def _trunc(node: Any) -> exp.Expr | None:
    inner = node.this.unnest()
    return (
        inner.copy() if isinstance(inner, exp.Extract) and not node.args.get("decimals") else None
    )


def _utc(node: Any) -> exp.Expr | None:
    zone = node.args.get("zone")
    same = isinstance(zone, exp.Literal) and str(zone.this).upper() in ("UTC", "GMT", "ETC/UTC")
    return node.this.copy() if same else None


_WIDER = (exp.DType.DOUBLE, exp.DType.DECIMAL, exp.DType.FLOAT)


def _aggregated(node: Any) -> exp.Expr | None:
    """Leave out a cast to a wider type inside an aggregate, which changes nothing it computes."""
    inner = node.this.unnest() if isinstance(node.this, exp.Expr) else None
    if isinstance(node, exp.Sum) and _whole(inner) is not None:
        times = _whole(inner)
        counted = exp.Count(this=exp.Star())
        if times == 1:
            return counted
        return exp.Mul(this=counted, expression=exp.Literal.number(times))
    if (
        isinstance(inner, exp.Cast)
        and inner.to.this in _WIDER
        and not inner.to.expressions
        and isinstance(inner.this.unnest(), exp.Column)
    ):
        new = node.copy()
        new.set("this", inner.this.unnest().copy())
        return cast("exp.Expr", new)
    return None


def _ordered(node: Any) -> exp.Expr | None:
    """Do the same inside WITHIN GROUP (ORDER BY …)."""
    for item in node.find_all(exp.Ordered):
        if (new := _aggregated(item)) is not None:
            item.replace(new)
    return None


_REWRITES: dict[type[Any], Callable[[Any], exp.Expr | None]] = {
    exp.Left: _left,
    exp.Nullif: _nullif,
    exp.WidthBucket: _width_bucket,
    exp.Concat: _concat,
    exp.Trunc: _trunc,
    exp.AtTimeZone: _utc,
    exp.WithinGroup: _ordered,
    **dict.fromkeys((exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ), _position),
    **dict.fromkeys(
        (exp.Sum, exp.Avg, exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Variance, exp.VariancePop),
        _aggregated,
    ),
}  # fmt: skip
#: Comparisons are rewritten only where they compare a position.
_REWRITTEN = {
    exp.Left, exp.Nullif, exp.WidthBucket, exp.Concat, exp.Trunc, exp.AtTimeZone, exp.StrPosition, exp.Cast, exp.Sum,
}  # fmt: skip
