"""A statement in the engine is ended from another thread, and only that one."""

import threading

import pytest
from sqlglot import parse_one

from discreet.data.engines.base import connect
from discreet.data.engines.interruption import Interruption, check, interruptible
from discreet.errors import EngineError

ENDLESS = {
    "duckdb": "SELECT SUM(SQRT(a.range * b.range)) AS x FROM RANGE(10000000) AS a, RANGE(1000000) AS b",
    "postgres": "SELECT SUM(SQRT(a * b)) AS x FROM GENERATE_SERIES(1, 10000000) AS a, GENERATE_SERIES(1, 1000000) AS b",
}


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def engine(request):
    url = "duckdb://" if request.param == "duckdb" else request.getfixturevalue("postgres_url")
    with connect(url) as opened:
        yield opened


def test_what_runs_is_ended_and_the_engine_goes_on(engine):
    endless = parse_one(ENDLESS[engine.name], dialect=engine.name)
    work, errors = Interruption(), []

    def run():
        try:
            with interruptible(work):
                engine.fetch(endless)
        except EngineError as error:
            errors.append(error.code)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():  # also where it had not begun at the first call
        thread.join(0.3)
        work.interrupt()
    assert errors == ["interrupted"]
    one = parse_one("SELECT 1 AS x", dialect=engine.name)
    assert engine.fetch(one).column(0).to_pylist() == [1]


def test_what_was_ended_begins_nothing_more(engine):
    work = Interruption()
    work.interrupt()
    one = parse_one("SELECT 1 AS x", dialect=engine.name)
    with interruptible(work):
        with pytest.raises(EngineError, match="ended"):
            engine.fetch(one)
        with pytest.raises(EngineError, match="ended"):
            check()
    check()
    assert engine.fetch(one).column(0).to_pylist() == [1]
