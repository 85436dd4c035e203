"""Confidential columns with few values, whose sums tell them where a group is all alike."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from discreet.data.sql.query import from_clause
from discreet.data.sql.total import DOUBLE
from discreet.queries.guards._base import Protected
from discreet.queries.guards._profiles import public_columns

__all__ = ["few_values", "telling"]

#: A column of numbers with no more values than this among so many records is a classification.
MOST_VALUES, RECORDS = 10, 100
#: So is one where this share of the records has one value: nobody gains, a few do.
ONE_VALUE, FEWEST = 0.5, 30


def few_values(data: Protected) -> frozenset[str]:
    """Return the confidential columns that classify records: truths, texts, and few numbers.

    Zeros and ones count however few the records are. Numbers of which most are the same, such as
    gains that most people do not have, tell it of large groups, as few numbers do.
    """
    found, numbers = set(), []
    for name in data.relation.columns:
        if name in data.confidential:
            if data.catalog[name].is_number:
                numbers.append(name)
            else:
                found.add(name)
    if not numbers:
        return frozenset(found)
    wanted: list[Any] = []
    for place, name in enumerate(numbers):
        column = exp.column(name, quoted=True)
        distinct = exp.Count(this=exp.Distinct(expressions=[column]))
        other = exp.Case(
            ifs=[
                exp.If(
                    this=exp.In(
                        this=column.copy(),
                        expressions=[exp.Literal.number(0), exp.Literal.number(1)],
                    ),
                    true=exp.Null(),
                )
            ],
            default=column.copy(),
        )
        wanted.append(exp.alias_(exp.cast(distinct, "bigint"), f"d{place}"))
        wanted.append(exp.alias_(exp.cast(exp.Count(this=other), "bigint"), f"o{place}"))
    select = exp.select(*wanted).from_(from_clause(data.relation.query, "t"))
    row = data.engine.fetch(select).to_pylist()[0]
    for place, name in enumerate(numbers):
        few = data.count >= RECORDS and row[f"d{place}"] <= MOST_VALUES
        if few or row[f"o{place}"] == 0 or _is_mostly_one(data, name):
            found.add(name)
    return frozenset(found)


def _is_mostly_one(data: Protected, name: str) -> bool:
    """Whether most records that have a value have the same."""
    count = exp.Count(this=exp.column(name, quoted=True))
    values = (
        exp.select(exp.alias_(count, "n"))
        .from_(from_clause(data.relation.query, "t"))
        .group_by(exp.column(name, quoted=True))
    )
    n = exp.column("n", quoted=True)
    wanted = [
        exp.alias_(exp.cast(exp.Max(this=n), DOUBLE), "top"),
        exp.alias_(exp.cast(exp.Sum(this=n.copy()), DOUBLE), "records"),
    ]
    row = data.engine.fetch(exp.select(*wanted).from_(from_clause(values, "v"))).to_pylist()[0]
    top, records = row["top"] or 0.0, row["records"] or 0.0
    return bool(records >= FEWEST and top > ONE_VALUE * records)


def telling(data: Protected, column: str, k: int) -> str:
    """Return how many groups of k or more records alike in public columns have one value only."""
    keys = [exp.column(name, quoted=True) for name in public_columns(data)]
    named: exp.Expression = exp.column(column, quoted=True)
    if data.catalog[column].kind == "boolean":
        named = exp.Case(
            ifs=[exp.If(this=named, true=exp.Literal.number(1))], default=exp.Literal.number(0)
        )
    groups = exp.select(
        exp.alias_(exp.Count(this=exp.Star()), "n"),
        exp.alias_(exp.Min(this=named), "low"),
        exp.alias_(exp.Max(this=named.copy()), "high"),
    ).from_(from_clause(data.relation.query, "t"))
    if keys:
        groups = groups.group_by(*keys)
    alike = exp.and_(
        exp.GTE(this=exp.column("n", quoted=True), expression=exp.Literal.number(k)),
        exp.EQ(this=exp.column("low", quoted=True), expression=exp.column("high", quoted=True)),
    )
    counts = exp.select(
        exp.alias_(exp.cast(exp.Count(this=exp.Star()), "bigint"), "groups"),
        exp.alias_(
            exp.cast(
                exp.Coalesce(
                    this=exp.Sum(this=exp.column("n", quoted=True)),
                    expressions=[exp.Literal.number(0)],
                ),
                "bigint",
            ),
            "persons",
        ),
    )
    row = data.engine.fetch(counts.from_(from_clause(groups, "g")).where(alike)).to_pylist()[0]
    return (
        f"{column} has few values, or one for most: {row['groups']:,} groups of {k} or more, alike in "
        f"all public columns, have one value only, and would tell it of {row['persons']:,} records"
    )
