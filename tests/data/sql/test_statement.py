"""The parser: plain-text corpora, canonical questions, parameters, and fuzzing by grammar."""

from __future__ import annotations

import datetime
import decimal

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.queries.corpus import CATALOG, accepted, refused

from discreet.data.engines.meaning import meant
from discreet.data.sql import parse
from discreet.data.sql.query import raw_query
from discreet.errors import RefusedError


@pytest.mark.parametrize(("code", "sql"), refused())
def test_hostile_statement_is_refused_with_its_code_and_a_way_out(code, sql):
    with pytest.raises(RefusedError) as caught:
        parse(sql, CATALOG)
    assert caught.value.code == code
    assert caught.value.hint


def test_corpus_is_large():
    assert len(refused()) >= 300


@pytest.mark.parametrize(("sql", "question"), accepted())
def test_accepted_statement_is_understood(sql, question):
    assert parse(sql, CATALOG).question == question


@pytest.mark.parametrize(("sql", "question"), accepted())
def test_question_is_its_own_canonical_form(sql, question):
    assert parse(question, CATALOG).question == question


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "   ",
        ";",
        "--",
        "SELECT COUNT(*) FROM people WHERE " + "(" * 80 + "age = 1" + ")" * 80,
        "SELECT COUNT(*) FROM people WHERE " + " OR ".join(f"age = {n}" for n in range(3000)),
        "SELECT COUNT(*) FROM people WHERE " + "NOT " * 300 + "age = 1",
        "SELECT COUNT(*) FROM people WHERE sector = '\x00'",
        "SELECT " + "(" * 500,
        "SELECT COUNT(*) FROM people WHERE age = " + "9" * 5000,
        "SELECT COUNT(*)\x00 FROM people",
        "SELECT COUNT(*) FROM people WHERE sector = '\ud800'",
        'SELECT COUNT(*) AS "\udfff" FROM people',
    ],
)
def test_degenerate_statement_is_refused(sql):
    with pytest.raises(RefusedError):
        parse(sql, CATALOG)


def test_half_a_character_is_no_parameter():
    with pytest.raises(RefusedError) as failure:
        parse("SELECT COUNT(*) FROM people WHERE sector = $1", CATALOG, parameters=["\ud800"])
    assert failure.value.code == "malformed-literal"


@pytest.mark.parametrize("digits", [16, 400, 5000])
def test_a_number_of_many_digits_is_no_parameter(digits):
    with pytest.raises(RefusedError) as failure:
        parse("SELECT COUNT(*) FROM people WHERE age > $1", CATALOG, parameters=[-(10**digits)])
    assert failure.value.code == "large-number"


def test_a_zero_byte_is_named():
    with pytest.raises(RefusedError, match="zero byte"):
        parse("SELECT COUNT(*) FROM people WHERE sector = '\x00'", CATALOG)


def test_long_chain_of_conditions_is_accepted():
    sql = "SELECT COUNT(*) FROM people WHERE " + " OR ".join(f"age = {n}" for n in range(500))
    assert parse(sql, CATALOG).question.count("OR") == 499


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("age = $1", [3]),
        ("age = %s", [3]),
        ("age = ?", [3]),
        ("age = :age", {"age": 3}),
        ("age = $2", ["x", 3]),
        ("sector <> '?' AND age = ? AND region = %s", [3, "x"]),
    ],
)
def test_parameters_are_bound(sql, parameters):
    query = parse(f"SELECT COUNT(*) FROM people WHERE {sql}", CATALOG, parameters=parameters)
    assert '"people"."age" = 3' in query.question


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-3, "-3"),
        (2.5, "2.5"),
        (decimal.Decimal("1.25"), "1.25"),
        (None, "NULL"),
        (True, None),
        ("x", None),
        (datetime.date(2020, 1, 1), None),
    ],
)
def test_parameter_types(value, text):
    sql = "SELECT COUNT(*) FROM people WHERE age = $1"
    if text is None:
        with pytest.raises(RefusedError, match="compares"):
            parse(sql, CATALOG, parameters=[value])
    else:
        assert parse(sql, CATALOG, parameters=[value]).question.endswith(f"= {text}")


@pytest.mark.parametrize("value", [[1], {"a": 1}, float("nan"), float("inf"), 1e16, object(), b"x"])
def test_strange_parameter_is_refused(value):
    with pytest.raises(RefusedError):
        parse("SELECT COUNT(*) FROM people WHERE age = $1", CATALOG, parameters=[value])


def test_a_text_parameter_cannot_become_sql():
    hostile = "x' OR '1' = '1"
    sql = "SELECT COUNT(*) FROM people WHERE sector = $1"
    query = parse(sql, CATALOG, parameters=[hostile])
    assert query.question.endswith("= 'x'' OR ''1'' = ''1'")


# -- fuzzing by grammar: whatever is accepted runs, and reads nothing but the relation ------------
columns = st.sampled_from(
    ["age", "sector", "region", "born", "member", "salary", "bonus", "id", "name", "nope", "*"]
)
literals = st.one_of(
    st.integers(-(10**17), 10**17).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["'a'", "'2020-01-01'", "NULL", "TRUE", "''", "'%'", "DATE '2020-02-02'"]),
    st.text(max_size=5).map(lambda t: "'" + t.replace("'", "''") + "'"),
)
operators = st.sampled_from(
    ["=", "<>", "<", ">=", "+", "-", "*", "/", "%", "||", "AND", "OR", "LIKE", "IS", "IN", "~", "^"]
)
functions = st.sampled_from(
    ["ABS", "LOWER", "LENGTH", "COUNT", "SUM", "AVG", "MEDIAN", "ROUND", "pg_sleep", "VERSION",
     "COALESCE", "FLOOR", "EXTRACT", "CAST", "MAX", "STDDEV", "ARRAY_AGG", "read_csv"]
)  # fmt: skip
expressions = st.recursive(
    st.one_of(columns, literals),
    lambda inner: st.one_of(
        st.tuples(inner, operators, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(functions, inner).map(lambda t: f"{t[0]}({t[1]})"),
        inner.map(lambda t: f"NOT ({t})"),
        st.tuples(inner, inner, inner).map(lambda t: f"{t[0]} BETWEEN {t[1]} AND {t[2]}"),
        st.tuples(inner, inner, inner).map(
            lambda t: f"CASE WHEN {t[0]} THEN {t[1]} ELSE {t[2]} END"
        ),
        inner.map(lambda t: f"(SELECT {t} FROM people)"),
        st.tuples(inner, inner).map(lambda t: f"{t[0]} IN ({t[1]})"),
    ),
    max_leaves=6,
)
clauses = st.sampled_from(
    ["", " GROUP BY sector", " GROUP BY 1", " ORDER BY 1", " LIMIT 3", " HAVING COUNT(*) > 1",
     " FOR UPDATE", " UNION SELECT 1", "; DROP TABLE people", " --", " TABLESAMPLE SYSTEM (1)"]
)  # fmt: skip
statements = st.tuples(st.lists(expressions, min_size=1, max_size=3), expressions, clauses).map(
    lambda t: f"SELECT {', '.join(t[0])} FROM people WHERE {t[1]}{t[2]}"
)
counted = st.tuples(expressions, clauses).map(
    lambda t: f"SELECT COUNT(*) FROM people WHERE {t[0]}{t[1]}"
)


def _engine():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE people (id BIGINT, name TEXT, age BIGINT, sector TEXT, region TEXT, "
        'born DATE, member BOOLEAN, salary BIGINT, bonus DOUBLE, "regions.code" TEXT, '
        '"regions.label" TEXT)'
    )
    connection.execute(
        "INSERT INTO people VALUES (1,'a',0,'IT','x',DATE '2000-01-01',TRUE,0,0.5,'x','l'), "
        "(2,'b',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL), "
        "(3,'c',99,'','',DATE '1900-12-31',FALSE,1000000000000,-1e9,'','')"
    )
    return connection


ENGINE = _engine()


def _runs_if_accepted(sql):
    try:
        query = parse(sql, CATALOG)
    except RefusedError:
        return
    from sqlglot import exp

    assert parse(query.question, CATALOG).question == query.question
    source = exp.select("*").from_("people")
    tree = raw_query(query, source, {"n": exp.Count(this=exp.Star())})
    tables = {table.name for table in tree.find_all(exp.Table)}
    assert tables == {"people"}
    assert not {"id", "name"} & {c.name for c in tree.find_all(exp.Column)}
    # An error of the engine would depend on the data, and tell something of it.
    ENGINE.execute(meant(tree, "duckdb").sql(dialect="duckdb")).fetchall()


@settings(max_examples=300, deadline=None)
@given(statements)
def test_fuzzed_select_is_refused_or_runs(sql):
    _runs_if_accepted(sql)


@settings(max_examples=400, deadline=None)
@given(counted)
def test_fuzzed_condition_is_refused_or_runs(sql):
    _runs_if_accepted(sql)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_refused_without_a_crash(text):
    with pytest.raises(RefusedError):
        parse(text, CATALOG)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([s for s, _ in accepted()]), st.data())
def test_mutated_statement_never_crashes(sql, data):
    place = data.draw(st.integers(0, len(sql)))
    drop = data.draw(st.integers(0, 10))
    put = data.draw(st.sampled_from(["", "'", '"', ";", "--", "(", ")", "SELECT", "*", ",", "\\"]))
    _runs_if_accepted(sql[:place] + put + sql[place + drop :])
