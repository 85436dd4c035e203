"""People behind rows: guards that protect records need one record of each unit."""

from __future__ import annotations

from sqlglot import exp

from discreet.data.sql.query import from_clause
from discreet.errors import InputError
from discreet.queries.guards._base import Protected

__all__ = ["require_single"]


def require_single(data: Protected, guard: str) -> None:
    """Refuse data in which the declared unit has several records.

    What is kept of each record is not kept of the unit: its salaries of eight years tell of each
    other, and a group of three records may be one person.
    """
    unit = data.catalog.unit
    if unit is None:
        return
    distinct = exp.Count(this=exp.Distinct(expressions=[exp.column(unit, quoted=True)]))
    select = exp.select(exp.alias_(distinct, "n")).from_(from_clause(data.relation.query, "t"))
    if int(data.engine.fetch(select).column(0)[0].as_py()) < data.count:
        raise InputError(
            f"the unit {unit!r} has several records, {guard} needs one",
            code="several-records",
            column=unit,
            hint="aggregate to one record per unit, or use Perturbation(contribution=…)",
        )
