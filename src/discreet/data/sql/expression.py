"""Row expressions, rebuilt node by node: a node or an argument not named here is refused.

Nothing is checked in place. Each function takes a parsed node and returns a new tree made only of
parts it has understood, so that an argument nobody thought of cannot travel along. Errors that an
engine would raise depending on the data (division by zero, failing casts, overflow) would tell one
bit per question. So each value carries how large and how small it can get; what could leave the
range of doubles is refused here, and `total.py` computes the rest so that nothing can fail.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from sqlglot import exp

from discreet.data.sql.naming import clause, written
from discreet.data.sql.spelling import spelled
from discreet.data.sql.total import LARGEST_VALUE, SMALLEST_VALUE
from discreet.errors import RefusedError, nearest

__all__ = ["Scope", "Typed", "literal", "rebuild", "refuse", "require_arguments"]

NUMBERS = ("integer", "number", "null")
TEXTS = ("text", "null")
TIMES = ("date", "timestamp", "null")
#: Literals beyond this size, or nearer to zero than one over it, are refused.
LARGEST = 1e15
#: So many columns may be multiplied with each other.
DEGREE = 3
#: Results beyond this size, or nearer to zero than one over it, could leave the range of doubles.
WIDEST = 1e200
#: Parts of expressions that a statement may repeat by naming columns of sub-selects.
MOST_COPIED = 20_000
#: Rounding leaves no difference of doubles smaller than this share of the smaller of them.
_ROUNDING = 2.0**-53


@dataclasses.dataclass(frozen=True, eq=False)
class Typed:
    """A rebuilt expression, its kind, the columns it reads and its degree as a polynomial."""

    tree: exp.Expression
    kind: str
    columns: frozenset[str] = frozenset()
    degree: int = 0
    #: Largest size of a number, and the smallest that is not zero.
    most: float = LARGEST_VALUE
    least: float = SMALLEST_VALUE

    @property
    def is_literal(self) -> bool:
        """Whether it reads no column."""
        return not self.columns


@dataclasses.dataclass(frozen=True)
class Scope:
    """What names mean inside one SELECT, and the values of its parameters."""

    #: Per alias: name of the column to its meaning.
    relations: Mapping[str, Mapping[str, Typed]]
    parameters: Parameters

    def resolve(self, node: exp.Column) -> Typed:
        """Return what a column name means here."""
        require_arguments(node, "this", "table")
        if not isinstance(node.this, exp.Identifier):
            raise refuse("'*' stands for columns only in COUNT(*)", "star", "name the columns")
        found = [
            meaning
            for alias, columns in self._visible(node)
            if (meaning := _look(columns, node.this)) is not None
        ]
        if len(found) == 1:
            return found[0]
        name = node.this.name
        if found:
            raise refuse(
                f"column {name!r} is in several relations",
                "ambiguous-column",
                "write relation.column",
            )
        # Askers are told what they may use; the names of identifiers are not theirs to know.
        known = sorted(
            {
                column
                for columns in self.relations.values()
                for column, meaning in columns.items()
                if meaning.kind != "identifier"
            }
        )
        guess = nearest(name, known)
        raise refuse(
            f"there is no column {name!r}",
            "unknown-column",
            f"write {guess!r}" if guess else "choose one of " + ", ".join(known),
        )

    def _visible(self, node: exp.Column) -> list[tuple[str, Mapping[str, Typed]]]:
        table = node.args.get("table")
        if table is None:
            return list(self.relations.items())
        match = _match(self.relations, table)
        if match is None:
            raise refuse(
                f"there is no relation {table.name!r} in this SELECT",
                "unknown-relation",
                "write one of " + ", ".join(self.relations),
            )
        return [(match, self.relations[match])]


class Parameters:
    """Values bound to placeholders, by place or by name, and how much a statement has copied."""

    def __init__(self, values: Sequence[Any] | Mapping[str, Any] | None) -> None:
        self._values = {} if values is None else values
        self._copied = 0

    def count_copied(self, tree: exp.Expression) -> None:
        """Refuse a statement whose sub-selects use each other's columns so often that it explodes."""
        self._copied += sum(1 for _ in tree.walk())
        if self._copied > MOST_COPIED:
            raise refuse(
                "columns of sub-selects are used too often",
                "too-complex",
                "use each of them once or twice",
            )

    def take(self, node: exp.Expression) -> Typed:
        """Return the value of a placeholder as a literal."""
        return literal(self.value(node))

    def value(self, node: exp.Expression) -> Any:
        """Return the value of a placeholder. Any: whatever the client sent."""
        if isinstance(node, exp.Parameter):
            require_arguments(node, "this")
            key: Any = int(node.name) - 1 if node.name.isdigit() else node.name
        else:
            require_arguments(node, "this", "jdbc")
            key = node.args.get("this")
        try:
            if isinstance(key, int) and key < 0:
                raise KeyError(key)
            return self._values[key]
        except (KeyError, IndexError, TypeError):
            place = key + 1 if isinstance(key, int) else repr(key)
            raise refuse(
                f"parameter {place} has no value", "missing-parameter", "give a value for each"
            ) from None


def refuse(message: str, code: str, hint: str | None = None) -> RefusedError:
    """Return the error that says why a statement is not accepted and what would be."""
    return RefusedError(message, code=code, hint=hint)


def require_arguments(node: exp.Expression, *known: str) -> None:
    """Refuse a node that carries an argument beyond the known ones."""
    for name, value in node.args.items():
        if name not in known and value not in (None, False, []):
            raise refuse(
                f"{written(node)} with {clause(name)} is not accepted",
                "unsupported-clause",
                "leave it out",
            )


def identifier_match(names: Sequence[str], identifier: exp.Identifier) -> str | None:
    """Return the name an identifier means: exact if quoted, else in any case."""
    if identifier.name in names:
        return identifier.name
    if identifier.args.get("quoted"):
        return None
    folded = [n for n in names if n.casefold() == identifier.name.casefold()]
    return folded[0] if len(folded) == 1 else None


def _match(names: Mapping[str, Any], identifier: exp.Identifier) -> str | None:
    return identifier_match(list(names), identifier)


def _look(columns: Mapping[str, Typed], identifier: exp.Identifier) -> Typed | None:
    name = _match(columns, identifier)
    return None if name is None else columns[name]


def literal(value: Any) -> Typed:
    """Return a Python value as a literal, or refuse it.

    Any: clients send what they have; only plain values are understood.
    """
    if value is None:
        return Typed(exp.Null(), "null")
    if isinstance(value, bool):
        return Typed(exp.Boolean(this=value), "boolean")
    if isinstance(value, int):
        return _number(str(value), value, "integer")
    if isinstance(value, datetime.datetime):
        text = value.isoformat(sep=" ")
        return Typed(exp.cast(exp.Literal.string(text), "timestamp"), "timestamp")
    if isinstance(value, datetime.date):
        return Typed(exp.cast(exp.Literal.string(value.isoformat()), "date"), "date")
    if isinstance(value, str):
        if "\x00" in value:
            raise refuse("text may not hold a zero byte", "malformed-literal", "leave it out")
        # Composed, as the records are, and compared with texts byte by byte.
        words = exp.Literal.string(unicodedata.normalize("NFC", value))
        words.type = "text"
        return Typed(words, "text")
    try:
        size = float(value)
    except (TypeError, ValueError, OverflowError):
        raise refuse(
            f"a parameter of type {type(value).__name__} is not accepted",
            "malformed-parameter",
            "pass numbers, text, dates, booleans or null",
        ) from None
    return _number(str(value), size, "number")


def _number(text: str, size: float, kind: str) -> Typed:
    if not math.isfinite(size) or abs(size) > LARGEST:
        raise refuse("a number is too large", "large-number", "stay below 1e15")
    if 0 < abs(size) < 1 / LARGEST:
        raise refuse("a number is too close to zero", "large-number", "stay above 1e-15")
    tree: exp.Expression = exp.Literal.number(text.lstrip("-"))
    tree = exp.Neg(this=tree) if size < 0 else tree
    return Typed(tree, kind, most=abs(size), least=abs(size) or 1.0)


def rebuild(node: exp.Expression | None, scope: Scope) -> Typed:
    """Return the understood copy of a row expression."""
    rule = _RULES.get(type(node))
    if node is None or rule is None:
        raise _unsupported(node)
    return rule(node, scope)


def _unsupported(node: exp.Expression | None) -> RefusedError:
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


def _leaf_number(node: exp.Expression, _: Scope) -> Typed:
    require_arguments(node, "this", "is_string")
    if node.args.get("is_string"):
        return literal(node.this)
    text = str(node.this)
    try:
        return _number(text, float(text), "integer" if text.isdigit() else "number")
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


def _need(value: Typed, kinds: Sequence[str], where: str) -> Typed:
    if value.kind not in kinds:
        wanted = " or ".join(k for k in kinds if k != "null")
        hint = f"give {where} {wanted}"
        if where in ("+", "-") and value.kind in TIMES:
            hint = "shift a time by a fixed span: + INTERVAL '1 day'"
        raise refuse(f"{where} needs {wanted}, found {value.kind}", "type-mismatch", hint)
    return value


def _merge(
    tree: exp.Expression,
    kind: str,
    *parts: Typed,
    degree: int | None = None,
    size: tuple[float, float] | None = None,
) -> Typed:
    """Return a value made of parts; its size, least and most, is that of its parts if not given."""
    columns = frozenset[str]().union(*(part.columns for part in parts))
    highest = max((part.degree for part in parts), default=0)
    if size is None:
        numbers = [part for part in parts if part.kind in ("integer", "number")] or parts
        size = min(p.least for p in numbers), max(p.most for p in numbers)
    least, most = size
    if most > WIDEST or least < 1 / WIDEST:
        raise refuse(
            "an expression can become too large or too close to zero",
            "unbounded-product",
            "multiply and divide by fewer or smaller numbers",
        )
    return Typed(tree, kind, columns, highest if degree is None else degree, most, least)


def _connector(node: exp.Expression, scope: Scope) -> Typed:
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
    return _merge(tree, "boolean", *parts)


def operands(node: exp.Expression) -> list[exp.Expression]:
    """Return the operands of a chain of AND or of OR."""
    return [cast("exp.Expression", part) for part in node.flatten()]


def _boolean(node: exp.Expression, scope: Scope, where: str) -> Typed:
    return _need(rebuild(node, scope), ("boolean", "null"), where)


def _not(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this")
    inner = _boolean(node.this, scope, "NOT")
    return _merge(negated(inner.tree), "boolean", inner)


def negated(tree: exp.Expression) -> exp.Expression:
    """Return the negation of a condition, spelled in one way."""
    return exp.Not(this=_closed(tree))


def _closed(tree: exp.Expression) -> exp.Expression:
    loose = (exp.Connector, exp.Binary, exp.Between, exp.In, exp.Not)
    return exp.Paren(this=tree) if isinstance(tree, loose) else tree


def _comparable(left: Typed, right: Typed, where: str) -> tuple[Typed, Typed]:
    """Return both sides as one kind, reading text as a date where it is compared with one."""
    for one, other in ((left, right), (right, left)):
        if one.kind in ("date", "timestamp") and other.kind == "text":
            if not isinstance(other.tree, exp.Literal):
                break
            dated = _dated(other.tree, one.kind)
            return (left, dated) if other is right else (dated, right)
        if one.kind in ("integer", "number", "boolean") and isinstance(other.tree, exp.Literal):
            read = _unquoted(other.tree, one.kind) if other.kind == "text" else None
            if read is not None:
                return (left, read) if other is right else (read, right)
    groups = (NUMBERS, TEXTS, TIMES, ("boolean", "null"))
    if not any(left.kind in kinds and right.kind in kinds for kinds in groups):
        raise refuse(
            f"{where} compares {left.kind} with {right.kind}",
            "type-mismatch",
            "quote text and dates, leave numbers bare",
        )
    return left, right


def _unquoted(tree: exp.Literal, kind: str) -> Typed | None:
    """Return the number or truth that PostgreSQL reads in a quoted literal; None if it is none."""
    text = str(tree.this).strip()
    if kind == "boolean":
        words = {"t": True, "true": True, "f": False, "false": False}
        return literal(words[text.lower()]) if text.lower() in words else None
    if re.fullmatch(r"[+-]?[0-9]{1,15}", text):
        return literal(int(text))
    if re.fullmatch(r"[+-]?[0-9]{1,15}[.][0-9]{1,15}", text):
        return literal(float(text))
    return None


def _dated(tree: exp.Literal, kind: str) -> Typed:
    text = str(tree.this)
    try:
        value = datetime.datetime.fromisoformat(text)
        if value.tzinfo is not None:  # columns have no zone, and sessions are in UTC
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise refuse(
            "text that is compared with a date is not a date",
            "malformed-date",
            "write '2024-12-31'",
        ) from None
    return literal(value.date() if kind == "date" and len(text) <= 10 else value)


def _comparison(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this", "expression")
    left, right = _comparable(
        rebuild(node.this, scope), rebuild(node.expression, scope), written(node)
    )
    kind: type[Any] = type(node)
    if left.is_literal and not right.is_literal:
        # One spelling for one condition: the column first.
        left, right, kind = right, left, _FLIPPED[kind]
    tree = kind(this=_closed(left.tree), expression=_closed(right.tree))
    return _merge(tree, "boolean", left, right)


_FLIPPED: dict[type[Any], type[Any]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
}


def _between(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this", "low", "high")
    value = rebuild(node.this, scope)
    value, low = _comparable(value, rebuild(node.args["low"], scope), "BETWEEN")
    value, high = _comparable(value, rebuild(node.args["high"], scope), "BETWEEN")
    low, high = _comparable(low, high, "BETWEEN")  # a NULL would compare with both, not they
    tree = exp.Between(this=_closed(value.tree), low=_closed(low.tree), high=_closed(high.tree))
    return _merge(tree, "boolean", value, low, high)


def _in(node: exp.Expression, scope: Scope) -> Typed:
    if node.args.get("query") is not None or node.args.get("unnest") is not None:
        raise _unsupported(exp.Subquery())
    require_arguments(node, "this", "expressions")
    value = rebuild(node.this, scope)
    items = [_comparable(value, rebuild(item, scope), "IN")[1] for item in node.expressions]
    if not items or any(not item.is_literal for item in items):
        raise refuse("IN needs a list of values", "unsupported-expression", "write IN ('a', 'b')")
    known = [item for item in items if item.kind != "null"]
    items = [_comparable(known[0], item, "IN")[1] for item in items] if known else items
    trees = {spelled(item.tree): item.tree for item in items}
    ordered = [trees[text] for text in sorted(trees)]
    return _merge(exp.In(this=_closed(value.tree), expressions=ordered), "boolean", value)


def _like(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this", "expression", "negate")
    value = _need(rebuild(node.this, scope), TEXTS, "LIKE")
    pattern = _need(rebuild(node.expression, scope), TEXTS, "LIKE")
    if not pattern.is_literal:
        raise refuse("LIKE needs a pattern in quotes", "unsupported-expression", "write LIKE 'a%'")
    if isinstance(pattern.tree, exp.Literal) and "\\" in str(pattern.tree.this):
        # Engines read it differently, and one fails at the end of a pattern, for some values only.
        raise refuse(
            "a pattern with a backslash is not accepted",
            "unsupported-expression",
            "use % and _ alone, or compare with =",
        )
    tree: exp.Expression = type(node)(this=_closed(value.tree), expression=pattern.tree)
    return _merge(negated(tree) if node.args.get("negate") else tree, "boolean", value)


def _is(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this", "expression", "negate")
    value, right = rebuild(node.this, scope), rebuild(node.expression, scope)
    if not isinstance(right.tree, exp.Null | exp.Boolean):
        raise refuse("IS needs NULL, TRUE or FALSE", "unsupported-expression", "write IS NULL")
    if isinstance(right.tree, exp.Boolean):
        _need(value, ("boolean", "null"), "IS TRUE")
    tree: exp.Expression = exp.Is(this=_closed(value.tree), expression=right.tree)
    return _merge(negated(tree) if node.args.get("negate") else tree, "boolean", value)


#: Spans that can be added to a time, and how many of them: a thousand years at most, so that no
#: date that people have leaves the range of an engine.
_SPANS = {
    "year": 1_000, "month": 12_000, "week": 52_000, "day": 365_000, "hour": 999_999,
    "minute": 999_999, "second": 999_999,
}  # fmt: skip
#: So many spans may be added one after another, and remainders taken of each other.
_MOST_SHIFTS = 3
_MOST_LEVELS = 3
#: Texts that one value may be joined of: each is as long as the data make it.
_MOST_JOINED = 32


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


def _shifted(node: exp.Expression, scope: Scope) -> Typed:
    value = _need(rebuild(node.this, scope), TIMES, written(node))
    if sum(1 for _ in value.tree.find_all(exp.Interval)) >= _MOST_SHIFTS:
        raise refuse(
            "a time is shifted too often", "unsupported-expression", "add one INTERVAL to it"
        )
    tree = type(node)(this=_closed(value.tree), expression=_span(node.expression))
    return _merge(tree, "timestamp", value)


def _arithmetic(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this", "expression", "typed", "safe")
    if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression.unnest(), exp.Interval):
        plain = type(node)(this=node.this, expression=node.expression.unnest())
        return _shifted(plain, scope)
    left = _need(rebuild(node.this, scope), NUMBERS, written(node))
    right = _need(rebuild(node.expression, scope), NUMBERS, written(node))
    degree = max(left.degree, right.degree)
    if isinstance(node, exp.Mul):
        degree = left.degree + right.degree
        if degree > DEGREE:
            raise refuse(
                "too many columns are multiplied with each other",
                "unbounded-product",
                f"multiply at most {DEGREE}",
            )
    kind = "integer" if left.kind == right.kind == "integer" else "number"
    if "null" in (left.kind, right.kind):
        kind = "null"  # whatever the other is
    if isinstance(node, exp.Div | exp.Mod):
        _need_divisor(right)
    if isinstance(node, exp.Div | exp.Mod) and kind == "integer":
        _need_shallow(left)
    if isinstance(node, exp.Mod) and kind == "number":
        raise refuse(
            "a remainder is accepted of whole numbers only",
            "unsupported-expression",
            "use a whole-number column and a whole number",
        )
    size = _sizes(node, left, right)
    if isinstance(node, exp.Div):
        # One meaning on every engine: that of PostgreSQL, where whole numbers give a whole one.
        tree: exp.Expression = exp.Div(
            this=exp.cast(_closed(left.tree), "double"),
            expression=exp.cast(_closed(right.tree), "double"),
        )
        tree = exp.Trunc(this=tree) if kind == "integer" else tree
    else:
        tree = type(node)(this=_closed(left.tree), expression=_closed(right.tree))
    return _merge(tree, kind, left, right, degree=degree, size=size)


def _need_shallow(value: Typed) -> None:
    """Refuse what cuts fractions off, of each other: each level is written several times."""
    if _levels(value.tree) >= _MOST_LEVELS:
        raise refuse(
            "remainders, quotients, ROUND, FLOOR, CEIL, UPPER and LOWER are taken of each other too often",
            "too-complex",
            f"nest at most {_MOST_LEVELS}",
        )


#: What is written out with its argument several times.
_REPEATED = (exp.Mod, exp.Trunc, exp.Floor, exp.Ceil, exp.Round, exp.Upper, exp.Lower, exp.ILike)


def _levels(tree: exp.Expr) -> int:
    deepest = max((_levels(part) for part in tree.iter_expressions()), default=0)
    return deepest + isinstance(tree, _REPEATED)


def _sizes(node: exp.Expression, left: Typed, right: Typed) -> tuple[float, float]:
    """Return the smallest size of a result that is not zero, and the largest."""
    if isinstance(node, exp.Mul):
        return left.least * right.least, left.most * right.most
    if isinstance(node, exp.Div):
        return left.least / max(right.most, right.least), left.most / right.least
    if isinstance(node, exp.Mod):
        return 1.0, right.most
    return min(left.least, right.least) * _ROUNDING, left.most + right.most


def _joined(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this", "expression", "safe")
    parts = []
    for side in (node.this, node.expression):
        value = rebuild(side, scope)
        if value.kind == "integer":
            value = dataclasses.replace(value, tree=_digits(value.tree), kind="text")
        parts.append(_need(value, TEXTS, "||"))
    tree = exp.DPipe(this=_closed(parts[0].tree), expression=_closed(parts[1].tree))
    if sum(1 for _ in tree.find_all(exp.DPipe)) > _MOST_JOINED:
        raise refuse(
            "too many texts are joined", "too-complex", f"use || at most {_MOST_JOINED} times"
        )
    return _merge(tree, "text", *parts, degree=0)


def _digits(tree: exp.Expression) -> exp.Expression:
    """Return a whole number as text, without the point that doubles are written with."""
    plain = isinstance(tree, exp.Column | exp.Literal)
    return exp.cast(tree if plain else exp.cast(tree, "bigint"), "text")


def _need_divisor(value: Typed) -> None:
    number = value.tree.this if isinstance(value.tree, exp.Neg) else value.tree
    if not isinstance(number, exp.Literal) or float(number.this) == 0:
        raise refuse(
            "division is accepted only by a number other than zero",
            "unsafe-division",
            "divide by a number, or divide the aggregates: SUM(a) / SUM(b)",
        )


def _negative(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this")
    inner = _need(rebuild(node.this, scope), NUMBERS, "minus")
    return dataclasses.replace(inner, tree=exp.Neg(this=_closed(inner.tree)))


def _case(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this", "ifs", "default")
    subject = None if node.this is None else rebuild(node.this, scope)
    branches, parts, kinds = [], [] if subject is None else [subject], []
    tested: Typed | None = None
    for branch in node.args["ifs"]:
        require_arguments(branch, "this", "true")
        test = rebuild(branch.this, scope)
        if subject is None:
            _need(test, ("boolean", "null"), "WHEN")
        else:
            _, test = _comparable(subject, test, "WHEN")
            _, test = (tested, test) if tested is None else _comparable(tested, test, "WHEN")
            tested = tested if test.kind == "null" else test
        value = rebuild(branch.args["true"], scope)
        branches.append(exp.If(this=test.tree, true=value.tree))
        parts += [test, value]
        kinds.append(value.kind)
    default = None if node.args.get("default") is None else rebuild(node.args["default"], scope)
    if default is not None:
        parts.append(default)
        kinds.append(default.kind)
    tree = exp.Case(
        this=None if subject is None else subject.tree,
        ifs=branches,
        default=None if default is None else default.tree,
    )
    return _merge(tree, _common(kinds, "CASE"), *parts)


def _common(kinds: Sequence[str], where: str) -> str:
    known = {kind for kind in kinds if kind != "null"}
    if known <= {"integer", "number"} and known:
        return "integer" if known == {"integer"} else "number"
    if len(known) > 1:
        raise refuse(
            f"{where} mixes {' and '.join(sorted(known))}", "type-mismatch", "use one kind of value"
        )
    return known.pop() if known else "null"


def _coalesce(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this", "expressions")
    parts = [rebuild(part, scope) for part in (node.this, *node.expressions)]
    tree = exp.Coalesce(this=parts[0].tree, expressions=[part.tree for part in parts[1:]])
    return _merge(tree, _common([p.kind for p in parts], "COALESCE"), *parts)


def _function(
    takes: Sequence[str],
    gives: str | None,
    degree: int | None = None,
    size: tuple[float, float] | None = None,
) -> Callable[[exp.Expression, Scope], Typed]:
    """Return the rule for a function of one argument that cannot fail."""

    def rule(node: exp.Expression, scope: Scope) -> Typed:
        require_arguments(node, "this")
        inner = _need(rebuild(node.this, scope), takes, written(node))
        made = type(node)(this=inner.tree)
        return _merge(made, gives or inner.kind, inner, degree=degree, size=size)

    return rule


def _step(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this")
    inner = _need(rebuild(node.this, scope), NUMBERS, written(node))
    _need_shallow(inner)
    return _merge(type(node)(this=inner.tree), inner.kind, inner, size=(1.0, inner.most + 1))


def _trunc(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this")
    inner = _need(rebuild(node.this, scope), NUMBERS, "TRUNC")
    _need_shallow(inner)
    kind = "null" if inner.kind == "null" else "integer"
    return _merge(exp.Trunc(this=inner.tree), kind, inner, size=(1.0, inner.most + 1))


def _round(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this", "decimals", "casts_non_integer_decimals")
    inner = _need(rebuild(node.this, scope), NUMBERS, "ROUND")
    decimals = node.args.get("decimals")
    # Scaled by up to a thousand million before it is rounded, and back.
    size = 1e-9, 1e9 * (inner.most + 1)
    if decimals is None:
        return _merge(exp.Round(this=inner.tree), inner.kind, inner, size=(1.0, inner.most + 1))
    places = rebuild(decimals, scope)
    number = places.tree
    if not (
        isinstance(number, exp.Literal) and str(number.this).isdigit() and int(number.this) < 10
    ):
        raise refuse("ROUND needs 0 to 9 decimals", "unsupported-expression", "write ROUND(x, 2)")
    return _merge(exp.Round(this=inner.tree, decimals=number), inner.kind, inner, size=size)


def _substring(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this", "start", "length")
    inner = _need(rebuild(node.this, scope), TEXTS, "SUBSTRING")
    numbers = {}
    for name in ("start", "length"):
        given = node.args.get(name)
        if given is None:
            continue
        place = rebuild(given, scope).tree
        digits = str(place.this) if isinstance(place, exp.Literal) else ""
        if not (digits.isdecimal() and digits.isascii() and len(digits) <= 6):
            raise refuse(
                "SUBSTRING needs whole numbers below a million",
                "unsupported-expression",
                "write SUBSTRING(x, 1, 2)",
            )
        numbers[name] = int(digits)
    # PostgreSQL's meaning: the place before the first letter is counted, and is empty.
    if "length" in numbers:
        numbers["length"] = max(numbers["length"] - (numbers.get("start") == 0), 0)
    numbers["start"] = max(numbers.get("start", 1), 1)
    places = {name: exp.Literal.number(place) for name, place in numbers.items()}
    return _merge(exp.Substring(this=inner.tree, **places), "text", inner)


_PARTS = (
    "year", "quarter", "month", "week", "day", "hour", "minute", "dow", "isodow", "doy",
)  # fmt: skip


def _extract(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this", "expression")
    part = node.this.name.lower()
    if part == "epoch":
        inner = _need(rebuild(node.expression, scope), TIMES, "EXTRACT")
        return _merge(exp.Extract(this=exp.var("EPOCH"), expression=inner.tree), "number", inner)
    if part not in _PARTS:
        raise refuse(
            f"EXTRACT of {part.upper()} is not accepted",
            "unsupported-expression",
            "use one of " + ", ".join(_PARTS),
        )
    inner = _need(rebuild(node.expression, scope), TIMES, "EXTRACT")
    tree = exp.Extract(this=exp.var(part.upper()), expression=inner.tree)
    return _merge(tree, "integer", inner, size=(1.0, 1e4))


def _date_part(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this")
    inner = _need(rebuild(node.this, scope), TIMES, written(node))
    tree = exp.Extract(this=exp.var(node.key.upper()), expression=inner.tree)
    return _merge(tree, "integer", inner, size=(1.0, 1e4))


def _truncate(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this", "unit")
    unit = node.args["unit"].name.lower()
    if unit not in ("year", "quarter", "month", "week", "day", "hour", "minute"):
        raise refuse(
            f"DATE_TRUNC to {unit.upper()} is not accepted",
            "unsupported-expression",
            "use year, quarter, month, week, day, hour or minute",
        )
    inner = _need(rebuild(node.this, scope), TIMES, "DATE_TRUNC")
    tree = exp.TimestampTrunc(this=inner.tree, unit=exp.var(unit.upper()))
    return _merge(tree, "timestamp", inner)


#: Casts that cannot fail, whatever the value.
_CASTS = {
    "double": (NUMBERS, "number"),
    "float": (NUMBERS, "number"),
    "decimal": (NUMBERS, "number"),
    "date": (TIMES, "date"),
    "timestamp": (TIMES, "timestamp"),
}


def _cast(node: exp.Expression, scope: Scope) -> Typed:
    require_arguments(node, "this", "to")
    target = node.args["to"]
    require_arguments(target, "this", "expressions", "nested")
    name = target.this.value.lower()
    name = {"timestamptz": "timestamp", "smallint": "int"}.get(name, name)
    inner = rebuild(node.this, scope)
    if isinstance(inner.tree, exp.Literal) and inner.kind in NUMBERS and name in _CASTS:
        return dataclasses.replace(inner, kind="number")
    if isinstance(inner.tree, exp.Literal) and inner.kind == "text" and name in TIMES:
        return _dated(inner.tree, name)
    if name in ("text", "varchar") and inner.kind == "text":
        return inner
    if name in ("text", "varchar") and inner.kind == "integer":
        return _merge(_digits(inner.tree), "text", inner, degree=0)
    if name in ("text", "varchar") and inner.kind == "date":
        day = exp.cast(inner.tree, "date")  # between the years that all engines write alike
        return _merge(exp.cast(day, "text"), "text", inner, degree=0)
    if name in ("int", "bigint") and inner.kind == "integer":
        return inner
    if name in ("int", "bigint") and inner.kind == "number":
        # A whole number that stays a double: PostgreSQL rounds, and nothing can overflow.
        steps = (exp.Floor, exp.Ceil, exp.Round)
        if isinstance(inner.tree, steps):
            return inner
        return _merge(exp.Round(this=inner.tree), "number", inner, size=(1.0, inner.most + 1))
    if name in ("int", "bigint") and inner.kind == "boolean":
        ifs = [
            exp.If(this=exp.Boolean(this=truth), true=exp.Literal.number(int(truth)))
            for truth in (True, False)
        ]
        tree = exp.Case(this=_closed(inner.tree), ifs=ifs)
        return _merge(tree, "integer", inner, degree=0, size=(1.0, 1.0))
    if name not in _CASTS or inner.kind not in _CASTS[name][0]:
        raise refuse(
            f"a cast from {inner.kind} to {name} is not accepted: it can fail on some values",
            "unsafe-cast",
            "cast numbers to double or integer, dates to date or timestamp, whole numbers to text",
        )
    kind = _CASTS[name][1]
    to = "double" if kind == "number" else name
    return _merge(exp.cast(inner.tree, to), kind, inner)


_RULES: dict[type[Any], Callable[[Any, Scope], Typed]] = {
    exp.Literal: _leaf_number,
    exp.Boolean: _leaf_boolean,
    exp.Null: _leaf_null,
    exp.Column: _column,
    exp.Parameter: _parameter,
    exp.Placeholder: _parameter,
    exp.Paren: _paren,
    exp.And: _connector,
    exp.Or: _connector,
    exp.Not: _not,
    exp.EQ: _comparison,
    exp.NEQ: _comparison,
    exp.GT: _comparison,
    exp.GTE: _comparison,
    exp.LT: _comparison,
    exp.LTE: _comparison,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Is: _is,
    exp.Add: _arithmetic,
    exp.Sub: _arithmetic,
    exp.Mul: _arithmetic,
    exp.Div: _arithmetic,
    exp.Mod: _arithmetic,
    exp.DPipe: _joined,
    exp.Neg: _negative,
    exp.Case: _case,
    exp.Coalesce: _coalesce,
    exp.Abs: _function(NUMBERS, None),
    exp.Floor: _step,
    exp.Ceil: _step,
    exp.Lower: _function(TEXTS, "text"),
    exp.Upper: _function(TEXTS, "text"),
    exp.Length: _function(TEXTS, "integer", degree=0, size=(1.0, 1e10)),
    exp.Trim: _function(TEXTS, "text"),
    exp.Round: _round,
    exp.Trunc: _trunc,
    exp.Substring: _substring,
    exp.Extract: _extract,
    exp.Year: _date_part,
    exp.Month: _date_part,
    exp.Day: _date_part,
    exp.TimestampTrunc: _truncate,
    exp.Cast: _cast,
}
