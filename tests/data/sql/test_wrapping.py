"""Wrappers that clients put around a statement ask what is inside, and nothing else."""

from __future__ import annotations

import pytest

from discreet.data.sql import Catalog, parse
from discreet.data.sql.query import Field
from discreet.errors import RefusedError

CATALOG = Catalog("people", (Field("age", "integer"), Field("sex", "text"), Field("salary", "integer")))  # fmt: skip
INSIDE = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.mark.parametrize(
    ("wrapper", "labels", "limit"),
    [
        ('SELECT "sex", "n" FROM ({}) AS __unnamed_subquery', ["sex", "n"], None),
        ("SELECT * FROM ({}) t LIMIT 0", ["sex", "n"], 0),
        ("SELECT t.n, t.sex AS who FROM ({}) AS t LIMIT 5", ["n", "who"], 5),
        ("SELECT * FROM (SELECT * FROM ({}) a) b", ["sex", "n"], None),
    ],
)
def test_a_wrapper_asks_what_is_inside(wrapper, labels, limit):
    query = parse(wrapper.format(INSIDE), CATALOG)
    assert query.digest == parse(INSIDE, CATALOG).digest
    assert [output.label for output in query.outputs] == labels
    assert query.limit == limit


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n + 1 FROM ({}) t",
        "SELECT n FROM ({}) t WHERE n > 3",
        "SELECT DISTINCT n FROM ({}) t",
        "SELECT SUM(n) FROM ({}) t",
        "SELECT nobody FROM ({}) t",
        "SELECT x.n FROM ({}) t",
        "SELECT * FROM ({} LIMIT 3) t LIMIT 5",
        "SELECT n, sex FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY 1) t",
        "SELECT * FROM (SELECT sex FROM people) t",
        "SELECT * FROM ({}) t, people",
        "SELECT * FROM (SELECT COUNT(*) FROM pg_catalog.pg_user) t",
    ],
)
def test_a_wrapper_that_does_more_is_refused(sql):
    with pytest.raises(RefusedError):
        parse(sql.format(INSIDE), CATALOG)
