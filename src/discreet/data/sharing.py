"""How many people share a value: codes of households are as telling as codes of persons.

A code that three people share leaves each of them among three, whatever classes the release makes.
So what tells people apart is judged by the people per value, not by the values per record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.names import is_household

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.data.infer import Summary

__all__ = ["shared_by_few"]

#: Whoever shares a value with fewer people than this, themselves among them, is told apart by it.
_FEW = 5
#: From this share of people told apart on, a column tells people apart.
_MOST = 0.5
#: Columns with fewer values are categories: in a small file all of them have few people.
_VALUES = 50
#: A column called a household's is one from so many values on; fewer are kinds of households.
_KINDS = 6
#: Different values per person from which on a column is near-unique.
_NEAR_UNIQUE = 0.5
#: Fewer people than this have few values in common anyway.
_PEOPLE = 20


def shared_by_few(dataset: Dataset, summary: Summary) -> str | None:
    """Return in words that few people share each value of a column, if it is so.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> from discreet.data.infer import summaries
    >>> people = read(
    ...     pd.DataFrame({"home": [n // 3 for n in range(300)], "ward": list("abc") * 100})
    ... )
    >>> home, ward = summaries(people.relation)
    >>> shared_by_few(people, home), shared_by_few(people, ward)
    ('are near-unique: 100% of the people share theirs with fewer than 4 others', None)
    """
    if summary.kind in ("boolean", "nested") or summary.distinct < _KINDS:
        return None
    unit = dataset.unit if dataset.unit != summary.name else None
    is_code = summary.distinct >= _VALUES or is_household(summary.name)
    # Half of n people in groups of at most four are at least n / 8 groups.
    are_many = summary.distinct >= summary.present * _MOST / (_FEW - 1)
    if unit is None and not (is_code and are_many):
        return None
    sizes = _sizes(dataset, summary.name, unit)
    people = sum(size * values for size, values in sizes.items())
    few = sum(size * values for size, values in sizes.items() if size < _FEW)
    if unit is not None and people >= _PEOPLE and summary.distinct >= _NEAR_UNIQUE * people:
        return f"are near-unique, {summary.distinct:,} of {people:,} people: they tell people apart"
    if not is_code or few < _MOST * people:
        return None
    return (
        f"are near-unique: {few / people:.0%} of the people share theirs with fewer than "
        f"{_FEW - 1} others"
    )


def _sizes(dataset: Dataset, name: str, unit: str | None) -> dict[int, int]:
    """Return how many values have how many people."""
    who: exp.Expr = exp.Star()
    if unit is not None:
        who = exp.Distinct(expressions=[sql.column(unit)])
    rows = sql.subquery(dataset.relation.query, "t")
    size = sql.alias(sql.bigint(exp.Count(this=who)), "n")
    each = sql.select(rows, [size]).where(sql.is_known(sql.column(name)))
    each = each.group_by(sql.column(name))
    values = sql.alias(sql.bigint(exp.Count(this=exp.Star())), "m")
    counted = sql.select(sql.subquery(each, "v"), [sql.column("n"), values])
    found = dataset.engine.fetch(counted.group_by(sql.column("n"))).to_pylist()
    return {int(row["n"]): int(row["m"]) for row in found}
