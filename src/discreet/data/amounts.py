"""Numbers with a mark of money or a per cent sign: $1,234.50, 12,5 %, CHF 300."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["AMOUNT", "PATTERN", "plain_amount", "plain_amounts"]

#: The type of such numbers, which are read without their mark.
AMOUNT = "amount"

_BLANK = "[ \u00a0\u202f]?"
_MARK = r"(US\$|[$€£¥₹%]|EUR|USD|GBP|CHF|SEK|NOK|DKK|PLN|CZK|HUF|RON|JPY|INR|CAD|AUD|kr|zł|Kč|Fr\.)"
_NUMBER = "\\d[\\d.,'’ \u00a0\u202f]*"
#: An amount, as Python and DuckDB match it: sign, mark, number, mark.
PATTERN = f"([+-]?){_MARK}?{_BLANK}([+-]?{_NUMBER}?){_BLANK}{_MARK}?"
_AMOUNT = re.compile(PATTERN)


def plain_amount(text: str) -> str:
    """Return the number of an amount; a text that is none as it is.

    >>> (
    ...     plain_amount("$1,234.50"),
    ...     plain_amount("-€ 5"),
    ...     plain_amount("12,5 %"),
    ...     plain_amount("$ and"),
    ... )
    ('1,234.50', '-5', '12,5', '$ and')
    """
    found = _AMOUNT.fullmatch(text)
    if found is None or not (found[2] or found[4]) or (found[1] and found[3][0] in "+-"):
        return text
    return found[1] + found[3].strip()


def plain_amounts(values: Sequence[str]) -> list[str] | None:
    """Return the numbers of amounts in one currency or in per cent; None if they are none.

    >>> plain_amounts(["$5.00", "12"]), plain_amounts(["$5", "€6"]), plain_amounts(["5", "6"])
    (['5.00', '12'], None, None)
    """
    marks = set()
    for value in values:
        found = _AMOUNT.fullmatch(value)
        if found is None or (found[2] and found[4]):
            return None
        marks.add(found[2] or found[4])
    if len(marks - {None}) != 1:
        return None
    return [plain_amount(value) for value in values]
