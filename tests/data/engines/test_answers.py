"""Answers that could differ between engines and do not: sums, divisions, ties, not-a-number."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
import sqlglot

from discreet.data.engines import Engine, connect
from discreet.data.engines.cells import cells_of
from discreet.data.engines.changes import attach, recode
from discreet.data.hierarchy import Hierarchy
from discreet.errors import EngineError, InputError

ROWS = pa.table(
    {
        "g": ["a", "a", "b", None],
        "n": pa.array([7, 2**53 + 1, -3, None], pa.int64()),
        "small": pa.array([1, 2, None, 4], pa.int32()),
        "x": [0.5, None, 2.25, 1.0],
        "yes": [True, False, None, True],
    }
)


def ask(engine: Engine, text: str) -> pa.Table:
    return engine.aggregate(sqlglot.parse_one(text), {"t": engine.load(ROWS)})


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("SUM(n)", pa.int64()),
        ("SUM(small)", pa.int64()),
        ("COUNT(*)", pa.int64()),
        ("COUNT(DISTINCT g)", pa.int64()),
        ("AVG(small)", pa.float64()),
        ("SUM(x)", pa.float64()),
        ("SUM(n) / COUNT(*)", pa.float64()),
        ("SUM(small) / 2", pa.float64()),
        ("MIN(n)", pa.int64()),
        ("MAX(g)", pa.string()),
        ("SUM(CASE WHEN yes THEN 1 ELSE 0 END)", pa.int64()),
    ],
)
def test_values_and_types_are_those_of_duckdb(engine: Engine, duckdb_engine: Engine, value, kind):
    text = f"SELECT g, {value} AS v FROM t GROUP BY g ORDER BY g"
    here, there = ask(duckdb_engine, text), ask(engine, text)
    assert here.schema.field("v").type == kind
    assert there.schema == here.schema
    assert there.column("g").to_pylist() == here.column("g").to_pylist()
    for found, wanted in zip(there.column("v"), here.column("v"), strict=True):
        if kind == pa.float64() and wanted.is_valid:
            assert math.isclose(found.as_py(), wanted.as_py(), rel_tol=1e-9)
        else:
            assert found.as_py() == wanted.as_py()


def test_ties_name_the_same_contributors_everywhere(engine: Engine, duckdb_engine: Engine):
    rows = pa.table(
        {
            "g": list("aaaabbbbccb"),
            "u": ["é", "z", "Z", "a", "é", "Z", "q", "r", "z", "é", "r"],
            "v": [5.0, -5, 5, 5, 5, 5, -5, 2, 5, -5, 3],
        }
    )
    by = {"g": (Hierarchy.from_pairs([("T", ""), ("a", "T"), ("b", "T"), ("c", "T")]),)}
    options = {"measure": "v", "unit": "u", "identify": True, "largest": 2}
    found = cells_of(engine.load(rows), by, **options)
    wanted = cells_of(duckdb_engine.load(rows), by, **options)
    assert found.equals(wanted)
    again = cells_of(engine.load(rows.take(pa.array(range(10, -1, -1)))), by, **options)
    assert again.equals(wanted)
    assert wanted.filter(pa.compute.equal(wanted["g"], "a"))["top_1"].to_pylist() == [5.0]


def test_not_a_number_and_infinities_come_back(engine: Engine):
    values = [math.nan, math.inf, -math.inf, None, 0.0]
    found = engine.fetch(engine.load(pa.table({"i": range(5), "x": values}))).sort_by("i")
    shown = ["nan" if x is not None and math.isnan(x) else x for x in found["x"].to_pylist()]
    assert shown == ["nan", math.inf, -math.inf, None, 0.0]
    bad = engine.load(pa.table({"g": ["a"], "x": [math.nan]}))
    with pytest.raises(InputError) as caught:
        cells_of(bad, {"g": ()}, measure="x")
    assert caught.value.code == "not-finite"


def test_values_that_a_recode_leaves_are_spelt_alike(engine: Engine):
    rows = pa.table({"x": [1.0, 2.5, 1e20, None], "b": [True, False, True, None]})
    recoded = recode(
        engine.load(rows),
        {
            "x": pa.table({"from": [2.5], "to": ["two and a half"]}),
            "b": pa.table({"from": [False], "to": ["no"]}),
        },
    )
    found = engine.fetch(recoded)
    assert sorted(map(str, found["x"].to_pylist())) == sorted(
        ["1", "two and a half", "100000000000000000000", "None"]
    )
    assert sorted(map(str, found["b"].to_pylist())) == ["None", "True", "True", "no"]


def test_a_mask_with_a_row_twice_is_refused(engine: Engine):
    rows = engine.number(engine.load(pa.table({"a": [1, 2]})))
    for numbers in ([0, 0], [0, None]):
        mask = pa.table({"__row": pa.array(numbers, pa.int64()), "a": [5, 6]})
        with pytest.raises(InputError) as caught:
            attach(rows, mask)
        assert caught.value.code == "bad-attach"


def test_a_failed_store_keeps_the_old_table(engine: Engine):
    name = "kept_table"
    engine.store(engine.load(pa.table({"t": ["1", "x7secret"]})), name)
    bad = engine.relation(
        sqlglot.exp.select(sqlglot.parse_one("CAST(t AS INTEGER) AS n")).from_(
            engine.table(name).query.subquery("t")
        )
    )
    with pytest.raises(EngineError) as caught:
        engine.store(bad, name)
    assert "x7secret" not in str(caught.value)
    assert sorted(engine.fetch(engine.table(name))["t"].to_pylist()) == ["1", "x7secret"]
    engine.store(engine.load(pa.table({"t": ["new"]})), name)
    assert engine.fetch(engine.table(name))["t"].to_pylist() == ["new"]


def test_a_qualified_name_is_a_table_of_that_schema():
    with connect("duckdb://") as engine:
        engine.store(engine.load(pa.table({"a": [1]})), "main.people")
        assert engine.count(engine.table("people")) == 1
