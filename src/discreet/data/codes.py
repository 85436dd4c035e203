"""Values of an attribute as the codes that tables and hierarchies call them by."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["code_text", "in_order"]

_FIRST = re.compile(r"^\s*[<>≤≥\[(]*\s*(-?\d+(?:[.,]\d+)?)")


def code_text(value: Any) -> str:
    """Return a value of an attribute as the code that tables and hierarchies call it by.

    Whole numbers have no decimal point, whatever type held them, and dates are ISO. Any: what an
    Arrow scalar holds.

    >>> code_text(3.0), code_text("03"), code_text(True)
    ('3', '03', 'True')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float | decimal.Decimal) and value % 1 == 0:
        return str(int(value))
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value)


def in_order(codes: Sequence[str], order: Sequence[str] = ()) -> list[str]:
    """Return classes by their first number, open lower ends first; other texts by the alphabet.

    An order that is known stands; codes that it does not have come last.

    >>> in_order(["250+", "<10", "50-249", "10-49"])
    ['<10', '10-49', '50-249', '250+']
    >>> in_order(["high", "low", "mid"], ["low", "mid", "high"])
    ['low', 'mid', 'high']
    """
    known = {code: place for place, code in enumerate(order)}

    def place(code: str) -> tuple[int, float, int, str]:
        at = known.get(code, len(known))
        found = _FIRST.match(code)
        number = float(found.group(1).replace(",", ".")) if found else math.inf
        return at, number, 0 if code.lstrip().startswith(("<", "≤")) else 1, code

    return sorted(codes, key=place)
