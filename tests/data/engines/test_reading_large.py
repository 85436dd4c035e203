"""Large CSV files: how far the reading is, and too little memory."""

from __future__ import annotations

import pytest

from discreet.data.dataset import read
from discreet.data.engines import duckdb as engine
from discreet.data.engines.base import connect
from discreet.errors import EngineError
from discreet.progress import watched


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    place = tmp_path_factory.mktemp("large") / "large.csv"
    place.write_text("id;age\n" + "".join(f"{n};{n % 97}\n" for n in range(400_000)))
    return place


def test_the_reading_of_a_file_tells_how_far_it_is(large, monkeypatch):
    monkeypatch.setattr(engine, "_LOOK", 0.001)
    told = []
    with watched(lambda stage, done, total: told.append((stage, done, total))):
        assert len(read(large)) == 400_000
    assert {(stage, total) for stage, _, total in told} == {("per cent of the file read", 100)}
    shares = [done for _, done, _ in told]
    assert shares == sorted(shares)
    assert 0 < shares[0] <= shares[-1] <= 100


def test_too_little_memory_is_an_error_with_a_hint(large, tmp_path):
    small = connect("duckdb://", memory_limit="2MB", temp_directory=str(tmp_path))
    with pytest.raises(EngineError) as failed:
        read(large, engine=small)
    assert failed.value.code == "out-of-memory"
    assert "memory_limit" in failed.value.hint
