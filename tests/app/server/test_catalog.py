"""The catalog: tables and columns are told, nothing else is reached."""

import pyarrow as pa
import pytest

from discreet.app.server.postgres.catalog import Catalog
from discreet.app.server.postgres.sqlstates import sqlstate_of
from discreet.errors import InputError


@pytest.fixture(scope="module")
def catalog():
    made = Catalog({"people": pa.schema([("sector", pa.string()), ("age", pa.int64())])})
    yield made
    made.close()


def test_tables_and_columns(catalog):
    tables = catalog.answer("SELECT table_name FROM information_schema.tables")
    assert tables["table_name"].to_pylist() == ["people"]
    columns = catalog.answer(
        "SELECT column_name FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position",
        ("people",),
    )
    assert columns["column_name"].to_pylist() == ["sector", "age"]
    classes = catalog.answer(
        "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r'"
    )
    assert classes["relname"].to_pylist() == ["people"]


def test_clocks_and_whole_numbers_as_in_postgresql(catalog):
    user, now, today, half, negative, exact = next(
        iter(
            catalog.answer(
                "SELECT current_user AS a, now() AS b, current_date AS c, 7/2 AS d, -7/2 AS e, 7/2.0 AS f",
                user="ana",
            ).to_pylist()
        )
    ).values()
    assert (user, half, negative, exact) == ("ana", 3, -3, 3.5)
    assert now.date() == today
    for sql in ("SELECT now()", "SELECT current_date", "SELECT current_timestamp"):
        assert catalog.answer(sql).num_rows == 1


@pytest.mark.parametrize(
    "sql", ["SELECT 1/0", "SELECT 1 % 0 AS x", "SELECT CAST('x' AS int)", "SELECT 2147483647 + 1"]
)
def test_values_that_cannot_be_computed_are_errors_and_not_empty(catalog, sql):
    with pytest.raises(InputError) as failure:
        catalog.answer(sql)
    assert failure.value.code == "no-value"
    assert sqlstate_of(failure.value) == "22000"


def test_what_it_cannot_answer_is_empty_with_the_columns_asked_for(catalog):
    found = catalog.answer(
        "SELECT typname AS name, oid::regtype::text AS regtype FROM pg_type t WHERE t.oid = 'hstore'::regtype"
    )
    assert found.num_rows == 0
    assert found.column_names == ["name", "regtype"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM people",
        "SELECT * FROM pg_catalog.pg_class, people",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM pg_class, read_text('/etc/passwd')",
        "SELECT (SELECT content FROM read_text('/etc/passwd')) FROM pg_class",
        "WITH pg_x AS (SELECT * FROM people) SELECT * FROM pg_x",
        "DROP TABLE pg_class",
        "SELECT repeat('x', 1000000000)",
        "SELECT getenv('HOME')",
        "SELECT count(*) FROM range(1000000000000)",
        "ATTACH 'x.db'",
    ],
)
def test_anything_else_is_not_its_business(catalog, sql):
    assert catalog.answer(sql) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS one FROM pg_class" + " JOIN pg_class" * 40,
        "SELECT relname FROM pg_class WHERE " + "f( t LIMIT " * 20 + "1",
    ],
)
def test_what_the_parser_would_try_for_ages_never_reaches_it(catalog, sql):
    found = catalog.answer(sql)
    assert found is None or found.num_rows == 0
