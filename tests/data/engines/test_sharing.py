"""Large queries compute what they repeat once, and mean the same."""

from __future__ import annotations

import duckdb
import pytest
from sqlglot import exp, parse_one

from discreet.data.engines.sharing import shared


def nested(depth):
    """Return a CASE that holds four copies of the one inside it."""
    text = "CASE WHEN a > 9 THEN 9 WHEN a < 2 THEN NULL ELSE a END"
    for step in range(depth):
        text = (
            f"CASE WHEN {text} > {step} THEN {text} / 2 WHEN {text} IS NULL THEN -1 ELSE {text} END"
        )
    return text


ROWS = "(SELECT * FROM (VALUES (1, 'x'), (5, 'x'), (50, 'y'), (NULL, 'y')) AS v(a, b)) AS t"
QUERIES = {
    "sums": f"SELECT b, SUM({nested(3)}) AS s, COUNT({nested(3)}) AS n FROM {ROWS} GROUP BY b ORDER BY b",
    "keys": f"SELECT {nested(3)} AS k, COUNT(*) AS n FROM {ROWS} GROUP BY {nested(3)} ORDER BY 1",
    "condition": f"SELECT t.b, {nested(3)} AS x FROM {ROWS} WHERE {nested(1)} > 2 ORDER BY 1, 2",
    "below": f"SELECT SUM(x) AS s FROM (SELECT {nested(3)} AS x FROM {ROWS}) AS u",
    "named": f"SELECT SUM({nested(3)}) AS shared_0 FROM {ROWS}",
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_large_query_becomes_small_and_means_the_same(name):
    tree = parse_one(QUERIES[name], dialect="duckdb")
    text = tree.sql("duckdb")
    small = shared(tree)
    assert tree.sql("duckdb") == text  # the query itself stays as it is
    assert len(small.sql("duckdb")) < len(text) / 5
    assert duckdb.sql(small.sql("duckdb")).fetchall() == duckdb.sql(text).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT *, {nested(3)} AS x FROM {ROWS}",
        f"SELECT {nested(3)} AS x FROM t",
        f"SELECT {nested(3)} AS x FROM {ROWS} JOIN u ON t.b = u.b",
        f"SELECT {nested(3).replace('a > 9', 'SUM(a) > 9')} AS x FROM {ROWS}",
    ],
)
def test_what_cannot_be_shared_stays(sql):
    tree = parse_one(sql, dialect="duckdb")
    cases = len(list(tree.find_all(exp.Case)))
    assert len(list(shared(tree).find_all(exp.Case))) == cases


def test_small_queries_stay_as_they_are():
    tree = parse_one("SELECT SUM(CASE WHEN a > 1 THEN a END) FROM (SELECT a FROM t) AS t")
    assert shared(tree) is tree
