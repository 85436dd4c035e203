"""What clients write over records is computed as PostgreSQL would, and fails on no value."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from sqlglot import exp

import discreet as dc
from discreet.data.sql import Catalog, Field, parse
from discreet.data.sql.total import total
from discreet.errors import RefusedError

CATALOG = Catalog(
    "people",
    (
        Field("a", "integer"),
        Field("x", "number"),
        Field("s", "text"),
        Field("d", "date"),
        Field("b", "boolean"),
    ),
)


def people(dates=None):
    table = pa.table(
        {
            "a": [-7, -3, 0, 3, 7, 8] * 2,
            "d": dates or [datetime.date(2000, 1, n + 1) for n in range(12)],
            "salary": [1000 * n for n in range(12)],
        }
    )
    return dc.read(table, roles={"a": "quasi", "d": "quasi", "salary": "confidential"}, name="p")


def counted(data, sql):
    with dc.Gateway(data, guard=dc.Restriction(k=2)) as gate:
        answer = gate.ask(sql)
    assert answer.kind == "exact", answer.reason
    return answer.table


@pytest.mark.parametrize(
    ("expression", "truth"),
    [
        ("a / 2", lambda a: int(a / 2)),
        ("(a / 2 + 3) / 2", lambda a: int((int(a / 2) + 3) / 2)),
        ("a / 2 / 2", lambda a: int(int(a / 2) / 2)),
        ("a / -2", lambda a: int(a / -2)),
        ("TRUNC(a / 2.0)", lambda a: int(a / 2)),
        ("CAST(a + 1 AS text)", lambda a: str(a + 1)),
        ("(a / 2) || ''", lambda a: str(int(a / 2))),
        ("CAST(a > 0 AS integer)", lambda a: int(a > 0)),
    ],
)
def test_whole_numbers_are_divided_and_written_as_in_postgres(expression, truth):
    table = counted(people(), f"SELECT {expression} AS v, COUNT(*) AS n FROM p GROUP BY 1")
    found = dict(zip(table.column("v").to_pylist(), table.column("n").to_pylist(), strict=True))
    wanted: dict[object, int] = {}
    for a in [-7, -3, 0, 3, 7, 8] * 2:
        wanted[truth(a)] = wanted.get(truth(a), 0) + 1
    assert found == wanted
    assert all(type(key) in (int, str) for key in found)


def test_camouflage_answers_sums_of_whole_quotients():
    with dc.Gateway(people(), guard=dc.Camouflage(bound=0.3, minimum=500)) as gate:
        low, high = gate.ask("SELECT SUM(salary / 12) FROM p").frame.to_pylist()[0].values()
    assert low <= sum(1000 * n // 12 for n in range(12)) <= high


@pytest.mark.parametrize("shift", ["+ INTERVAL '1000 years'", "- INTERVAL '1000 years'"])
def test_times_stay_within_the_years_that_clients_read(shift):
    ends = [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(2000, 1, 1)] * 4
    table = counted(people(ends), f"SELECT d {shift} AS v, COUNT(*) FROM p GROUP BY 1")
    years = sorted(value.year for value in table.column("v").to_pylist())
    assert years == ([1001, 3000, 9999] if "+" in shift else [1, 1000, 8999])


@pytest.mark.parametrize("function", ["FLOOR", "CEIL", "TRUNC"])
def test_fractions_are_cut_off_without_leaving_64_bits(function):
    # Spark takes them to 64 bits and fails beyond: one bit about the value.
    tree = total(parse(f"SELECT SUM({function}(x)) FROM people", CATALOG).measures[0].argument)
    for step in tree.find_all(exp.Floor, exp.Ceil):
        case = step.find_ancestor(exp.Case)
        assert "ABS" in case.args["ifs"][0].this.sql()


def nested(form, times, inner="a"):
    for _ in range(times):
        inner = form.format(inner)
    return inner


def through_sub_selects(form, times):
    sql = "SELECT a AS x0 FROM people"
    for n in range(times):
        sql = f"SELECT {form.format(f'x{n}')} AS x{n + 1} FROM ({sql}) AS t{n}"
    return f"SELECT SUM(x{times}) FROM ({sql}) AS t"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT SUM({nested('({} / 2 + 1)', 20)}) FROM people",
        f"SELECT SUM({nested('({} % 7 + 1)', 20)}) FROM people",
        f"SELECT SUM({nested('FLOOR({} + 0.5)', 20)}) FROM people",
        f"SELECT SUM({nested('NULLIF({}, 3)', 20)}) FROM people",
        f"SELECT SUM({nested('WIDTH_BUCKET({}, 0, 10, 5)', 15)}) FROM people",
        through_sub_selects("CASE WHEN {0} > 1 THEN {0} ELSE {0} + 1 END", 15),
        through_sub_selects("NULLIF({0}, {0} / 2)", 15),
        f"SELECT COUNT(*) FROM people WHERE {' || '.join(['s'] * 100)} = 'a'",
    ],
)
def test_what_multiplies_with_each_level_is_refused_soon(sql):
    with pytest.raises(RefusedError) as caught:
        parse(sql, CATALOG)
    assert caught.value.code == "too-complex"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) FROM people WHERE {nested('(CAST({} AS int) = 1)', 15, 'b')}",
        f"SELECT SUM({nested('({} / 2 + 1)', 3)}) FROM people",
        f"SELECT SUM({nested('NULLIF({}, 3)', 3)}) FROM people",
        f"SELECT COUNT(*) FROM people WHERE {nested('{} + INTERVAL 1 DAY', 3, 'd')} > '2000-01-01'",
    ],
)
def test_what_is_accepted_stays_small_and_can_be_read_again(sql):
    query = parse(sql.replace("INTERVAL 1 DAY", "INTERVAL '1 day'"), CATALOG)
    for tree in (*(m.argument for m in query.measures), query.predicate):
        assert tree is None or sum(1 for _ in total(tree).walk()) < 5000
    again = parse(query.question, CATALOG)
    assert again.question == query.question


def test_a_question_whose_own_text_is_too_long_is_refused():
    # The history could not be read again.
    long = " OR ".join(f"a={n}" for n in range(2500))
    with pytest.raises(RefusedError) as caught:
        parse(f"SELECT COUNT(*) FROM people WHERE {long}", CATALOG)
    assert caught.value.code == "too-complex"
