"""Snapshots: a named state of a dataset, known by a keyed fingerprint of its rows.

The fingerprint is computed where the rows live and does not depend on their order. Each row is
written as a text, each text is hashed with SHA-256 behind a secret key, and the hashes are added up
as whole numbers (Clarke, Devadas, van Dijk, Gassend and Suh, 2003, Incremental multiset hash
functions). Without the key nobody can compare a guess at the rows with it.

The text of a row holds, for each column in the order of the names, the number of characters of the
value, a colon and the value; a missing value is a minus sign alone. Whole numbers, truths, texts,
dates, times and timestamps are written as SQL casts them to text. Doubles that are whole numbers below
2^53 are written as such, others as a tilde and the whole number that their 64 bits are; decimals with
all declared places; timestamps with a time zone as microseconds since 1970. So the fingerprint is the
same in DuckDB, PostgreSQL and Spark.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.base import ROW, Engine, Relation

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

__all__ = ["Snapshot", "fingerprint_rows", "fingerprint_values", "row_marks", "written_key"]

#: Hexadecimal digits in each of the two numbers that are taken from a row's hash and added up.
_DIGITS = 15
#: Columns with fewer values do not tell records apart from others.
_FEWEST_VALUES = 10
#: Whole numbers below this are exact in doubles.
_EXACT = 2**53


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A named state of a dataset, as a ledger remembers it."""

    dataset: str
    name: str
    #: The columns that the fingerprint is of, in order.
    columns: tuple[str, ...]
    fingerprint: str
    #: The same for all column sets of one snapshot.
    identity: str
    #: Keyed digest of the file or table that the rows were read from; empty for frames.
    origin: str = ""
    #: Whether the source carries a mark that names the ledger.
    marked: bool = False
    #: Keyed fingerprints of the values of each confidential column, whatever it is called.
    values: tuple[str, ...] = ()


def fingerprint_rows(
    relation: Relation, columns: Sequence[str] | None = None, *, key: bytes
) -> tuple[int, str]:
    """Return the number of rows and the keyed fingerprint of some of their columns.

    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> one = read(pd.DataFrame({"a": [1, 2], "b": ["x", None]})).relation
    >>> turned = read(pd.DataFrame({"b": [None, "x"], "a": [2.0, 1.0]})).relation
    >>> fingerprint_rows(one, key=b"secret") == fingerprint_rows(turned, key=b"secret")
    True
    >>> fingerprint_rows(one, key=b"secret") == fingerprint_rows(one, key=b"another")
    False
    """
    names = sorted(name for name in relation.columns if name != ROW)
    if columns is not None:
        relation.require(*columns)
        names = sorted(set(columns))
    engine = relation.engine
    hashed = _hashed(relation, names, key)
    sums = [
        sql.alias(_as_text(exp.Sum(this=_wide(engine, start))), f"s{start}")
        for start in (1, 1 + _DIGITS)
    ]
    counted = sql.alias(sql.bigint(sql.call("count", exp.Star())), "n")
    found = engine.fetch(sql.select(sql.subquery(hashed, "t"), [counted, *sums])).to_pylist()[0]
    count = int(found.pop("n"))
    content = json.dumps([names, count, *(text or "0" for text in found.values())])
    return count, hmac.new(key, content.encode(), hashlib.sha256).hexdigest()


def fingerprint_values(relation: Relation, columns: Sequence[str], *, key: bytes) -> list[str]:
    """Return a keyed fingerprint of the values of each column, without its name.

    Columns with fewer than ten values are left out: others may have the same by chance.

    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> one = read(pd.DataFrame({"pay": range(10), "sex": ["f", "m"] * 5})).relation
    >>> same = read(pd.DataFrame({"wage": [*range(9, -1, -1)]})).relation
    >>> len(fingerprint_values(one, ["pay", "sex"], key=b"secret"))
    1
    >>> fingerprint_values(one, ["pay"], key=b"secret") == fingerprint_values(
    ...     same, ["wage"], key=b"secret"
    ... )
    True
    """
    engine, found = relation.engine, []
    prefix = hmac.new(key, b"values", hashlib.sha256).hexdigest()
    for name in sorted(columns):
        written = written_key(relation, [name], start=prefix)
        digest = sql.alias(engine.digest(written), "__digest")
        hashed = sql.select(sql.subquery(relation.query, "t"), [digest])
        sums = [
            sql.alias(_as_text(exp.Sum(this=_wide(engine, start))), f"s{start}")
            for start in (1, 1 + _DIGITS)
        ]
        distinct = exp.Count(this=exp.Distinct(expressions=[sql.column("__digest")]))
        counts = [
            sql.alias(sql.bigint(sql.call("count", exp.Star())), "n"),
            sql.alias(sql.bigint(distinct), "d"),
        ]
        query = sql.select(sql.subquery(hashed, "t"), [*counts, *sums])
        row = engine.fetch(query).to_pylist()[0]
        if row.pop("d") >= _FEWEST_VALUES:
            content = json.dumps([str(value) for value in row.values()])
            found.append(hmac.new(key, content.encode(), hashlib.sha256).hexdigest())
    return found


def row_marks(relation: Relation, columns: Sequence[str], *, key: bytes) -> npt.NDArray[np.int64]:
    """Return a keyed mark of each row of a numbered relation, in the order of its numbers.

    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> rows = read(pd.DataFrame({"a": [1, 2, 1]})).numbered().relation
    >>> first, second, third = row_marks(rows, ["a"], key=b"secret")
    >>> bool(first == third), bool(first == second)
    (True, False)
    """
    import numpy as np

    engine = relation.engine
    hashed = _hashed(relation, sorted(columns), key, also=[ROW])
    part = sql.call(
        "substr", sql.column("__digest"), exp.Literal.number(1), exp.Literal.number(_DIGITS)
    )
    marks = sql.alias(sql.bigint(engine.from_hexadecimal(part)), "mark")
    query = sql.select(sql.subquery(hashed, "t"), [sql.column(ROW), marks])
    found = engine.fetch(query).sort_by(ROW)
    return np.asarray(found.column("mark").to_numpy(), dtype=np.int64)


def written_key(relation: Relation, names: Sequence[str], *, start: str = "") -> exp.Expr:
    """Return the text of some of a row's values: the same for the same values, missing ones too."""
    row: exp.Expr = sql.text(start)
    for name in names:
        written = _written(relation.engine, sql.column(name), relation.schema.field(name).type)
        row = exp.DPipe(this=row, expression=_delimited(written))
    return row


def _hashed(
    relation: Relation, names: Sequence[str], key: bytes, also: Sequence[str] = ()
) -> exp.Select:
    """Return the query for the keyed hash of each row, and columns besides."""
    prefix = hmac.new(key, json.dumps(list(names)).encode(), hashlib.sha256).hexdigest()
    engine = relation.engine
    digest = sql.alias(engine.digest(written_key(relation, names, start=prefix)), "__digest")
    return sql.select(sql.subquery(relation.query, "t"), [*map(sql.column, also), digest])


def _wide(engine: Engine, start: int) -> exp.Expr:
    """Return a part of the row's hash as a number whose sum over any rows is exact."""
    part = sql.call(
        "substr",
        sql.column("__digest"),
        exp.Literal.number(start),
        exp.Literal.number(_DIGITS),
    )
    return exp.cast(engine.from_hexadecimal(part), "decimal(38, 0)")


def _delimited(written: exp.Expr) -> exp.Expr:
    size = _as_text(sql.call("length", written))
    marked = exp.DPipe(
        this=exp.DPipe(this=size, expression=sql.text(":")), expression=written.copy()
    )
    return exp.Coalesce(this=marked, expressions=[sql.text("-")])


def _written(engine: Engine, value: exp.Expr, kind: pa.DataType) -> exp.Expr:
    """Return a value as the text that stands for it on every engine."""
    import pyarrow as pa

    if pa.types.is_floating(kind):
        return _double(engine, sql.double(value))
    if pa.types.is_decimal(kind):
        return _as_text(exp.cast(value, f"decimal({kind.precision}, {kind.scale})"))
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return _as_text(engine.microseconds(value))
    return _as_text(value)


def _double(engine: Engine, value: exp.Expr) -> exp.Expr:
    is_small = exp.LT(this=sql.call("abs", value.copy()), expression=sql.number(_EXACT))
    is_whole = exp.EQ(this=value.copy(), expression=sql.call("floor", value.copy()))
    bits = exp.DPipe(this=sql.text("~"), expression=_as_text(engine.bits(value.copy())))
    case = exp.Case(default=bits).when(sql.is_known(value.copy()).not_(), exp.Null())
    whole = _as_text(sql.bigint(value.copy()))
    return case.when(exp.And(this=is_small, expression=is_whole), whole)


def _as_text(value: exp.Expr) -> exp.Expr:
    return exp.cast(value, "text")
