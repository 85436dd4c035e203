"""Expressions that no engine can fail on, whatever the values.

An engine that overflows, divides by zero or fails to cast on some values tells by its error which
values they are. So arithmetic never runs in the types of the columns: each column that takes part
in it becomes a double, cut to a size at which nothing the parser accepts can overflow or vanish
(`expression.py` bounds how large and how small results can get). The parser marks columns of whole
numbers by their type; they need no cutting. Dates are cut to the years that
every engine can convert. Columns that are only compared, grouped or aggregated stay as they are.

What engines would compute differently (halves that are rounded, letters in capitals) is written
out here in what they compute alike; words that differ are left to `data.engines.meaning`.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from discreet.data.sql.letters import LOWER, UPPER, lowered

__all__ = ["DOUBLE", "LARGEST_VALUE", "SMALLEST_VALUE", "total", "total_key", "whole"]

#: Made once: a cast to a type by its name reads the name with the parser each time.
DOUBLE = exp.DataType.build("double")
#: Values in arithmetic are cut to this size, and count as zero below the other.
LARGEST_VALUE, SMALLEST_VALUE = 1e19, 1e-18
#: Whole numbers up to this size are exact as doubles.
_EXACT = 9e15
#: From here on doubles have no fraction.
_NO_FRACTION = 2.0**52
#: The double before one half: added, it takes halves up and nothing below them.
_HALF = 0.49999999999999994
_TIMES = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP)
_OPERATIONS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Abs)


def total(tree: exp.Expression) -> exp.Expression:
    """Return a copy of an understood expression that gives a value, or null, for every row.

    >>> total(exp.column("a") > 3).sql()
    'a > 3'
    >>> total(exp.Neg(this=exp.column("a"))).sql()
    '-CASE WHEN a > 1e19 THEN 1e19 WHEN a < -1e19 THEN -1e19 WHEN a > -1e-18 AND a < 1e-18 THEN 0.0 ELSE CAST(a AS DOUBLE) END'
    """
    return tree.copy() if isinstance(tree, exp.Column) else _total(tree)


def _total(tree: exp.Expression) -> exp.Expression:
    if isinstance(tree, _OPERATIONS):
        return _operation(tree)
    if isinstance(tree, exp.Trunc | exp.Floor | exp.Ceil):
        return _stepped(tree)
    if isinstance(tree, exp.Round):
        return _rounded(tree)
    if isinstance(tree, exp.Cast):
        if _is_double(tree):
            return _double(tree.this)
        if tree.args["to"].this == exp.DataType.Type.BIGINT:
            return whole(_double(tree.this))
        inner = _time(tree.this) if tree.args["to"].this in _TIMES else _total(tree.this)
        return exp.cast(inner, tree.args["to"].copy())
    rule = _WRITTEN_OUT.get(type(tree))
    return _mapped(tree, _total) if rule is None else rule(tree)


def total_key(tree: exp.Expression, kind: str) -> exp.Expression:
    """Return a total expression to group by; whole numbers stay whole numbers."""
    made = total(tree)
    if (
        kind == "integer"
        and tree.find(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Abs, exp.Trunc) is not None
    ):
        return whole(made)
    if kind == "number" and not is_decimal(tree):
        # Zero has two signs: they are one group, and which of them is shown must not be chance.
        nothing = exp.EQ(this=_closed(made), expression=exp.Literal.number(0))
        return exp.Case(ifs=[exp.If(this=nothing, true=_number(0.0))], default=made.copy())
    return made


def _operation(tree: exp.Expression) -> exp.Expression:
    if isinstance(tree.args.get("expression"), exp.Interval):  # a time moved by a span
        # Back between the years that clients can read, too.
        moment = exp.cast(_time(tree.this), "timestamp")
        moved = type(tree)(this=moment, expression=tree.expression.copy())
        return _in_years(exp.Paren(this=moved))
    if isinstance(tree, exp.Neg):
        if isinstance(tree.this, exp.Literal):
            return tree.copy()
        return exp.Neg(this=_closed(_double(tree.this)))
    if isinstance(tree, exp.Abs):
        return exp.Abs(this=_double(tree.this))
    if isinstance(tree, exp.Mod):
        # The sign of the divisor changes nothing, but −1 makes the smallest integer overflow.
        divisor = tree.expression.this if isinstance(tree.expression, exp.Neg) else tree.expression
        left = tree.this
        value = left.copy() if isinstance(left, exp.Column) else whole(_double(left))
        return exp.Mod(this=value, expression=divisor.copy())
    return type(tree)(
        this=_closed(_double(tree.this)), expression=_closed(_double(tree.expression))
    )


def _stepped(tree: exp.Expression) -> exp.Expression:
    """Return a number without its fraction; doubles beyond the exact ones have none.

    Spark takes FLOOR and CEIL to 64 bits, and fails beyond them; engines spell TRUNC differently.
    """
    if isinstance(tree.this, exp.Column) and _is_whole(tree.this):
        return tree.this.copy()
    value = _double(tree.this)
    if _has_no_fraction(tree.this):
        return value
    large = exp.GT(this=exp.Abs(this=value), expression=_number(_EXACT))
    ifs = [exp.If(this=large, true=value.copy())]
    if isinstance(tree, exp.Trunc):
        below = exp.LT(this=_closed(value.copy()), expression=exp.Literal.number(0))
        ifs.append(exp.If(this=below, true=exp.cast(exp.Ceil(this=value.copy()), DOUBLE)))
    step = exp.Ceil if isinstance(tree, exp.Ceil) else exp.Floor
    return exp.Case(ifs=ifs, default=exp.cast(step(this=value.copy()), DOUBLE))


def _rounded(tree: exp.Round) -> exp.Expression:
    """Return the nearest number of some decimals; halves go away from zero.

    PostgreSQL takes halves of doubles to even numbers, Spark rounds the digits it would print.
    """
    places = tree.args.get("decimals")
    inner = tree.this
    if isinstance(inner, exp.Column) and _is_whole(inner):
        return exp.cast(inner.copy(), DOUBLE)
    if _has_no_fraction(inner):
        return _double(inner)
    if places is None or str(places.this) == "0":
        return _nearest(_double(inner))
    factor = _number(10.0 ** int(places.this))
    scaled = exp.Paren(this=exp.Mul(this=_closed(_double(inner)), expression=factor))
    return exp.Div(this=_nearest(scaled), expression=factor.copy())


def _has_no_fraction(tree: exp.Expression) -> bool:
    """Whether a fraction was cut off already: written out again, it would be several times as long."""
    inner = tree.unnest()
    if isinstance(inner, exp.Round):
        places = inner.args.get("decimals")
        return places is None or str(places.this) == "0"
    return isinstance(inner, exp.Floor | exp.Ceil | exp.Trunc)


def _nearest(value: exp.Expression) -> exp.Expression:
    """Return the whole number next to a double, as a double."""

    def stepped(step: type[Any], move: type[Any]) -> exp.Expression:
        moved = move(this=_closed(value.copy()), expression=_number(_HALF))
        return exp.cast(step(this=moved), DOUBLE)

    large = exp.GTE(this=exp.Abs(this=value.copy()), expression=_number(_NO_FRACTION))
    below = exp.LT(this=_closed(value.copy()), expression=exp.Literal.number(0))
    return exp.Case(
        ifs=[
            exp.If(this=large, true=value.copy()),
            exp.If(this=below, true=stepped(exp.Ceil, exp.Sub)),
        ],
        default=stepped(exp.Floor, exp.Add),
    )


def _cased(tree: exp.Expression) -> exp.Expression:
    """Return a text in capitals or small letters, by the one table that all engines are given."""
    value = _total(tree.this)
    plain = exp.EQ(
        this=exp.ByteLength(this=value), expression=exp.Length(this=value.copy())
    )  # ASCII alone: each engine's own word is quicker, and means the same
    letters = UPPER if isinstance(tree, exp.Upper) else LOWER
    mapped = exp.Anonymous(
        this="translate", expressions=[value.copy(), *map(exp.Literal.string, letters)]
    )
    own = type(tree)(this=value.copy())
    return exp.Case(ifs=[exp.If(this=plain, true=own)], default=mapped)


def _ilike(tree: exp.ILike) -> exp.Expression:
    pattern = tree.expression.copy()
    if isinstance(pattern, exp.Literal):
        pattern.set("this", lowered(str(pattern.this)))
    return exp.Like(this=_cased(exp.Lower(this=tree.this)), expression=pattern)


def _trimmed(tree: exp.Trim) -> exp.Expression:
    """Return a text without spaces at its ends; DuckDB would take other blanks along."""
    return exp.Trim(this=_total(tree.this), expression=exp.Literal.string(" "))


def _extracted(tree: exp.Extract) -> exp.Expression:
    moment = exp.cast(_time(tree.expression), "timestamp")
    if tree.this.name.upper() == "EPOCH":
        micros = exp.cast(exp.UnixMicros(this=moment), DOUBLE)
        return exp.Div(this=micros, expression=_number(1e6))
    return exp.Extract(this=tree.this.copy(), expression=moment)


def _truncated(tree: exp.TimestampTrunc) -> exp.Expression:
    moment = exp.cast(_time(tree.this), "timestamp")
    return exp.cast(exp.TimestampTrunc(this=moment, unit=tree.args["unit"].copy()), "timestamp")


def _double(tree: exp.Expression) -> exp.Expression:
    """Return a value as a double that arithmetic can work with."""
    if isinstance(tree, exp.Column):
        return _cut(tree)
    if isinstance(tree, exp.Paren):
        return exp.Paren(this=_double(tree.this))
    if isinstance(tree, exp.Case):
        return _case(tree, _double)
    if isinstance(tree, exp.Coalesce):
        return _mapped(tree, _double)
    if isinstance(tree, _OPERATIONS) and not isinstance(tree, exp.Mod):
        if isinstance(tree, exp.Neg) and isinstance(tree.this, exp.Literal):
            return exp.cast(tree.copy(), DOUBLE)
        return _operation(tree)
    if isinstance(tree, exp.Cast) and _is_double(tree):
        return _double(tree.this)
    if isinstance(tree, exp.Round):
        return _rounded(tree)
    return exp.cast(_total(tree), DOUBLE)


def _cut(column: exp.Expression) -> exp.Expression:
    """Return a column as a double of bounded size; what is not a number counts as the largest."""
    if _is_whole(column):
        return exp.cast(column.copy(), DOUBLE)  # neither too large nor too small
    large, small = _number(LARGEST_VALUE), _number(SMALLEST_VALUE)

    def when(test: exp.Expression, value: exp.Expression) -> exp.If:
        return exp.If(this=test, true=value)

    tiny = exp.And(
        this=exp.GT(this=column.copy(), expression=exp.Neg(this=small)),
        expression=exp.LT(this=column.copy(), expression=small.copy()),
    )
    minus = exp.Neg(this=large.copy())
    return exp.Case(
        ifs=[
            when(exp.GT(this=column.copy(), expression=large), large.copy()),
            when(exp.LT(this=column.copy(), expression=minus), minus.copy()),
            when(tiny, _number(0.0)),
        ],
        default=exp.cast(column.copy(), DOUBLE),
    )


def whole(value: exp.Expression) -> exp.Expression:
    """Return a double as a whole number of 64 bits, cut to where doubles are exact."""
    large = _number(_EXACT)
    cut = exp.Case(
        ifs=[
            exp.If(this=exp.GT(this=value.copy(), expression=large), true=large.copy()),
            exp.If(
                this=exp.LT(this=value.copy(), expression=exp.Neg(this=large.copy())),
                true=exp.Neg(this=large.copy()),
            ),
        ],
        default=value,
    )
    return exp.cast(cut, "bigint")


def _time(tree: exp.Expression) -> exp.Expression:
    """Return a date or time between the years 1 and 9999, which every engine converts."""
    if isinstance(tree, exp.Column):
        return _in_years(tree)
    if isinstance(tree, exp.Case):
        return _case(tree, _time)
    if isinstance(tree, exp.Paren | exp.Coalesce):
        return _mapped(tree, _time)
    return _total(tree)


def _in_years(tree: exp.Expression) -> exp.Expression:
    first, last = (exp.cast(exp.Literal.string(d), "date") for d in ("0001-01-01", "9999-12-31"))
    return exp.Case(
        ifs=[
            exp.If(this=exp.LT(this=tree.copy(), expression=first), true=first.copy()),
            exp.If(this=exp.GT(this=tree.copy(), expression=last), true=last.copy()),
        ],
        default=tree.copy(),
    )


def _case(tree: exp.Case, value: Any) -> exp.Expression:
    """Return a CASE whose branches become values of one kind. Any: a function of trees."""
    default = tree.args.get("default")
    return exp.Case(
        this=None if tree.this is None else _total(tree.this),
        ifs=[
            exp.If(this=_total(branch.this), true=value(branch.args["true"]))
            for branch in tree.args["ifs"]
        ],
        default=None if default is None else value(default),
    )


def _mapped(tree: exp.Expression, value: Any) -> exp.Expression:
    """Return a node with its parts replaced. Any: a function of trees, and sqlglot's arguments."""
    if isinstance(tree, exp.Connector):
        return _chain(tree, value)
    if isinstance(tree, exp.Column) and is_decimal(tree):
        # Beside other numbers engines widen decimals, each its own way, until they do not fit.
        return exp.cast(tree.copy(), DOUBLE)
    if isinstance(tree, exp.Column | exp.Literal | exp.DataType):
        return tree.copy()
    arguments: dict[str, Any] = {}
    for name, part in tree.args.items():
        if isinstance(part, list):
            arguments[name] = [value(p) if isinstance(p, exp.Expression) else p for p in part]
        else:
            arguments[name] = value(part) if isinstance(part, exp.Expression) else part
    return type(tree)(**arguments)


def _chain(tree: exp.Connector, value: Any) -> exp.Expression:
    """Return a chain of AND or OR, walked by hand: long ones would exhaust the stack."""
    parts = [value(part) for part in tree.flatten(unnest=False)]
    made: Any = parts[0]
    for part in parts[1:]:
        made = type(tree)(this=made, expression=part)
    joined: exp.Expression = made
    return joined


def _closed(tree: exp.Expression) -> exp.Expression:
    return exp.Paren(this=tree) if isinstance(tree, exp.Binary | exp.Neg) else tree


def _is_whole(column: exp.Expression) -> bool:
    return bool(column.type is not None and column.type.this == exp.DataType.Type.BIGINT)


def is_decimal(tree: exp.Expression) -> bool:
    """Whether a tree is a column of decimals; the parser marks them by their type."""
    return bool(tree.type is not None and tree.type.this == exp.DataType.Type.DECIMAL)


def _is_double(tree: exp.Expression) -> bool:
    return bool(tree.args["to"].this == exp.DataType.Type.DOUBLE)


def _number(value: float) -> exp.Expression:
    text = repr(value)
    return exp.Literal.number(text.replace("e+", "e"))


_WRITTEN_OUT: dict[type[Any], Any] = {
    exp.Upper: _cased,
    exp.Lower: _cased,
    exp.ILike: _ilike,
    exp.Trim: _trimmed,
    exp.Extract: _extracted,
    exp.TimestampTrunc: _truncated,
}
