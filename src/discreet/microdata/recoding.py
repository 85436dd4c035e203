"""Applying what a search decided: values replaced and records suppressed, in the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.base import ROW, Relation

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["STAR", "matched", "suppress"]

#: What stands for the quasi-identifiers of a suppressed record that is kept.
STAR = "*"
_MARK = "__matched"


def matched(
    dataset: Dataset, rows: pa.Table, keys: Sequence[str], replaced: Mapping[str, str]
) -> Dataset:
    """Replace columns by join on several keys: those of each row of `rows` that has the same keys.

    `replaced` maps a column of the dataset to the column of `rows` it is taken from. Records
    without a row keep what they have.
    """
    joined = _joined(dataset, rows, keys)
    relation = dataset.relation
    values: list[exp.Expression] = []
    for name in relation.columns:
        if name not in replaced:
            values.append(sql.column(name, "t"))
            continue
        kept = exp.Cast(this=sql.column(name, "t"), to=exp.DataType.build("text"))
        case = exp.Case().when(sql.column(_MARK, "s"), sql.column(replaced[name], "s"))
        values.append(sql.alias(case.else_(kept), name))
    joined.set("expressions", values)
    return dataset.replace(relation=relation.engine.relation(joined))


def suppress(dataset: Dataset, rows: pa.Table, *, keep: bool, unit: str | None = None) -> Dataset:
    """Drop the records whose keys are among the rows, or star their keys.

    A kept record says nothing: its keys become `*`, all its other values missing. The unit stays,
    by which people are counted before it is taken out.
    """
    keys = rows.column_names
    joined = _joined(dataset, rows, keys)
    relation = dataset.relation
    gone = sql.column(_MARK, "s")
    if not keep:
        joined.set("expressions", [sql.column(name, "t") for name in relation.columns])
        joined = joined.where(exp.Is(this=gone, expression=exp.Null()))
        return dataset.replace(relation=Relation(relation.engine, joined, relation.schema))
    values = []
    for name in relation.columns:
        own: exp.Expression = sql.column(name, "t")
        if name in keys:
            text = exp.Cast(this=own, to=exp.DataType.build("text"))
            own = sql.alias(exp.Case().when(gone.copy(), sql.text(STAR)).else_(text), name)
        elif name not in (ROW, unit):
            own = sql.alias(exp.Case().when(gone.copy(), exp.Null()).else_(own), name)
        values.append(own)
    joined.set("expressions", values)
    return dataset.replace(relation=relation.engine.relation(joined))


def _joined(dataset: Dataset, rows: pa.Table, keys: Sequence[str]) -> exp.Select:
    """Return the records with the row that has their keys beside them, if there is one."""
    import pyarrow as pa

    relation = dataset.relation
    marked = rows.append_column(_MARK, pa.array([True] * rows.num_rows, pa.bool_()))
    loaded = relation.engine.load(marked)
    conditions: list[exp.Expression] = []
    for name in keys:
        left, right = sql.column(name, "t"), sql.column(name, "s")
        # Equality lets the engine join by hash; a missing value equals a missing one only here.
        kind = exp.NullSafeEQ if rows.column(name).null_count else exp.EQ
        conditions.append(kind(this=left, expression=right))
    return exp.Select(from_=exp.From(this=sql.subquery(relation.query, "t"))).join(
        sql.subquery(loaded.query, "s"), on=exp.and_(*conditions), join_type="left"
    )
