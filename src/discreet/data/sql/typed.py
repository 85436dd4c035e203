"""A rebuilt value: its expression, its kind, the columns it reads and how large it can get."""

from __future__ import annotations

import dataclasses
import datetime
import math
import unicodedata
from typing import Any

from sqlglot import exp

from discreet.data.sql.letters import is_unicode
from discreet.data.sql.naming import clause, written
from discreet.data.sql.total import LARGEST_VALUE, SMALLEST_VALUE
from discreet.errors import RefusedError

__all__ = [
    "DEGREE",
    "Typed",
    "closed",
    "literal",
    "merge",
    "number_literal",
    "refuse",
    "require_arguments",
]

#: Literals beyond this size, or nearer to zero than one over it, are refused.
LARGEST = 1e15


#: So many columns may be multiplied with each other.
DEGREE = 3


#: Results beyond this size, or nearer to zero than one over it, could leave the range of doubles.
WIDEST = 1e200


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


def literal(value: Any) -> Typed:
    """Return a Python value as a literal, or refuse it.

    Any: clients send what they have; only plain values are understood.
    """
    if value is None:
        return Typed(exp.Null(), "null")
    if isinstance(value, bool):
        return Typed(exp.Boolean(this=value), "boolean")
    if isinstance(value, int):
        if abs(value) > LARGEST:  # thousands of digits have no text either
            raise _too_large()
        return number_literal(str(value), value, "integer")
    if isinstance(value, datetime.datetime):
        text = value.isoformat(sep=" ")
        return Typed(exp.cast(exp.Literal.string(text), "timestamp"), "timestamp")
    if isinstance(value, datetime.date):
        return Typed(exp.cast(exp.Literal.string(value.isoformat()), "date"), "date")
    if isinstance(value, str):
        if "\x00" in value:
            raise refuse("text may not hold a zero byte", "malformed-literal", "leave it out")
        if not is_unicode(value):
            raise refuse("text may not hold half a character", "malformed-literal", "leave it out")
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
    return number_literal(str(value), size, "number")


def number_literal(text: str, size: float, kind: str) -> Typed:
    """Return a number as a literal, or refuse one that is too large or too close to zero."""
    if not math.isfinite(size) or abs(size) > LARGEST:
        raise _too_large()
    if 0 < abs(size) < 1 / LARGEST:
        raise refuse("a number is too close to zero", "large-number", "stay above 1e-15")
    tree: exp.Expression = exp.Literal.number(text.lstrip("-"))
    tree = exp.Neg(this=tree) if size < 0 else tree
    return Typed(tree, kind, most=abs(size), least=abs(size) or 1.0)


def _too_large() -> RefusedError:
    return refuse("a number is too large", "large-number", "stay below 1e15")


def merge(
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


def closed(tree: exp.Expression) -> exp.Expression:
    """Return a tree that can stand beside any operator."""
    loose = (exp.Connector, exp.Binary, exp.Between, exp.In, exp.Not)
    return exp.Paren(this=tree) if isinstance(tree, loose) else tree
