"""Kinds of parameters, from what they stand beside."""

import pytest
from tests.queries.corpus import CATALOG

from discreet.data.sql import parse
from discreet.data.sql.parameters import parameter_kinds
from discreet.errors import RefusedError


@pytest.mark.parametrize(
    ("where", "kinds"),
    [
        ("age < $1", ("integer",)),
        ("$1 > age", ("integer",)),
        ("age BETWEEN $1 AND $2", ("integer", "integer")),
        ("sector = $1 AND bonus > $2", ("text", "number")),
        ("sector IN ($1, $2)", ("text", "text")),
        ("sector = ANY($1)", ("text[]",)),
        ("age <> ALL($1)", ("integer[]",)),
        ("born >= $1", ("date",)),
        ("member = $1", ("boolean",)),
        ("born > $1::timestamp", ("timestamp",)),
        ("age + $1 > 3", ("integer",)),
        ("lower(sector) = $1", ("text",)),
        ("sector LIKE $1", ("text",)),
        ("extract(year FROM born) = $1", ("integer",)),
        ("nonsense $1 (", ("text",)),
    ],
)
def test_kinds(where, kinds):
    sql = f"SELECT COUNT(*) FROM people WHERE {where}"
    assert parameter_kinds(sql, CATALOG, len(kinds)) == kinds


@pytest.mark.parametrize(
    ("where", "values", "question"),
    [
        ("age < $1", ["40"], '"people"."age" < 40'),
        ("age = ANY($1)", [[1, 2]], '"people"."age" IN (1, 2)'),
        ("age = ANY($1)", ["{1,2}"], "\"people\".\"age\" IN (1, 2)"),
        ("sector = ANY($1)", ['{a,"b \\"c",NULL}'], "\"people\".\"sector\" IN ('a', 'b \"c', NULL)"),
        ("sector <> ALL($1)", [[]], "FALSE"),
        ("member = $1", ["t"], '"people"."member" = TRUE'),
        ("born > $1", ["2020-01-01T00:00:00Z"], "CAST('2020-01-01 00:00:00' AS TIMESTAMP)"),
    ],
)  # fmt: skip
def test_values_are_read_as_the_column_needs(where, values, question):
    sql = f"SELECT COUNT(*) FROM people WHERE {where}"
    assert question in parse(sql, CATALOG, parameters=values).question


@pytest.mark.parametrize(
    ("where", "values"),
    [
        ("age = ANY($1)", [3]),
        ("age < $1", ["x"]),
        ("age = ANY('{{1},{2}}')", []),
        ("age > $0", [1]),
    ],
)
def test_what_does_not_fit_is_refused(where, values):
    with pytest.raises(RefusedError):
        parse(f"SELECT COUNT(*) FROM people WHERE {where}", CATALOG, parameters=values)
