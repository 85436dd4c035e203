"""Rows that leave an engine for Python: counted, and bounded before they are fetched.

Aggregates are few by nature. Records, and combinations of values, may be as many as the table has
rows; what would not fit is refused with its size before anything is fetched.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from discreet.errors import EngineError, InputError
from discreet.report import Report, Rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "DRIVER_LIMIT",
    "Fetched",
    "Outflow",
    "byte_size",
    "fetching",
    "metering",
    "note_fetched",
    "too_large",
    "width",
]

#: Bytes that one question may bring into Python, unless said otherwise.
DRIVER_LIMIT = 4 * 2**30
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def byte_size(given: int | str) -> int:
    """Return a number of bytes from a number or a text.

    >>> byte_size("2GB"), byte_size("512 MiB"), byte_size(1000)
    (2000000000, 536870912, 1000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?B?)\s*", str(given).upper())
    size = 0 if found is None or isinstance(given, bool) else float(found.group(1))
    if found is None or found.group(2) not in _UNITS or not size:
        raise InputError(
            f"{given!r} is not a number of bytes",
            code="parameter-range",
            hint="write driver_limit='2GB' or a number of bytes above 0",
            parameter="driver_limit",
        )
    return int(size * _UNITS[found.group(2)])


def in_words(size: float) -> str:
    """Return a number of bytes for people.

    >>> in_words(999), in_words(2_345_000_000)
    ('999 bytes', '2.3 GB')
    """
    for unit, word in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {word}"
    return f"{size:,.0f} bytes"


# -- how many ----------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Fetched:
    """Rows of one kind that leave the engine: records, frequency sets, profiles or aggregates."""

    kind: str
    rows: int
    bytes: int
    #: Whether there may be fewer.
    at_most: bool = False


@dataclasses.dataclass(frozen=True)
class Outflow(Report):
    """What leaves the engine for Python, by kind.

    Examples
    --------
    >>> print(Outflow((Fetched("records", 1_000_000, 24_000_000),)))
    rows that leave  rows       about
    records          1,000,000  24.0 MB
    """

    parts: tuple[Fetched, ...] = ()

    @property
    def total(self) -> int:
        """Rows of all kinds."""
        return sum(part.rows for part in self.parts)

    def rows(self) -> Rows:
        """Return one line per kind."""
        body = [
            (
                part.kind,
                ("at most " if part.at_most else "") + f"{part.rows:,}",
                in_words(part.bytes),
            )
            for part in self.parts
        ]
        return ("rows that leave", "rows", "about"), body

    def sentence(self) -> str:
        """Return it in one sentence.

        >>> Outflow((Fetched("aggregates", 12, 480),)).sentence()
        'rows fetched from the engine: 12 aggregates (480 bytes)'
        """
        said = [f"{part.rows:,} {part.kind} ({in_words(part.bytes)})" for part in self.parts]
        return "rows fetched from the engine: " + (", ".join(said) or "none")


class _Here(threading.local):
    kind: str | None = None
    meters: tuple[dict[str, list[int]], ...] = ()


_here = _Here()


@contextlib.contextmanager
def fetching(kind: str) -> Iterator[None]:
    """Say of what kind the rows are that this thread fetches inside."""
    before, _here.kind = _here.kind, _here.kind or kind
    try:
        yield
    finally:
        _here.kind = before


class Meter:
    """What was fetched while it ran."""

    def __init__(self) -> None:
        self.counted: dict[str, list[int]] = {}

    def outflow(self) -> Outflow:
        """Return it as a report."""
        return Outflow(
            tuple(Fetched(kind, rows, size) for kind, (rows, size) in sorted(self.counted.items()))
        )


@contextlib.contextmanager
def metering() -> Iterator[Meter]:
    """Count the rows that this thread fetches from engines inside.

    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> people = read(pd.DataFrame({"age": [20, 40, 40]}))
    >>> with metering() as meter:
    ...     _ = people.frequencies(["age"])
    >>> [(part.kind, part.rows) for part in meter.outflow().parts]
    [('frequency sets', 2)]
    """
    meter = Meter()
    before, _here.meters = _here.meters, (*_here.meters, meter.counted)
    try:
        yield meter
    finally:
        _here.meters = before


def note_fetched(rows: pa.Table | pa.RecordBatch, kind: str) -> None:
    """Count rows that have come."""
    for counted in _here.meters:
        found = counted.setdefault(_here.kind or kind, [0, 0])
        found[0] += rows.num_rows
        found[1] += rows.nbytes


def too_large(kind: str, rows: int, size: int, limit: int) -> EngineError:
    """Return the error of rows that are too many for Python."""
    return EngineError(
        f"{rows:,} {kind} of about {in_words(size)} would leave the engine, and at most "
        f"{in_words(limit)} may",
        code="too-large-for-driver",
        hint="read fewer columns (columns=[…]), take a sample, or raise driver_limit, if this "
        "machine has the memory",
        rows=rows,
        bytes=size,
        limit=limit,
    )


def width(kind: pa.DataType) -> float:
    """Return the bytes of a value of a fixed size, and of the place of a text.

    >>> import pyarrow as pa
    >>> width(pa.int64()), width(pa.bool_()), width(pa.string())
    (8.0, 0.125, 5.0)
    """
    try:
        return float(kind.bit_width) / 8
    except ValueError:
        return 5.0
