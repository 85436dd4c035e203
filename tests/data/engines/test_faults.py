"""PostgreSQL that fails in all the ways a real server does: what callers see, and what stays."""

from __future__ import annotations

import contextlib
import resource
import secrets
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import psycopg
import pyarrow as pa
import pytest
from sqlglot import exp
from tests.servers import kill_sessions

import discreet as dc
from discreet.data.engines import connect, postgres_session, sql
from discreet.data.engines.postgres import Postgres
from discreet.errors import EngineError, InputError

ROLES = {"region": "quasi", "age": "quasi", "salary": "confidential"}


@pytest.fixture
def database(postgres_database: str) -> str:
    """A database of the test's own with a table of people."""
    with psycopg.connect(postgres_database, autocommit=True) as server:
        server.execute(
            "CREATE TABLE people AS SELECT i AS number, 'r' || i % 3 AS region, i % 7 AS age, "
            "1000 + i AS salary FROM generate_series(1, 200) i"
        )
    return postgres_database


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as a full disk or a quota would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# -- lost connections --------------------------------------------------------------------------------
def test_a_dataset_goes_on_when_its_session_is_killed(database: str, tmp_path: Path):
    people = dc.read(f"{database}#people", roles=ROLES, rest="identifier")
    before = people.cells(["region"], measure="salary")
    works = {
        "cells": lambda: people.cells(["region"], measure="salary").equals(before),
        "count": lambda: people.engine.count(people.relation) == 200,
        "frame": lambda: len(people.frame) == 200,
        "frequencies": lambda: people.frequencies(["age"]).num_rows == 7,
        "write": lambda: people.write(tmp_path / "out.parquet").exists(),
        "recode": lambda: len(people.recode({"region": {"r0": "x"}}).frame) == 200,
        "store": lambda: people.engine.store(people.relation, "copy") is None,
        "sample": lambda: len(people.sample(10).frame) == 10,
        "table": lambda: people.engine.table("people").columns == people.columns,
    }
    for name, work in works.items():
        assert kill_sessions(database) >= 1
        assert work(), name
    people.engine.close()


def test_rows_kept_for_a_lost_session_are_named_as_lost(database: str):
    people = dc.read(f"{database}#people", roles=ROLES, rest="identifier").materialize()
    loaded = dc.read(pd.DataFrame({"a": [1, 2]}), engine=people.engine)
    assert len(loaded.frame) == 2
    kill_sessions(database)
    for held in (people, loaded):
        with pytest.raises(EngineError, match="rows that were kept for it are gone") as caught:
            held.frame  # noqa: B018 - reading it is the work
        assert (caught.value.code, caught.value.facts["kept"]) == ("connection-lost", True)
        held.engine.drop(held.relation)  # nothing is left to be dropped
    again = dc.read(f"{database}#people", engine=people.engine)
    assert len(again) == 200
    people.engine.close()


def test_a_table_is_replaced_once_or_not_at_all(database: str):
    """A session that ends while a table is written leaves the old one."""
    engine = connect(database)
    pause = sql.call("pg_sleep", sql.number(60))
    slow = sql.select(
        sql.subquery(engine.table("people").query, "t"),
        [sql.column("number"), sql.alias(exp.cast(pause, "text"), "s")],
    )
    relation = dc.data.engines.Relation(
        engine, slow, pa.schema([("number", pa.int32()), ("s", pa.string())])
    )
    failed: list[EngineError] = []

    def store() -> None:
        try:
            engine.store(relation, "people")
        except EngineError as error:
            failed.append(error)

    writer = threading.Thread(target=store)
    writer.start()
    end = time.monotonic() + 60
    with psycopg.connect(database, autocommit=True) as server:
        while (
            time.monotonic() < end
            and not server.execute(
                "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'CREATE TABLE%' AND state = 'active'"
            ).fetchone()
        ):
            time.sleep(0.02)
    kill_sessions(database)
    writer.join(60)
    assert [error.code for error in failed] == ["connection-lost"]
    assert engine.count(engine.table("people")) == 200
    with psycopg.connect(database) as server:
        tables = server.execute("SELECT relname FROM pg_class WHERE relname ~ '^discreet'")
        assert tables.fetchall() == []
    engine.close()


def test_a_restarted_server_is_waited_for(tmp_path: Path, own_postgres):
    with psycopg.connect(own_postgres.url, autocommit=True) as server:
        server.execute("CREATE TABLE t AS SELECT i FROM generate_series(1, 5) i")
    rows = dc.read(f"{own_postgres.url}#t")
    own_postgres.stop(signal.SIGQUIT)
    starting = threading.Thread(target=own_postgres.start)
    starting.start()
    assert rows.engine.count(rows.relation) == 5
    starting.join(120)
    rows.engine.close()


def test_a_server_that_stays_away_is_said_to(tmp_path: Path, own_postgres, monkeypatch):
    monkeypatch.setattr(postgres_session, "PATIENCE", 0.3)
    with psycopg.connect(own_postgres.url, autocommit=True) as server:
        server.execute("CREATE TABLE t AS SELECT i FROM generate_series(1, 5) i")
    rows = dc.read(f"{own_postgres.url}#t")
    own_postgres.stop()
    for work in (
        lambda: rows.frame,
        lambda: rows.cells(["i"]),
        lambda: rows.write(tmp_path / "x.csv"),
    ):
        with pytest.raises(EngineError, match="cannot be reached") as caught:
            work()
        assert (caught.value.code, caught.value.hint is not None) == ("connection-lost", True)
    assert list(tmp_path.glob("*.csv")) == list(tmp_path.glob(".x*")) == []
    own_postgres.start()
    assert len(rows.frame) == 5
    rows.engine.close()


class Pipe:
    """A road to a server that can be closed for a while, or cut."""

    def __init__(self, url: str) -> None:
        self._port = psycopg.conninfo.conninfo_to_dict(url)["port"]
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = url.replace(f":{self._port}/", f":{self._listener.getsockname()[1]}/")
        self.open = threading.Event()
        self.open.set()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", int(str(self._port))))
                self._sockets += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self.open.wait(60)
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        for end in self._sockets:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        self.cut()
        for end in self._sockets:
            end.close()


def test_a_pause_of_the_network_is_waited_for_and_a_cut_is_mended(database: str):
    pipe = Pipe(database)
    people = dc.read(f"{pipe.url}#people", roles=ROLES, rest="identifier")
    pipe.open.clear()
    found: list[int] = []
    asking = threading.Thread(target=lambda: found.append(len(people.frame)))
    asking.start()
    asking.join(0.5)
    assert asking.is_alive()
    pipe.open.set()
    asking.join(60)
    assert found == [200]
    pipe.cut()
    assert len(people.frame) == 200
    people.engine.close()
    pipe.close()


def test_addresses_may_say_how_long_silence_is_borne(database: str):
    engine = connect(f"{database}?keepalives_idle=7")
    assert isinstance(engine, Postgres)
    said = engine._session._connection.info.get_parameters()
    assert (said["keepalives_idle"], said["tcp_user_timeout"]) == ("7", "120000")
    engine.close()


# -- rights, columns, disks ----------------------------------------------------------------------------
@pytest.fixture
def reader(database: str) -> Iterator[str]:
    """The address of somebody who may read two columns."""
    name = f"reader_{secrets.token_hex(4)}"
    with psycopg.connect(database, autocommit=True) as server:
        server.execute(f"CREATE ROLE {name} LOGIN")
        server.execute(f"GRANT SELECT (region, salary) ON people TO {name}")
        yield database.replace("postgres@", f"{name}@")
        server.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_a_missing_right_is_explained(reader: str):
    with pytest.raises(EngineError, match="permission denied for table people") as caught:
        dc.read(f"{reader}#people")
    assert caught.value.code == "no-right"
    assert "columns=" in str(caught.value.hint)


def test_rights_to_some_columns_suffice(reader: str):
    people = dc.read(
        f"{reader}#people",
        columns=["region", "salary"],
        roles={"region": "quasi", "salary": "confidential"},
    )
    assert people.columns == ("region", "salary")
    assert people.cells(["region"], measure="salary").num_rows == 4
    assert dc.describe(people).rows()[1]
    with dc.Gateway(people, guard=dc.Restriction(k=3)) as gate:
        assert gate.ask("SELECT SUM(salary) FROM people").kind == "exact"
    with pytest.raises(EngineError, match="permission denied") as caught:
        dc.read(f"{reader}#people", columns=["age"])
    assert caught.value.code == "no-right"
    people.engine.close()


def test_revoked_rights_and_renamed_columns_are_explained(database: str, reader: str):
    people = dc.read(
        f"{reader}#people",
        columns=["region", "salary"],
        roles={"region": "quasi", "salary": "confidential"},
    )
    works = (lambda: people.frame, lambda: people.cells(["region"]), people.numbered)
    with psycopg.connect(database, autocommit=True) as server:
        server.execute("REVOKE SELECT (salary) ON people FROM PUBLIC")
        server.execute(f"REVOKE SELECT (salary, region) ON people FROM {_user(reader)}")
        for work in works:
            with pytest.raises(EngineError) as caught:
                work()
            assert caught.value.code == "no-right"
        server.execute(f"GRANT SELECT ON people TO {_user(reader)}")
        server.execute("ALTER TABLE people RENAME region TO area")
        for work in works:
            with pytest.raises(EngineError, match="region") as caught:
                work()
            assert caught.value.code == "changed-table"
        server.execute("ALTER TABLE people RENAME area TO region")
    assert len(people.frame) == 200
    people.engine.close()


def _user(url: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(url)["user"])


def test_a_full_folder_for_temporary_files_is_explained(database: str):
    people = dc.read(f"{database}#people")
    with largest_file(1000), pytest.raises(EngineError, match="temporary files") as caught:
        people.frame  # noqa: B018 - reading it is the work
    assert (caught.value.code, "TMPDIR" in str(caught.value.hint)) == ("disk-full", True)
    assert len(people.frame) == 200  # the session is as good as before
    people.engine.close()


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_a_full_target_leaves_nothing_behind(tmp_path: Path, suffix: str):
    rows = dc.read(pa.table({"a": list(range(50_000))}))
    target = tmp_path / f"out.{suffix}"
    target.write_text("the old one")
    with largest_file(20_000), pytest.raises(EngineError) as caught:
        rows.write(target)
    assert caught.value.code == "disk-full"
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert target.read_text() == "the old one"


def test_a_full_disk_of_the_server_is_explained(database: str):
    engine = connect(database)
    with psycopg.connect(database, autocommit=True) as server:
        name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
        server.execute(f"ALTER DATABASE {name} SET temp_file_limit = '64kB'")
        server.execute(f"ALTER DATABASE {name} SET work_mem = '64kB'")
    engine.close()
    engine = connect(database)
    numbers = sqlglot_numbers()
    with pytest.raises(EngineError) as caught:
        engine.fetch(numbers)
    assert caught.value.code == "disk-full"
    assert engine.count(engine.table("people")) == 200
    engine.close()


def sqlglot_numbers() -> exp.Select:
    """Return a sort of many rows, which the server does on its disk."""
    series = exp.Table(this=sql.call("generate_series", sql.number(1), sql.number(200_000)))
    ordered = exp.select("i").from_(exp.alias_(series, "t", table=["i"])).order_by("i DESC")
    return exp.select(exp.alias_(exp.Max(this=exp.column("i")), "m")).from_(
        ordered.limit(150_000).subquery("t")
    )


def test_values_that_arrow_has_no_room_for_are_not_quoted(database: str):
    with psycopg.connect(database, autocommit=True) as server:
        server.execute("CREATE TABLE odd AS SELECT 'infinity'::date AS born, 1 AS n")
    rows = dc.read(f"{database}#odd", roles={"n": "quasi"})
    with pytest.raises(EngineError, match="'born'") as caught:
        rows.frame  # noqa: B018 - reading it is the work
    assert (caught.value.code, caught.value.column) == ("unreadable-value", "born")
    assert "infinity" not in str(caught.value)
    rows.engine.close()


def test_a_value_that_breaks_a_stream_of_rows_is_not_quoted(tmp_path: Path):
    """DuckDB's rows come through Arrow, whose errors are the system's and quoted the value."""
    rows = dc.read(pa.table({"t": ["1"] * 300_000 + ["secret"]}))
    query = sql.select(
        sql.subquery(rows.relation.query, "t"), [sql.alias(sql.bigint(sql.column("t")), "n")]
    )
    broken = dc.data.engines.Relation(rows.engine, query, pa.schema([("n", pa.int64())]))
    with pytest.raises(EngineError) as caught:
        rows.engine.write(broken, tmp_path / "out.csv")
    assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_unknown_tables_are_the_callers_mistake(database: str):
    for name in ("nobody", "nowhere.people"):
        with pytest.raises(InputError) as caught:
            dc.read(f"{database}#{name}")
        assert caught.value.code == "unknown-table"
