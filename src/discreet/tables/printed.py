"""Published cells as they are printed: numbers, and marks in place of withheld values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.csv_fields import grouping
from discreet.data.csv_text import find_delimiter, find_encoding
from discreet.data.table import Floats
from discreet.errors import InputError

__all__ = ["printed_numbers", "read_printed"]

_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?|[+-]?inf(inity)?", re.IGNORECASE)
#: A comma that can only be a decimal mark: not followed by three digits.
_COMMA = re.compile(r"[+-]?\d+,(\d{1,2}|\d{4,})")
_WITH_COMMA = re.compile(r"[+-]?\d+(,\d+)?")


def read_printed(source: Any) -> Any:
    """Return published cells as a pandas frame; codes of a CSV file stay texts.

    Any: a path or a frame of any library.
    """
    import narwhals.stable.v1 as nw
    import pandas as pd

    if not isinstance(source, str | Path):
        return nw.from_native(source, eager_only=True).to_pandas()
    path = Path(source)
    if not path.exists():
        raise InputError(f"there is no file {path}", code="file-not-found", file=path)
    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        content = path.read_bytes()
        encoding = find_encoding([content], None, path, whole=True)
        delimiter = find_delimiter(content.decode(encoding), '"')[0]
        return pd.read_csv(path, dtype=str, keep_default_na=False, sep=delimiter, encoding=encoding)
    except (ValueError, OSError) as error:  # of pandas and pyarrow, undecodable bytes included
        raise InputError(
            f"{path.name} cannot be read as a table: {str(error).strip()}",
            code="unreadable-file",
            hint="give a CSV file with one header line, or a Parquet file",
            file=path,
        ) from error


def printed_numbers(column: Any) -> Floats:
    """Return printed values as numbers; not a number where a mark stands for a withheld value.

    A text with digits that is no number ("100,000", "<5", "40 e") is no mark: it tells something,
    and is read where it can mean one thing only, and refused elsewhere.

    >>> import pandas as pd
    >>> printed_numbers(pd.Series(["1.234,5", "c", "12,0"])).tolist()
    [1234.5, nan, 12.0]
    """
    import pandas as pd

    if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
        return _finite(np.asarray(pd.to_numeric(column, errors="coerce"), dtype=np.float64))
    texts = ["" if pd.isna(item) else str(item).strip() for item in column]
    # A mark in place of a value (–, c, .., x) has no digits.
    shown = [text for text in texts if any(letter.isdigit() for letter in text)]
    odd = next((text for text in shown if not _PLAIN.fullmatch(text)), None)
    if odd is not None:
        marks = grouping([shown], None) or _decimal_comma(shown)
        if marks is None:
            row = texts.index(odd) + 1
            raise InputError(
                f"the value {odd!r} in row {row} is neither a number nor a mark for a withheld one",
                code="not-a-number",
                hint="write numbers with a decimal point and no marks of thousands, leave withheld "
                "values empty, and give what is told of them in columns lower and upper",
            )
        thousands, decimal = marks
        texts = [text.replace(thousands, "").replace(decimal, ".") for text in texts]
    numbers = [float(text) if _PLAIN.fullmatch(text) else np.nan for text in texts]
    return _finite(np.array(numbers, dtype=np.float64))


def _decimal_comma(shown: list[str]) -> tuple[str, str] | None:
    """Return marks where commas are decimal marks for sure: "100,000" may be a hundred thousand."""
    is_decimal = all(map(_WITH_COMMA.fullmatch, shown)) and any(map(_COMMA.fullmatch, shown))
    return (" ", ",") if is_decimal else None


def _finite(numbers: Floats) -> Floats:
    endless = np.flatnonzero(np.isinf(numbers))
    if endless.size:
        raise InputError(
            f"{endless.size} values are infinite, the first in row {endless[0] + 1}",
            code="not-a-number",
            hint="leave the value of a withheld cell empty",
        )
    return numbers
