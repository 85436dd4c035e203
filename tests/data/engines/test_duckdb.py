"""What DuckDB alone does: files larger than memory, CSV as it was found, no way to Python names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import sqlglot

from discreet.data.dataset import read
from discreet.data.engines import connect
from discreet.errors import EngineError, InputError


@pytest.mark.slow
def test_parquet_larger_than_memory(tmp_path):
    size = 5_000_000
    rng = np.random.default_rng(1)
    rows = pa.table(
        {
            "a": rng.integers(0, 50, size),
            "b": rng.integers(0, 20, size),
            "unit": rng.permutation(size),
            "x": rng.random(size),
        }
    )
    path = tmp_path / "large.parquet"
    pyarrow.parquet.write_table(rows, path)
    limit = rows.nbytes // 4
    options = {"memory_limit": f"{limit // 1000}KB", "temp_directory": str(tmp_path / "spill")}
    options["threads"] = "1"
    with connect("duckdb://", **options) as engine:
        found = read(path, unit="unit", engine=engine).cells(["a", "b"], measure="x")
    assert found.column("count").to_pylist()[0] == size
    assert found.column("sum").to_pylist()[0] == pytest.approx(rows.column("x").to_numpy().sum())
    assert found.num_rows == 51 * 21


def test_python_variables_are_not_tables():
    people = pa.table({"a": [1]})
    assert people.num_rows == 1
    with connect("duckdb://") as engine, pytest.raises(EngineError):
        engine.fetch(sqlglot.parse_one("SELECT * FROM people"))


def test_names_that_differ_in_case_only(tmp_path):
    rows = pa.table({"Age": [1], "age": [2], "AGE": [3]})
    path = tmp_path / "case.parquet"
    pyarrow.parquet.write_table(rows, path)
    with connect("duckdb://") as engine:
        assert read(path, engine=engine).arrow().to_pydict() == rows.to_pydict()
        assert read(rows, engine=engine).select(["AGE"]).arrow().to_pydict() == {"AGE": [3]}


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_damaged_files(tmp_path, kind):
    path = tmp_path / f"bad.{kind}"
    path.write_bytes(b"this is nothing of the kind")
    with pytest.raises(InputError) as caught:
        read(path)
    assert caught.value.code == "bad-file"


def test_values_never_become_part_of_the_statement():
    with connect("duckdb://") as engine:
        tree = sqlglot.parse_one(
            "SELECT a + 1 AS b FROM t WHERE c = 'secret' AND d IN (1, 2.5, 'x')"
        )
        statement, values = engine.render(tree)
    assert "secret" not in statement
    assert values == [1, "secret", 2.5, "x"]


def test_a_number_that_is_none_is_refused():
    smuggled = sqlglot.exp.Literal(this="1; DROP TABLE t", is_string=False)
    with connect("duckdb://") as engine, pytest.raises(InputError):
        engine.render(sqlglot.exp.select(smuggled))
    with connect("duckdb://") as engine, pytest.raises(InputError):
        engine.render(
            sqlglot.exp.Select(
                expressions=[sqlglot.exp.Star()], limit=sqlglot.exp.Limit(expression=smuggled)
            )
        )
