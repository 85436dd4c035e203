"""Ids of people that differ in nothing one sees: "P1" and "P1 " would count as two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.errors import InputError

if TYPE_CHECKING:
    from discreet.data.engines.base import Relation

__all__ = ["require_one_spelling"]

#: Spaces and characters of no width, which end up in ids by copying.
_UNSEEN = " \t\r\n\u00a0\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"


def require_one_spelling(rows: Relation, unit: str) -> None:
    """Refuse ids of people that are the same but for spaces or characters of no width.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> read(pd.DataFrame({"who": ["P1", "P1 "]}), unit="who")
    Traceback (most recent call last):
    discreet.errors.InputError: column 'who' says whose a record is, and 1 of its 2 ids ...
    """
    import pyarrow as pa

    from discreet.data.engines import sql

    kind = rows.schema.field(unit).type
    if pa.types.is_nested(kind):
        raise InputError(
            f"column {unit!r} holds nested values, which say of nobody whose a record is",
            code="unsupported-type",
            hint="take it apart into columns",
            column=unit,
        )
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return
    own = sql.column(unit)
    plain = sql.call("translate", own.copy(), *map(exp.Literal.string, (_UNSEEN, "")))
    source = sql.subquery(rows.query, "t")
    changed = exp.Count(this=exp.Star())
    odd = sql.select(source, [sql.alias(changed, "n")]).where(exp.NEQ(this=own, expression=plain))
    if not rows.engine.fetch(odd).column(0)[0].as_py():
        return
    wanted = {
        name: exp.Count(this=exp.Distinct(expressions=[value.copy()]))
        for name, value in {"own": own, "plain": plain}.items()
    }
    counts = sql.select(source.copy(), [sql.alias(value, n) for n, value in wanted.items()])
    found = rows.engine.fetch(counts).to_pylist()[0]
    more = int(found["own"]) - int(found["plain"])
    if more:
        raise InputError(
            f"column {unit!r} says whose a record is, and {more:,} of its {found['own']:,} ids "
            "differ from another in spaces or characters of no width alone: people would count twice",
            code="ambiguous-units",
            hint="write each person's id in one way",
            column=unit,
        )
