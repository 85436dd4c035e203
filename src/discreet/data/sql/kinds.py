"""Kinds of values: which of them an operator takes, and which can be compared."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

from sqlglot import exp

from discreet.data.sql.typed import Typed, literal, refuse

__all__ = ["NUMBERS", "TEXTS", "TIMES", "common", "comparable", "dated", "need"]

NUMBERS = ("integer", "number", "null")


TEXTS = ("text", "null")


TIMES = ("date", "timestamp", "null")


def need(value: Typed, kinds: Sequence[str], where: str) -> Typed:
    """Return a value of one of the kinds, or refuse it."""
    if value.kind not in kinds:
        wanted = " or ".join(k for k in kinds if k != "null")
        hint = f"give {where} {wanted}"
        if where in ("+", "-") and value.kind in TIMES:
            hint = "shift a time by a fixed span: + INTERVAL '1 day'"
        raise refuse(f"{where} needs {wanted}, found {value.kind}", "type-mismatch", hint)
    return value


def comparable(left: Typed, right: Typed, where: str) -> tuple[Typed, Typed]:
    """Return both sides as one kind, reading text as a date where it is compared with one."""
    for one, other in ((left, right), (right, left)):
        if one.kind in ("date", "timestamp") and other.kind == "text":
            if not isinstance(other.tree, exp.Literal):
                break
            read = dated(other.tree, one.kind)
            return (left, read) if other is right else (read, right)
        if one.kind in ("integer", "number", "boolean") and isinstance(other.tree, exp.Literal):
            bare = _unquoted(other.tree, one.kind) if other.kind == "text" else None
            if bare is not None:
                return (left, bare) if other is right else (bare, right)
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


def dated(tree: exp.Literal, kind: str) -> Typed:
    """Return the date or timestamp that a quoted literal means."""
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


def common(kinds: Sequence[str], where: str) -> str:
    """Return the kind of all branches together."""
    known = {kind for kind in kinds if kind != "null"}
    if known <= {"integer", "number"} and known:
        return "integer" if known == {"integer"} else "number"
    if len(known) > 1:
        raise refuse(
            f"{where} mixes {' and '.join(sorted(known))}", "type-mismatch", "use one kind of value"
        )
    return known.pop() if known else "null"
