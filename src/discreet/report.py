"""What every result is: a frozen dataclass that can show itself.

A report is data first. `to_dict` gives plain data for JSON, `to_frame` a data frame, `str` a text
table for terminals and logs, `_repr_html_` the same for notebooks. A subclass declares its fields
and, where one line per thing reads better than one line per field, overrides `rows`.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import html
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

__all__ = ["Report", "Rows", "html_table", "plain", "text_table"]

#: Column names, and the rows under them.
Rows = tuple[Sequence[str], Sequence[Sequence[Any]]]


@dataclasses.dataclass(frozen=True)
class Report:
    """Base of every result.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class Count(Report):
    ...     '''Records counted.'''
    ...
    ...     name: str
    ...     records: int
    >>> print(Count("people", 12500))
    name     people
    records  12,500
    >>> Count("people", 12500).to_dict()
    {'name': 'people', 'records': 12500}
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data: what JSON can hold and nothing else."""
        return {field.name: plain(getattr(self, field.name)) for field in _shown(self)}

    def rows(self) -> Rows:
        """Return the report as a table; by default one line per field."""
        return ("", ""), [(field.name, getattr(self, field.name)) for field in _shown(self)]

    def to_frame(self) -> pandas.DataFrame:
        """Return `rows` as a data frame."""
        import pandas  # not on the command line's start path

        header, body = self.rows()
        names = [name or f"column_{place}" for place, name in enumerate(header)]
        return pandas.DataFrame([[plain(cell) for cell in row] for row in body], columns=names)

    def __str__(self) -> str:
        return text_table(*self.rows())

    def _repr_html_(self) -> str:
        header, body = self.rows()
        title = (type(self).__doc__ or type(self).__name__).strip().splitlines()[0]
        return html_table(title, header, body)


def html_table(title: str, header: Sequence[str], body: Sequence[Sequence[Any]]) -> str:
    """Return a table for notebooks. Any: cells are values of any type.

    >>> html_table("Sizes", ["n"], [[3]])
    '<table><caption>Sizes</caption><thead><tr><th>n</th></tr></thead><tbody><tr><td>3</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header) if any(header) else ""
    lines = (
        "<tr>" + "".join(f"<td>{html.escape(shown(cell))}</td>" for cell in row) + "</tr>"
        for row in body
    )
    return (
        f"<table><caption>{html.escape(title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _shown(report: Report) -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(report) if f.repr and not f.name.startswith("_")]


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; infinities and not-a-number become null.

    >>> plain({"path": Path("a"), "share": float("nan"), "codes": ("x", "y")})
    {'path': 'a', 'share': None, 'codes': ['x', 'y']}
    """
    if value is None or isinstance(value, str | bool | int):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Report):
        return value.to_dict()
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.repr}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, datetime.date | datetime.datetime | datetime.time):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "to_pylist"):  # Arrow
        return [plain(item) for item in value.to_pylist()]
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # pandas and polars frames
        return _records(value)
    if hasattr(value, "tolist"):  # numpy
        return plain(value.tolist())
    return str(value)


def _records(frame: Any) -> list[dict[str, Any]]:
    # Any: the frame may be of any library; both spell this differently.
    rows = frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict(orient="records")
    return [plain(row) for row in rows]


def shown(value: Any) -> str:
    """Return a value as a person reads it in a table.

    >>> shown(1234567), shown(0.12345678), shown(None), shown(True)
    ('1,234,567', '0.1235', '–', 'yes')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(shown(item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {shown(item)}" for key, item in value.items())
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return shown(value.item())
    return str(value)


def _number(value: float) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.2f}"


def text_table(header: Sequence[str], body: Sequence[Sequence[Any]]) -> str:
    """Return a table as aligned text, numbers to the right.

    >>> print(text_table(["sector", "salary"], [["IT", 949000], ["Fin", None]]))
    sector   salary
    IT      949,000
    Fin           –
    """
    header = [_visible(name) for name in header]
    cells = [[_visible(shown(cell)) for cell in row] for row in body]
    columns = range(len(header))
    numeric = [_is_numeric([row[c] for row in body]) for c in columns]
    width = [max([len(header[c]), *(len(row[c]) for row in cells)]) for c in columns]
    lines = [header, *cells] if any(header) else cells
    return "\n".join(
        "  ".join(
            line[c].rjust(width[c]) if numeric[c] else line[c].ljust(width[c]) for c in columns
        ).rstrip()
        for line in lines
    )


# Control characters and marks that change the direction of writing: a column's name or a code could
# otherwise move the cursor of a terminal or hide a line.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def _visible(text: str) -> str:
    return _CONTROLS.sub(lambda found: ascii(found.group())[1:-1], text)


def _is_numeric(column: Sequence[Any]) -> bool:
    known = [cell for cell in column if cell is not None]
    return bool(known) and all(
        (isinstance(cell, int | float) and not isinstance(cell, bool)) or _is_numpy_number(cell)
        for cell in known
    )


def _is_numpy_number(cell: Any) -> bool:
    return getattr(getattr(cell, "dtype", None), "kind", "?") in "iuf" and cell.ndim == 0
