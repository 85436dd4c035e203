"""Microdata of tau-Argus and mu-Argus: fields at fixed places, named by a metadata file (`.rda`).

The metadata names one variable per line with the first position, the length and the codes that mean
"missing"; tags below it say what it is (``<NUMERIC>``, ``<DECIMALS> 1``, ``<WEIGHT>``). Where it
begins with ``<SEPARATOR>``, fields are separated and only names and missing codes are given.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data import csv_text
from discreet.data.files import read_lines, require_file, typed_column
from discreet.data.reading import Guess, Reading
from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["has_metadata", "read_fixed_width"]

_TAG = re.compile(r"<\s*(\w+)\s*>\s*(.*)")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")
#: Lines that are held as text at a time.
_PIECE = 100_000


@dataclasses.dataclass
class _Variable:
    name: str
    start: int
    length: int
    missing: tuple[str, ...]
    line: int
    tags: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def said(self) -> tuple[str, str] | None:
        """What the tags say that it is, and the tag that says so."""
        if self.tags.get("IDLEVEL") == "0":  # mu-Argus: not identifying
            return None
        for what, tags in _SAID:
            for tag in tags:
                if tag in self.tags:
                    return what, tag
        return None

    @property
    def decimals(self) -> int | None:
        """Digits behind the decimal point; None for codes."""
        if not self.tags.keys() & {"NUMERIC", "WEIGHT"}:
            return None
        said = self.tags.get("DECIMALS", "0")
        return int(said) if said.isdigit() else 0


#: Tags that say what a variable is: of households and holdings, of weights, of what others may know.
_SAID = (
    ("unit", ("HOUSE_ID", "HOUSEHOLD_ID", "HOLDING")),
    ("weight", ("WEIGHT",)),
    ("quasi", ("IDLEVEL", "RECODEABLE", "RECODABLE")),
)


def has_metadata(file: Path) -> bool:
    """Whether a file that may be of fixed width has its metadata beside it, under the same name.

    R calls its own, compressed, files `.rda` too.
    """
    rda = file.with_suffix(".rda")
    if file.suffix.lower() in (".csv", ".tsv") or not rda.is_file():
        return False
    with rda.open("rb") as stream:
        return not csv_text.is_binary(stream.read(4096))


def read_fixed_width(
    file: Path, metadata: str | Path | None = None, *, encoding: str | None = None
) -> tuple[pa.Table, Reading]:
    """Return the records of a file with fields at fixed places, or separated as its metadata says."""
    import pyarrow as pa

    rda = Path(metadata) if metadata is not None else file.with_suffix(".rda")
    if not rda.exists():
        raise InputError(
            "a file of fixed width needs a metadata file that names its fields",
            code="no-metadata",
            hint=f"say metadata='{rda.name}': lines such as AGE 3 2 99 <NUMERIC>",
            file=file,
        )
    separator, variables = _metadata(rda)
    parts, whole = csv_text.sample(require_file(file))
    csv_text.refuse_binary(parts[0], file)
    codec = csv_text.find_encoding(parts, encoding, file, whole=whole)
    lines = (text.rstrip("\r\n") for text in csv_text.lines_of(file, codec))
    numbered = ((n, text) for n, text in enumerate(lines, start=1) if text.strip())
    pieces = []
    while piece := list(itertools.islice(numbered, _PIECE)):
        fields = [_fields(text, line, separator, variables, file) for line, text in piece]
        columns = {
            variable.name: _column([row[place] for row in fields], variable, piece, file)
            for place, variable in enumerate(variables)
        }
        pieces.append(pa.table(columns))
    if not pieces:
        raise InputError("the file has only empty lines", code="empty-file", file=file)
    guesses = (
        Guess("fields", f"{len(variables)} of {rda.name}", "metadata"),
        Guess("encoding", codec, "encoding"),
    )
    return pa.concat_tables(pieces), Reading(
        "fixed-width",
        guesses,
        said={v.name: said for v in variables if (said := v.said) is not None},
        trees={v.name: tree for v in variables if (tree := _tree(v, rda)) is not None},
    )


def _tree(variable: _Variable, rda: Path) -> dict[str, Any] | None:
    """Return the hierarchy that the metadata declare, as settings. Any: texts and lists."""
    listed = variable.tags.get("HIERCODELIST")
    if listed and (rda.parent / listed).is_file():
        return {"file": str(rda.parent / listed), "total": variable.tags.get("TOTCODE") or "Total"}
    digits = [int(n) for n in variable.tags.get("HIERLEVELS", "").split() if n.isdigit()]
    ends = [sum(digits[: place + 1]) for place in range(len(digits)) if digits[place]]
    return {"prefixes": ends[-2::-1]} if len(ends) > 1 else None


def _metadata(rda: Path) -> tuple[str | None, list[_Variable]]:
    separator: str | None = None
    variables: list[_Variable] = []
    for line, text in read_lines(rda):
        found = _TAG.match(text.strip())
        if found is not None:
            tag, rest = found.group(1).upper(), found.group(2).strip().strip('"')
            if variables:
                variables[-1].tags[tag] = rest
            elif tag == "SEPARATOR":
                separator = rest or ","
            continue
        name, *rest_of = text.split()
        variables.append(_variable(name, rest_of, separator, line, rda))
    if not variables:
        raise InputError("the metadata names no variable", code="no-metadata", file=rda)
    return separator, variables


def _variable(name: str, said: list[str], separator: str | None, line: int, rda: Path) -> _Variable:
    """Return a variable from `NAME start length missing…`; separated ones have no start."""
    numbers = 2 if separator is None else 1
    places = said[:numbers]
    if len(places) < numbers or not all(one.isdigit() and int(one) > 0 for one in places):
        raise InputError(
            f"variable {name!r} has no position and length",
            code="no-metadata",
            hint="write the name, the first position (from 1), the length and the missing codes",
            file=rda,
            line=line,
        )
    start = int(places[0]) - 1 if separator is None else 0
    missing = tuple(code.strip('"') for code in said[numbers:])
    return _Variable(name, start, int(places[-1]), missing, line)


def _fields(
    text: str, line: int, separator: str | None, variables: list[_Variable], file: Path
) -> list[str]:
    if separator is not None:
        found = [field.strip().strip('"') for field in text.split(separator)]
        if len(found) == len(variables):
            return found
        problem = f"the line has {len(found)} fields where the metadata names {len(variables)}"
    else:
        end = max(variable.start + variable.length for variable in variables)
        # Editors cut blanks at the end of a line, so only the last field may be short.
        last = max(variable.start for variable in variables)
        if last < len(text) <= end or (not text[end:].strip() and len(text) > last):
            return [text[v.start : v.start + v.length].strip() for v in variables]
        problem = f"the line has {len(text)} characters where the metadata needs {end}"
    raise InputError(
        problem,
        code="ragged-row",
        hint="check positions and lengths, or <SEPARATOR>, in the metadata",
        file=file,
        line=line,
    )


def _column(
    values: list[str], variable: _Variable, piece: list[tuple[int, str]], file: Path
) -> pa.Array:
    known: list[Any] = [None if v == "" or v in variable.missing else v for v in values]
    decimals = variable.decimals
    if decimals is None:
        return typed_column(known, "text")
    for (line, _), value in zip(piece, known, strict=True):
        if value is not None and not _NUMBER.fullmatch(value):
            raise InputError(
                f"variable {variable.name!r} is not a number here",
                code="not-a-number",
                hint="correct the line, or leave <NUMERIC> out of the metadata",
                file=file,
                line=line,
                column=variable.name,
            )
    return typed_column(
        known,
        "number"
        if decimals or any(value is not None and "." in value for value in known)
        else "integer",
    )
