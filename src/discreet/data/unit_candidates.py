"""Columns that may say whom the records belong to, although no name says so.

A number or code of persons repeats, and age and sex hardly change within each of its values. Classes
that count records would take the many records of one such person for many people.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.infer import SAMPLE, first_rows, summaries, value_kind
from discreet.data.names import meaning
from discreet.data.schema import Role

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.data.describe import ColumnDescription, Description

__all__ = ["unit_candidates"]

#: Fewer different values than this are a category.
_FEWEST = 6
#: Records beyond the first of each value that are needed to judge.
_AGAIN = 20
#: A value is one person's where at least this share of the repeating values looks so.
_MOST = 0.8
#: Where two records agree more often than this by chance, agreeing says nothing.
_CHANCE = 0.6
#: What columns are called where a file does not name them.
_UNNAMED = re.compile(r"column_\d+")
#: Columns of a file without names that are looked at, and of those what may stay as it is.
_LOOKED, _TELLING = 12, 3
#: Age grows from one record of a person to the next: by at most this share of its range.
_GROWS = 0.05


def unit_candidates(dataset: Dataset, found: Description) -> tuple[str, ...]:
    """Return the columns whose values may each be one person with several records.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> from discreet.data.describe import describe
    >>> codes = [f"P{n % 20}" for n in range(80)]
    >>> ages = [30 + n % 20 for n in range(80)]
    >>> visits = read(pd.DataFrame({"x": codes, "age": ages, "ward": list("abcd") * 20}))
    >>> unit_candidates(visits, describe(visits))
    ('x',)
    """
    about = [c for c in found.columns if _is_about_people(c)]
    possible = [c for c in found.columns if c not in about and _is_possible(dataset, found, c)]
    if not possible:
        return ()
    if not about and all(_UNNAMED.fullmatch(c.name) for c in found.columns):
        return _of_unnamed(dataset, found, possible)
    if not about or _agreement(dataset, about) > _CHANCE:
        return tuple(c.name for c in possible if _is_long_number(dataset, c))
    only_sex = not any(meaning(c.name, kind) for c in about for kind in ("aged", "postcode"))
    steady = _steady(dataset, about)
    return tuple(
        c.name
        for c in possible
        if not (only_sex and meaning(c.name, "called"))  # first names tell the sex
        and _is_constant(dataset, c.name, steady)
    )


def _of_unnamed(
    dataset: Dataset, found: Description, possible: Sequence[ColumnDescription]
) -> tuple[str, ...]:
    """Return the candidates of a file without names: any column may be what stays as it is.

    Numbers of persons stand among the first columns; in wide files only these are looked at.
    """
    quasi = [c for c in found.columns if c.role == Role.QUASI.value and c.distinct > 1]
    telling = [c for c in quasi[:_LOOKED] if _agreement(dataset, [c]) <= _CHANCE][:_TELLING]
    steady = [_steady(dataset, [c]) for c in telling]
    wanted = [c.name for c in possible if c not in quasi][:_LOOKED]
    return tuple(name for name in wanted if any(_is_constant(dataset, name, one) for one in steady))


def _is_about_people(column: ColumnDescription) -> bool:
    return (
        any(meaning(column.name, kind) for kind in ("aged", "sexed", "postcode"))
        and column.role == Role.QUASI.value
        and column.distinct > 1
    )


def _is_possible(dataset: Dataset, found: Description, column: ColumnDescription) -> bool:
    present = found.records - column.missing
    is_named_quasi = column.role == Role.QUASI.value and meaning(column.name, "quasi")
    return (
        value_kind(dataset.relation.schema.field(column.name).type) in ("integer", "number", "text")
        and column.type != "date"
        and column.name not in (found.unit, found.weight)
        and column.distinct >= _FEWEST
        and present - column.distinct >= _AGAIN
        and not is_named_quasi
        and meaning(column.name, "staff") is None
    )


def _agreement(dataset: Dataset, about: Sequence[ColumnDescription]) -> float:
    """Return how often two records agree in what they say about people, by chance."""
    keys = [sql.column(column.name) for column in about]
    many = sql.alias(sql.double(exp.Count(this=exp.Star())), "n")
    classes = sql.select(sql.subquery(dataset.relation.query, "t"), [many]).group_by(*keys)
    pairs = exp.Sum(this=exp.Mul(this=sql.column("n"), expression=sql.column("n")))
    wanted = [sql.alias(pairs, "pairs"), sql.alias(exp.Sum(this=sql.column("n")), "records")]
    row = dataset.engine.fetch(sql.select(sql.subquery(classes, "c"), wanted)).to_pylist()[0]
    return float(row["pairs"] / row["records"] ** 2) if row["records"] else 1.0


def _is_long_number(dataset: Dataset, column: ColumnDescription) -> bool:
    """Whether whole numbers of 9 to 13 digits have two records each or more, as persons' do."""
    (summary,) = summaries(dataset.engine.project(dataset.relation, [column.name]))
    low, high = summary.low, summary.high
    if not (isinstance(low, int) and isinstance(high, int)) or low < 10**8 or high >= 10**13:
        return False
    return summary.present >= 2 * summary.distinct


def _steady(dataset: Dataset, about: Sequence[ColumnDescription]) -> list[exp.Expression]:
    """Return the conditions under which a group of records speaks of one person."""
    rows = dataset.engine.project(dataset.relation, [column.name for column in about])
    found: list[exp.Expression] = []
    for summary in summaries(rows):
        value = sql.column(summary.name)
        if summary.kind in ("integer", "number"):
            spread = exp.Sub(this=exp.Max(this=value), expression=exp.Min(this=value.copy()))
            most = _GROWS * float(summary.high - summary.low)
            found.append(
                exp.LTE(this=sql.double(exp.Paren(this=spread)), expression=sql.number(most))
            )
        else:
            different = exp.Count(this=exp.Distinct(expressions=[value]))
            found.append(exp.LTE(this=different, expression=sql.number(1)))
    return found


def _is_constant(dataset: Dataset, name: str, steady: Sequence[exp.Expression]) -> bool:
    """Whether most values that repeat agree in what they say about people.

    The first records are asked before all are: they rule out most columns.
    """
    several, again, same = _counted(dataset, name, steady, SAMPLE)
    if again >= _AGAIN and same < _MOST / 2 * several:
        return False
    several, again, same = _counted(dataset, name, steady, None)
    return again >= _AGAIN and same >= _MOST * several


def _counted(
    dataset: Dataset, name: str, steady: Sequence[exp.Expression], rows: int | None
) -> tuple[int, int, int]:
    """Return how many values repeat, their records beyond the first, and those of one person."""
    relation = dataset.relation
    query = relation.query if rows is None else first_rows(relation, rows)
    is_same = exp.Case(
        ifs=[exp.If(this=exp.and_(*(one.copy() for one in steady)), true=sql.number(1))],
        default=sql.number(0),
    )
    size = exp.Count(this=exp.Star())
    key = sql.column(name)
    wanted = [sql.alias(size, "n"), sql.alias(is_same, "same")]
    values = sql.select(sql.subquery(query, "t"), wanted).where(sql.is_known(key)).group_by(key)
    repeats = exp.GT(this=sql.column("n"), expression=sql.number(1))
    once = exp.Sub(this=sql.column("n"), expression=sql.number(1))
    totals = [
        sql.alias(sql.bigint(exp.Count(this=exp.Star())), "several"),
        sql.alias(sql.bigint(exp.Sum(this=once)), "again"),
        sql.alias(sql.bigint(exp.Sum(this=sql.column("same"))), "same"),
    ]
    asked = sql.select(sql.subquery(values, "v"), totals).where(repeats)
    row = relation.engine.fetch(asked).to_pylist()[0]
    return int(row["several"] or 0), int(row["again"] or 0), int(row["same"] or 0)
