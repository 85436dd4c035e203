"""Values of an attribute as the codes that tables and hierarchies call them by."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

__all__ = ["code_text"]


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
