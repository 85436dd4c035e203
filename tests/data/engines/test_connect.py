"""Choosing an engine by URL."""

from __future__ import annotations

import pyarrow as pa
import pytest

from discreet.data.engines import connect
from discreet.errors import EngineError, InputError


def test_unknown_engines_are_told():
    for url in ("mysql://x", "people.csv", "", "duck://"):
        with pytest.raises(InputError) as caught:
            connect(url)
        assert caught.value.code == "unknown-engine"


def test_a_file_keeps_its_tables(tmp_path):
    url = f"duckdb:///{tmp_path / 'kept.db'}"
    with connect(url) as engine:
        engine.write(engine.load(pa.table({"a": [1, 2]})), "t", format="table")
    assert (tmp_path / "kept.db").exists()
    with connect(url) as engine:
        assert engine.count(engine.table("t")) == 2
        assert engine.count(engine.table("main.t")) == 2


def test_three_slashes_are_relative_to_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    connect("duckdb:///here.db").close()
    assert (tmp_path / "here.db").exists()


def test_a_server_that_is_not_there():
    with pytest.raises(EngineError) as caught:
        connect("postgresql://nobody:hunter2@127.0.0.1:1/none", connect_timeout=2)
    assert caught.value.code == "cannot-connect"
    assert "hunter2" not in str(caught.value)


def test_a_missing_driver_names_its_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "discreet.data.engines.postgres", raising=False)
    with pytest.raises(InputError) as caught:
        connect("postgresql://localhost/x")
    assert caught.value.code == "missing-extra"
    assert "discreet[postgres]" in str(caught.value.hint)
    monkeypatch.delitem(sys.modules, "discreet.data.engines.postgres", raising=False)
