"""The one form of a value: what is counted as one value is also written as one.

A number that is none (NaN) is a missing value, minus zero is zero, and texts are composed (Unicode
NFC). Everything else stays apart: "01" and "1", an empty text and a missing one. Rows take this
form where they are read and again where methods changed them, so that a promise counted in an
engine holds for the bytes of the file. A PostgreSQL database that does not hold Unicode keeps its
texts as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.base import ROW, Relation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["canonical", "canonical_rows"]


def canonical(relation: Relation) -> Relation:
    """Return rows whose values have one form each, brought into it by the engine."""
    import pyarrow as pa

    values: list[exp.Expr] = []
    for field in relation.schema:
        own = sql.column(field.name)
        made: exp.Expr | None = None
        if pa.types.is_floating(field.type):
            zero = exp.EQ(this=own.copy(), expression=exp.Literal.number(0))
            made = (
                exp.Case()
                .when(relation.engine.is_nan(own.copy()), exp.Null())
                .when(zero, exp.Abs(this=own.copy()))
                .else_(own.copy())
            )
        elif pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            made = relation.engine.composed(own.copy())
        values.append(own if made is None else sql.alias(made, field.name))
    if all(isinstance(value, exp.Column) for value in values):
        return relation
    query = sql.select(sql.subquery(relation.query, "t"), values)
    return Relation(relation.engine, query, relation.schema, relation.rows, relation.most)


def canonical_rows(rows: pa.Table) -> pa.Table:
    r"""Return an Arrow table whose values have one form each.

    >>> import pyarrow as pa
    >>> rows = pa.table({"x": [0.0, -0.0, float("nan")], "name": ["é", "e\u0301", ""]})
    >>> found = canonical_rows(rows).to_pydict()
    >>> [str(value) for value in found["x"]], len(set(found["name"]))
    (['0.0', '0.0', 'None'], 2)
    """
    import pyarrow as pa

    for place, field in enumerate(rows.schema):
        if field.name == ROW:
            continue
        column = rows.column(place)
        if pa.types.is_floating(field.type) and field.type != pa.float16():
            made = _numbers(column)
        elif pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            made = _texts(column)
        else:
            continue
        if made is not column:
            rows = rows.set_column(place, field, made)
    return rows


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    zero = pc.equal(column, pa.scalar(0, column.type))
    if pc.any(zero).as_py():
        column = pc.if_else(pc.fill_null(zero, False), pc.abs(column), column)
    if pc.any(pc.is_nan(column)).as_py():
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    return column


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    if pc.all(pc.string_is_ascii(column)).as_py() is not False:
        return column
    return pc.utf8_normalize(column, form="NFC")
