"""A hierarchy to start from, suggested from the name, the type and the values of a column."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.data.codes import code_text, in_order
from discreet.data.hierarchy_builders import DATE_LEVELS, date_levels
from discreet.data.names import meaning
from discreet.errors import InputError

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset

__all__ = ["are_icd10", "like_icd10", "suggest", "suggest_hierarchy"]

_ICD10 = re.compile(r"[A-Z]\d\d(\.?[\dA-Z]{0,4})?")
_NACE = re.compile(r"\d{2}\.\d{1,2}")
_NACE_NAMED = re.compile(r"\d{2}(\.?\d{1,2})?")
_NUTS = re.compile(r"[A-Z]{2}[0-9A-Z]{1,3}")
_CLASS = re.compile(
    r"\s*([<>≤≥]=?\s*-?\d+|[\[(]?-?\d+([.,]\d+)?\s*([-–…,]|to)\s*-?\d+.*|-?\d+\s*\+)\s*"
)
#: Fewer different values than this are merged by rarity, not cut into intervals.
_FEW = 12
#: Intervals on the finest level, at most.
_INTERVALS = 20
#: Values rarer than this share a name.
_RARE = 5


def suggest_hierarchy(dataset: Dataset, column: str) -> dict[str, Any]:
    """Return the settings of a `HierarchySource` for a column. Any: numbers, texts and lists."""
    dataset.relation.require(column)
    if dataset.reading is not None and column in dataset.reading.trees:
        return dict(dataset.reading.trees[column])
    found = dataset.frequencies([column])
    values = found.column(0).to_pylist()
    return suggest(column, dict(zip(values, found.column(1).to_pylist(), strict=True)))


def suggest(name: str, counts: Mapping[Any, int]) -> dict[str, Any]:
    """Return settings that fit values and how often each occurs.

    Any: values of the column's own type.

    >>> suggest("age", {age: 1 for age in range(18, 98)})
    {'widths': [5, 10, 20]}
    >>> suggest("diagnosis", {"I25.1": 3, "J18": 2, "C50.9": 1})
    {'standard': 'icd-10'}
    >>> suggest("size", {"250+": 1, "0-9": 5, "50-249": 2, "10-49": 3})
    {'order': ['0-9', '10-49', '50-249', '250+']}
    >>> suggest("postcode", {"01067": 3, "80331": 2})
    {'prefixes': [4, 3, 2, 1]}
    >>> suggest("NACE", {"4711": 3, "10": 2})
    {'standard': 'nace'}
    """
    known = [value for value in counts if value is not None]
    if not known:
        return {"levels": {}}
    if all(isinstance(value, datetime.date) for value in known):
        return {"dates": list(DATE_LEVELS)}
    numbers = [
        float(v) if isinstance(v, decimal.Decimal) else v
        for v in known
        if isinstance(v, int | float | decimal.Decimal) and not isinstance(v, bool)
    ]
    if len(numbers) == len(known) and len(known) > _FEW:
        return {"widths": _widths(min(numbers), max(numbers))}
    return _of_codes(name, [code_text(value) for value in known])


def _widths(low: float, high: float) -> list[float]:
    """Return three widths of intervals, each twice the one before."""
    least = max(high - low, 1e-9) / _INTERVALS
    power = 10.0 ** math.floor(math.log10(least))
    width = next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))
    plain: float = int(width) if width >= 1 else width
    return [plain, 2 * plain, 4 * plain] if plain != 1 else [2, 4, 8]


def _of_codes(name: str, codes: Sequence[str]) -> dict[str, Any]:
    if all(_CLASS.fullmatch(code) for code in codes) and len(codes) > 2:
        return {"order": in_order(codes)}
    if are_icd10(codes):
        return {"standard": "icd-10"}
    pattern = _NACE_NAMED if meaning(name, "activity") else _NACE
    if all(pattern.fullmatch(code) for code in codes):
        return {"standard": "nace"}
    if "nuts" in name.lower() and all(_NUTS.fullmatch(code) for code in codes):
        return {"standard": "nuts"}
    if _are_dates(codes):
        return {"dates": list(DATE_LEVELS)}
    lengths = {len(code) for code in codes}
    is_many = len(codes) > _FEW or meaning(name, "postcode")
    if len(lengths) == 1 and is_many and all(code.isalnum() for code in codes):
        (length,) = lengths
        if 2 <= length <= 12 and any(any(c.isdigit() for c in code) for code in codes):
            return {"prefixes": list(range(length - 1, 0, -1))[-4:]}
    if "Total" in codes:  # the name of the root
        return {"rare": _RARE, "total": "All values"}
    return {"rare": _RARE}


def are_icd10(codes: Sequence[str]) -> bool:
    """Whether all are codes of illnesses, of several lengths as ICD-10 has them.

    >>> are_icd10(["B24", "I25.1"]), are_icd10(["W12", "E14"])
    (True, False)
    """
    return all(_ICD10.fullmatch(code) for code in codes) and len(set(map(len, codes))) > 1


#: With the marks that are written behind a code: dagger, asterisk, exclamation mark.
_WRITTEN_ICD10 = re.compile(r"[A-Z]\d\d(\.?[\dA-Z]{0,4})?[-+*!†]?", re.IGNORECASE)
#: Codes with a point, which hardly anything else has.
_POINTED_ICD10 = re.compile(r"[A-Z]\d\d\.[\d-].*", re.IGNORECASE)
#: A few other texts, such as "unknown", do not make codes of illnesses something else.
_MOST = 0.8


def like_icd10(texts: Sequence[str]) -> bool | None:
    """Whether texts are codes of illnesses: None where they may be codes of something else as well.

    Codes of several lengths, or with a point, are sure; E14 and W12 may also be places.

    >>> like_icd10(["I25.1", "J18.9", "unknown", "B24.0", "C50.9"]), like_icd10(["a", "b"])
    (True, False)
    >>> like_icd10(["W12", "E14"])
    """
    codes = [text.strip() for text in texts if _WRITTEN_ICD10.fullmatch(text.strip())]
    if not codes or len(codes) < _MOST * len(texts):
        return False
    pointed = sum(1 for code in codes if _POINTED_ICD10.fullmatch(code))
    is_sure = pointed > len(codes) / 2 or len({len(code.rstrip("-+*!†")) for code in codes}) > 1
    return True if is_sure else None


def _are_dates(codes: Sequence[str]) -> bool:
    try:
        date_levels(codes, DATE_LEVELS, "Total")
    except InputError:
        return False
    return any("-" in code for code in codes)
