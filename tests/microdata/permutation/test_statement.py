"""What may be asked, and that everything else is refused with a reason."""

from __future__ import annotations

import pytest

from discreet.errors import InputError, RefusedError
from discreet.microdata.permutation.statement import parse

COLUMNS = ("age", "sex", "w", "salary")


def read(sql, **more):
    return parse(sql, name="people", columns=COLUMNS, sensitive="salary", **more)


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("SELECT COUNT(*), COUNT(salary) FROM people", ["count", "count"]),
        ("select sum(SALARY), avg(p.salary) from PEOPLE as p where p.Age < 3", ["sum", "avg"]),
        ("SELECT MIN(salary), MAX(salary), MEDIAN(salary) FROM people", ["min", "max", "quantile"]),
        ("SELECT QUANTILE_CONT(salary, 0.1) FROM people", ["quantile"]),
        ("SELECT PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY salary) FROM people", ["quantile"]),
        ("SELECT VARIANCE(salary), STDDEV_POP(salary), VAR_SAMP(salary) FROM people", ["variance"] * 3),
        ("SELECT SUM(w * salary), SUM(salary / 12), SUM(-salary * (w + 1)) FROM people", ["weighted"] * 3),
        ("SELECT age // 10 AS d, AVG(salary) FROM people GROUP BY d ORDER BY d DESC", ["avg"]),
        ("SELECT sex, AVG(salary) FROM people GROUP BY 1", ["avg"]),
        ("SELECT COUNT(*) FROM people WHERE (salary > 3 OR salary < 1) AND NOT age IN (1, 2)", ["count"]),
    ],
)  # fmt: skip
def test_what_is_answered(sql, kinds):
    assert [aggregate.kind for aggregate in read(sql).aggregates] == kinds


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT salary FROM people", "single records"),
        ("SELECT * FROM people", "STAR"),
        ("SELECT age, AVG(salary) FROM people", "not in GROUP BY"),
        ("SELECT SUM(DISTINCT salary) FROM people", "SUM"),
        ("SELECT COUNT(DISTINCT age) FROM people", "DISTINCT"),
        ("SELECT AVG(age) FROM people", "AVG"),
        ("SELECT SUM(salary) FROM people WHERE salary > 3", "COUNT only"),
        ("SELECT COUNT(*) FROM people WHERE salary > age", "mixes"),
        ("SELECT COUNT(*) FROM people WHERE age < 3 OR salary > 5", "mixes"),
        ("SELECT AVG(salary) + 1 FROM people", "ADD"),
        ("SELECT SUM(salary * salary) FROM people", "known weights"),
        ("SELECT SUM(salary + age) FROM people", "known weights"),
        ("SELECT MAX(salary, 3) FROM people", "MAX"),
        ("SELECT SUM(salary) FILTER (WHERE age < 3) FROM people", "FILTER"),
        ("SELECT AVG(salary) OVER () FROM people", "WINDOW"),
        ("SELECT AVG(salary) FROM people WHERE age IN (SELECT 1)", "subquery"),
        ("SELECT AVG(salary) FROM people WHERE EXISTS (SELECT 1)", "EXISTS"),
        ("SELECT AVG(salary) FROM people WHERE random() < 0.5", "RAND"),
        ("SELECT AVG(salary) FROM people WHERE age = getenv('x')", "GETENV"),
        ("SELECT AVG(salary) FROM people LIMIT 1", "LIMIT"),
        ("SELECT AVG(salary) FROM people HAVING COUNT(*) > 3", "HAVING"),
        ("SELECT DISTINCT AVG(salary) FROM people", "DISTINCT"),
        ("WITH x AS (SELECT 1) SELECT AVG(salary) FROM people", "WITH"),
        ("SELECT AVG(salary) FROM people, people AS q", "JOIN"),
        ("SELECT AVG(salary) FROM (SELECT * FROM people)", "FROM people"),
        ("SELECT AVG(salary) FROM read_csv('x')", "FROM people"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex, salary", "GROUP BY salary"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex)", "ROLLUP"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY ALL", "GROUP BY ALL"),
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n", "ORDER BY"),
        ("SELECT sex FROM people GROUP BY sex", "no aggregate"),
        ("SELECT COUNT(*) FROM people UNION SELECT 1", "one SELECT"),
        ("SELECT COUNT(*) FROM people; DROP TABLE people", "one SELECT"),
        ("DROP TABLE people", "one SELECT"),
        ("SELECT QUANTILE_CONT(salary, age) FROM people", "named by a number"),
    ],
)  # fmt: skip
def test_what_is_refused_and_why(sql, reason):
    with pytest.raises(RefusedError, match="no bounds are known") as caught:
        read(sql)
    assert reason in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT AVG(salary FROM", "bad-sql"),
        ("", "not-answerable"),
        ("SELECT AVG(salaryy) FROM people", "unknown-column"),
        ("SELECT AVG(salary) FROM persons", "unknown-table"),
        ("SELECT AVG(x.salary) FROM people", "unknown-table"),
        ("SELECT QUANTILE_CONT(salary, 1.5) FROM people", "bad-sql"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY 7", "bad-sql"),
    ],
)
def test_mistakes_say_what_to_write(sql, code):
    with pytest.raises((InputError, RefusedError)) as caught:
        read(sql)
    assert caught.value.code == code


def test_hostile_text_stays_a_value():
    statement = read("SELECT COUNT(*) FROM people WHERE sex = 'x''; DROP TABLE people; --'")
    assert statement.where.expression.name == "x'; DROP TABLE people; --"


def test_equal_names_are_told_apart():
    labels = [
        a.label
        for a in read("SELECT COUNT(*), COUNT(*), AVG(salary) AS count FROM people").aggregates
    ]
    assert labels == ["count", "count_2", "count_3"]
