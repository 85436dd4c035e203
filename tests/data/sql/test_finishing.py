"""What is done to released rows: arithmetic, HAVING, ORDER BY, LIMIT, on values and intervals."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.queries.corpus import CATALOG

from discreet.data.sql import finish, parse


def shown(sql, **columns):
    return finish(parse(sql, CATALOG), pa.table(columns)).to_pylist()


def test_labels_are_unique_and_as_postgresql_gives_them():
    sql = "SELECT COUNT(*), COUNT(age), SUM(salary), SUM(salary) / COUNT(*) FROM people"
    (row,) = shown(sql, m0=[2], m1=[3], m2=[6])
    assert list(row) == ["count", "count_2", "sum", "column"]


def test_order_by_several_with_nulls():
    sql = (
        "SELECT sector, COUNT(*) n FROM people GROUP BY sector ORDER BY n DESC, sector NULLS FIRST"
    )
    rows = shown(sql, k0=["b", None, "a"], m0=[1, 1, 2])
    assert [row["sector"] for row in rows] == ["a", None, "b"]


def test_limit_and_offset():
    sql = "SELECT sector, COUNT(*) n FROM people GROUP BY sector ORDER BY sector LIMIT 1 OFFSET 1"
    assert shown(sql, k0=["b", "a", "c"], m0=[1, 2, 3]) == [{"sector": "b", "n": 1}]


@pytest.mark.parametrize(
    ("having", "kept"),
    [
        ("COUNT(*) > 1", ["y", "z"]),
        ("COUNT(*) BETWEEN 1 AND 2", ["x", "y"]),
        ("NOT COUNT(*) = 2", ["x", "z"]),
        ("COUNT(*) = 1 OR sector = 'z'", ["x", "z"]),
        ("COUNT(*) + 1 >= 3 AND sector <> 'z'", ["y"]),
        ("SUM(salary) > 0", ["x", "z"]),
    ],
)
def test_having_is_three_valued(having, kept):
    sql = f"SELECT sector, COUNT(*), SUM(salary) s FROM people GROUP BY sector HAVING {having}"
    rows = shown(sql, k0=["x", "y", "z"], m0=[1, 2, 3], m1=[5, None, 7])
    assert [row["sector"] for row in rows] == kept


def test_intervals_stay_intervals():
    sql = "SELECT SUM(salary) / COUNT(*) AS mean, -SUM(salary) AS minus FROM people"
    (row,) = shown(sql, m0=[4], m1_lower=[8.0], m1_upper=[12.0])
    assert row == {"mean_lower": 2.0, "mean_upper": 3.0, "minus_lower": -12.0, "minus_upper": -8.0}


def test_division_by_what_may_be_zero_is_null():
    sql = "SELECT SUM(salary) / COUNT(*) AS mean FROM people"
    assert shown(sql, m0=[0], m1=[3]) == [{"mean": None}]
    assert shown(sql, m0_lower=[-1.0], m0_upper=[1.0], m1=[3]) == [
        {"mean_lower": None, "mean_upper": None}
    ]
