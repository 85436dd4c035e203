"""Texts that spreadsheet programs take for formulas: they begin with =, +, - or @.

Whoever wrote such a text into the records may have it run by the people who open the released
file. Data are not changed for it; the curator is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.base import ROW, Relation

__all__ = ["formula_caution", "formula_columns", "is_formula"]

_NUMBER = re.compile(r"[+-]?\s*[\d.,'’ \u00a0]+%?")
#: Different texts looked at of a column, those that begin with a sign.
_LOOKED = 2_000


def is_formula(text: str) -> bool:
    """Whether a spreadsheet program may run a text; signed numbers are only numbers.

    >>> is_formula("=1+1"), is_formula("-5,3"), is_formula("+49 170"), is_formula("a=b")
    (True, False, False, False)
    """
    return text[:1] in ("=", "+", "-", "@", "\t", "\r") and _NUMBER.fullmatch(text) is None


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
