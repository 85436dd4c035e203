"""What every engine offers, on every engine: the same answers from the real thing."""

from __future__ import annotations

import datetime
import math
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import sqlglot

from discreet.data.dataset import read
from discreet.data.engines import Engine
from discreet.data.engines.base import ROW
from discreet.data.engines.cells import cells_of
from discreet.data.engines.changes import attach, recode, sample
from discreet.errors import EngineError, InputError
from discreet.randomness import Randomness

HOSTILE = [
    '"; DROP TABLE x; --',
    "select",
    "Mixed Case",
    "it's `quoted` [twice] %s :p1 $1 ?",
    "новый столбец 表",
    "x" * 200,
    "x" * 199 + "y",
    "a.b",
    "Age",
    "age",
    " ",
    "\\",
]


def ordered(rows: pa.Table, *keys: str) -> list[dict]:
    return sorted(rows.to_pylist(), key=lambda row: tuple(str(row[key]) for key in keys))


def test_rows_come_back_as_they_went_in(engine: Engine):
    rows = pa.table(
        {
            "text": ["a", "", None, 'x,"\ny', "ü🙂"],
            "whole": [1, -(2**62), None, 2**53 + 1, 0],
            "real": [0.1, None, 1e-300, -1.7976931348623157e308, 1 / 3],
            "yes": [True, False, None, True, False],
            "day": [datetime.date(2020, 2, 29), None, datetime.date(1900, 1, 1)] * 1
            + [datetime.date(2000, 1, 1)] * 2,
            "time": [datetime.datetime(2020, 2, 29, 1, 2, 3, 456789), None]  # noqa: DTZ001
            + [datetime.datetime(1999, 12, 31)] * 3,  # noqa: DTZ001
        }
    )
    found = engine.fetch(engine.load(rows))
    assert found.to_pydict() == rows.to_pydict()
    assert found.schema.types == rows.schema.types


def test_hostile_names(engine: Engine):
    rows = pa.table({name: [place, place + 1] for place, name in enumerate(HOSTILE)})
    relation = engine.load(rows)
    assert engine.fetch(relation).to_pydict() == rows.to_pydict()
    for name in HOSTILE:
        found = engine.frequencies(relation, [name])
        assert found.column_names == [name, "count"]
        assert found.column("count").to_pylist() == [1, 1]
    cells = cells_of(relation, {HOSTILE[0]: (), HOSTILE[5]: ()}, measure=HOSTILE[6])
    assert cells.column_names[:2] == [HOSTILE[0], HOSTILE[5]]
    assert cells.column("count").to_pylist()[0] == 2
    changed = recode(relation, {HOSTILE[0]: pa.table({"from": [0], "to": [9]})})
    assert sorted(engine.fetch(changed).column(HOSTILE[0]).to_pylist()) == [1, 9]
    numbered = engine.number(changed)
    assert set(numbered.columns) == {*HOSTILE, ROW}


def test_hostile_values(engine: Engine):
    values = ["'; DROP TABLE x; --", "\\", "%s", "$1", ":p1", '"', "x" * 10_000]
    relation = engine.load(pa.table({"v": values}))
    for value in values:
        tree = sqlglot.condition("v = 'here'")
        tree.set("expression", sqlglot.exp.Literal.string(value))
        assert engine.fetch(engine.filter(relation, tree)).column("v").to_pylist() == [value]


def test_frequencies(engine: Engine):
    rows = pa.table({"a": ["x", "x", None], "b": [1, 1, 2], "w": [0.5, 0.25, 2.0]})
    found = ordered(engine.frequencies(engine.load(rows), ["a", "b"], weight="w"), "b")
    assert found == [
        {"a": "x", "b": 1, "count": 2, "weight": 0.75},
        {"a": None, "b": 2, "count": 1, "weight": 2.0},
    ]
    assert engine.count(engine.load(rows)) == 3


def test_a_column_called_count(engine: Engine):
    rows = engine.load(pa.table({"count": ["x", "x", "y"]}))
    found = engine.frequencies(rows, ["count"])
    assert sorted(zip(*found.columns, strict=True), key=str)
    assert sorted(x.as_py() for x in found.column(1)) == [1, 2]


def test_recode(engine: Engine):
    rows = engine.load(
        pa.table({"id": [1, 2, 3, 4], "age": [20, 31, None, 99], "s": ["a", "b", "c", None]})
    )
    maps = {
        "age": pa.table({"from": [20, 31, None], "to": ["20-29", "30-39", "?"]}),
        "s": pa.table({"from": ["a", "b"], "to": pa.array(["z", None], pa.string())}),
    }
    found = recode(rows, maps)
    assert found.schema.field("age").type == pa.string()
    assert ordered(engine.fetch(found), "id") == [
        {"id": 1, "age": "20-29", "s": "z"},
        {"id": 2, "age": "30-39", "s": None},
        {"id": 3, "age": "?", "s": "c"},
        {"id": 4, "age": "99", "s": None},
    ]
    with pytest.raises(InputError) as caught:
        recode(rows, {"s": pa.table({"from": ["a", "a"], "to": ["x", "y"]})})
    assert caught.value.code == "bad-recode"
    with pytest.raises(InputError):
        recode(rows, {"age": pa.table({"from": ["old"], "to": ["x"]})})
    with pytest.raises(InputError):
        recode(rows, {"age": pa.table({"a": [1], "b": [2]})})


def test_numbering_attaching_and_ranking(engine: Engine):
    size = 500
    values = Randomness.seeded(1).permutation(size)
    rows = engine.load(pa.table({"v": pa.array(values), "w": values % 7}))
    numbered = engine.number(rows)
    held = engine.fetch(numbered).sort_by(ROW)
    assert held.column(ROW).to_pylist() == list(range(size))
    assert held.column("v").to_pylist() == values.tolist()
    mask = pa.table(
        {ROW: np.arange(size)[::-1], "v": np.arange(size)[::-1] * 0.5, "new": ["n"] * size}
    )
    masked = attach(numbered, mask)
    found = engine.fetch(masked).sort_by(ROW)
    assert found.column_names == ["v", "w", ROW, "new"]
    assert found.column("v").to_pylist() == [place * 0.5 for place in range(size)]
    ranked = engine.fetch(engine.rank(numbered, "w")).sort_by(ROW).to_pylist()
    expected = sorted(range(size), key=lambda place: (values[place] % 7, place))
    for rank, place in enumerate(expected, start=1):
        assert ranked[place]["__rank"] == rank


def test_samples(engine: Engine):
    rows = engine.load(pa.table({"id": np.arange(100), "g": ["a"] * 70 + ["b"] * 25 + [None] * 5}))
    found = engine.fetch(sample(rows, size=20, rng=Randomness.seeded(1)))
    assert len(set(found.column("id").to_pylist())) == 20
    strata = engine.fetch(sample(rows, size=20, rng=Randomness.seeded(2), strata=["g"]))
    assert len(set(strata.column("id").to_pylist())) == 20
    groups = strata.column("g").to_pylist()
    assert (groups.count("a"), groups.count("b"), groups.count(None)) == (14, 5, 1)
    with pytest.raises(InputError) as caught:
        sample(rows, size=101, rng=Randomness.seeded(1))
    assert caught.value.code == "sample-too-large"


def test_parsed_queries(engine: Engine):
    rows = engine.load(
        pa.table({"Sector": ["IT", "IT", "Fin"], "salary": [10, 20, 40], "day": [None, "x", "y"]})
    )
    tree = sqlglot.parse_one(
        "SELECT sector, COUNT(*) AS n, SUM(salary) AS s, AVG(salary) AS m FROM people AS p "
        "WHERE p.SALARY < 100 AND sector IN ('IT', 'Fin') GROUP BY sector ORDER BY sector"
    )
    found = engine.aggregate(tree, {"people": rows}).to_pydict()
    assert list(found.values()) == [["Fin", "IT"], [1, 2], [40, 30], [40.0, 15.0]]
    tree = sqlglot.parse_one(
        "WITH big AS (SELECT * FROM people WHERE salary > 15) SELECT SUM(salary + 0.5) AS s FROM big"
    )
    assert engine.aggregate(tree, {"people": rows}).to_pydict() == {"s": [61.0]}
    for text in ("SELECT * FROM secrets", "SELECT * FROM information_schema.tables"):
        with pytest.raises(InputError) as caught:
            engine.aggregate(sqlglot.parse_one(text), {"people": rows})
        assert caught.value.code == "unknown-table"
    grouped = sqlglot.parse_one(
        "SELECT salary + 5 AS k, COUNT(*) AS n FROM people GROUP BY salary + 5"
    )
    assert engine.aggregate(grouped, {"people": rows}).num_rows == 3


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "arrow"])
def test_files_are_written_whole_and_read_again(engine: Engine, tmp_path, suffix):
    rows = pa.table(
        {
            "code": ["01", "02", None, 'a,"b\nc\td'],
            "v": [0.1, None, -5.0, 1e300],
            "n": [1, 2, None, 4],
            "day": [datetime.date(2020, 2, 29), None, datetime.date(1999, 1, 1)] * 1
            + [datetime.date(2000, 1, 1)],
        }
    )
    target = tmp_path / f"out.{suffix}"
    engine.write(engine.number(engine.load(rows)), target)
    again = read(target, engine=engine)
    assert again.arrow().sort_by("v").to_pydict() == rows.sort_by("v").to_pydict()
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_a_failed_write_leaves_what_was_there(engine: Engine, tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("before")
    rows = engine.load(pa.table({"t": ["1", "x7secret"], "z": [0, 1]}))
    bad = engine.relation(
        sqlglot.exp.select(sqlglot.parse_one("CAST(t AS INTEGER) AS n")).from_(
            rows.query.subquery("t")
        )
    )
    with pytest.raises(EngineError) as caught:
        engine.write(bad, target)
    # The driver's message quotes the value; ours must not, nor may what it was raised from.
    assert "x7secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "x7secret" not in str(caught.value.to_dict())
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_tables_of_the_engine(engine: Engine):
    name = f"t_{uuid.uuid4().hex}"
    rows = pa.table({"A b": ["x", "y"], "v": [1.5, math.pi]})
    engine.write(engine.load(rows), name, format="table")
    found = engine.table(name)
    assert found.columns == ("A b", "v")
    assert engine.fetch(found).sort_by("v").to_pydict() == rows.to_pydict()
    engine.write(
        recode(found, {"A b": pa.table({"from": ["x"], "to": ["z"]})}), name, format="table"
    )
    assert sorted(engine.fetch(engine.table(name)).column("A b").to_pylist()) == ["y", "z"]
    with pytest.raises(InputError) as caught:
        engine.table('no "such" table')
    assert caught.value.code == "unknown-table"


def test_materialized_rows_can_be_dropped(engine: Engine):
    rows = engine.materialize(engine.load(pa.table({"a": [1, 2]})))
    assert engine.count(rows) == 2
    engine.drop(rows)
    with pytest.raises(EngineError):
        engine.count(rows)


def test_broken_queries_are_engine_errors(engine: Engine):
    rows = engine.load(pa.table({"a": [1]}))
    tree = sqlglot.parse_one("SELECT nothing FROM t")
    with pytest.raises(EngineError) as caught:
        engine.aggregate(tree, {"t": rows})
    assert caught.value.code == "changed-table"


def test_duplicate_columns_are_refused(engine: Engine):
    rows = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(InputError) as caught:
        engine.load(rows)
    assert caught.value.code == "duplicate-columns"
