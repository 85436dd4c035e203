"""Texts that spreadsheet programs take for formulas: they begin with =, +, - or @.

Whoever wrote such a text into the records may have it run by the people who open the released
file. Data are not changed for it: a release says so in its evidence, and the curator is told.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.base import ROW, Relation

__all__ = [
    "formula_caution",
    "formula_columns",
    "is_formula",
    "released_formulas",
    "stated_cautions",
]

_NUMBER = re.compile(r"[+-]?\s*[\d.,'’ \u00a0]+%?")
#: A field that begins with a sign and is no number, as it stands in the bytes of a CSV file.
_FIELD = re.compile(rb"""(?m)(?:^|[,;\t])"?(?:[=@\t\r]|[+-](?![\d., ]*%?"?(?:[,;\t\r\n]|\Z)))""")
#: Bytes looked at together; what lies across two pieces is seen because they overlap.
_PIECE, _OVERLAP = 1 << 22, 1 << 10
#: Different texts looked at of a column, those that begin with a sign.
_LOOKED = 2_000


def is_formula(text: str) -> bool:
    """Whether a spreadsheet program may run a text; signed numbers are only numbers.

    >>> is_formula("=1+1"), is_formula("-5,3"), is_formula("+49 170"), is_formula("a=b")
    (True, False, False, False)
    >>> is_formula("-"), is_formula("--"), is_formula("-cmd")  # a result of a test is none
    (False, False, True)
    """
    return (
        text.strip("+-") != ""
        and text[:1] in ("=", "+", "-", "@", "\t", "\r")
        and _NUMBER.fullmatch(text) is None
    )


def formula_columns(relation: Relation) -> list[str]:
    """Return the columns of texts among which are some that begin like formulas."""
    import pyarrow as pa

    texts = (pa.types.is_string, pa.types.is_large_string)
    names = [
        field.name
        for field in relation.schema
        if field.name != ROW and any(is_kind(field.type) for is_kind in texts)
    ]
    return [name for name in names if any(map(is_formula, _suspects(relation, name)))]


def _suspects(relation: Relation, name: str) -> Iterable[str]:
    """Give different texts of a column that begin with a sign of a formula."""
    first = exp.Substring(
        this=sql.column(name), start=exp.Literal.number(1), length=exp.Literal.number(1)
    )
    signs = [exp.Literal.string(sign) for sign in ("=", "+", "-", "@", "\t", "\r")]
    query = (
        sql.select(sql.subquery(relation.query, "t"), [sql.column(name)])
        .where(exp.In(this=first, expressions=signs))
        .distinct()
        .limit(_LOOKED)
    )
    return [str(text) for text in relation.engine.fetch(query).column(0).to_pylist()]


def formula_caution(columns: Sequence[str]) -> str:
    """Return what the curator is told of such columns.

    >>> formula_caution(["note"])[:40]
    'note: some texts begin with =, +, - or @'
    """
    return (
        f"{', '.join(columns)}: some texts begin with =, +, - or @; a spreadsheet program that opens "
        "the CSV file may run them as formulas: import it as text, or correct the records first"
    )


def released_formulas(folder: Path) -> list[str]:
    """Return a caution for each written CSV file with texts that begin like formulas.

    The bytes are searched first, so that a file without any is not taken apart.
    """
    found = []
    for file in sorted(folder.rglob("*.csv")):
        if not _has_signs(file):
            continue
        columns: dict[str, None] = {}
        with file.open(encoding="utf-8", newline="") as lines:
            rows = csv.reader(lines)
            names = next(rows, [])
            columns.update((name, None) for name in names if is_formula(name))
            for row in rows:
                columns.update(
                    (name, None) for name, text in zip(names, row, strict=False) if is_formula(text)
                )
        if columns:
            found.append(f"{file.relative_to(folder).as_posix()}, {formula_caution(list(columns))}")
    return found


def _has_signs(file: Path) -> bool:
    with file.open("rb") as source:
        last = b"\n"
        while piece := source.read(_PIECE):
            if _FIELD.search(last + piece):
                return True
            last = piece[-_OVERLAP:]
    return False


def stated_cautions(folder: Path) -> list[str]:
    """Return the cautions in the evidence of the releases that a folder holds."""
    found: list[str] = []
    for file in sorted(folder.rglob("evidence.json")):
        found += json.loads(file.read_text(encoding="utf-8")).get("cautions", ())
    return found
