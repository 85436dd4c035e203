"""A real server of PostgreSQL's protocol on loopback, in a thread of its own."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pyarrow as pa
import pytest

from discreet.app.server.certificate import make_certificate
from discreet.app.server.desk import Reply, User
from discreet.app.server.postgres.catalog import Catalog
from discreet.app.server.postgres.scram import make_verifier
from discreet.app.server.postgres.server import PostgresServer, server_binding, tls_context
from discreet.app.server.postgres.session_statements import BUDGET
from discreet.app.server.postgres.setting import Setting
from discreet.errors import InputError, RefusedError


class Fixed:
    """Answers without data: what the protocol does is all that is tested here."""

    def __init__(self):
        self.seen = []
        self.catalog = Catalog({"people": TABLE.schema})

    def ask(self, sql, user, parameters=(), *, errors=False):
        told = self.catalog.answer(sql, parameters)
        if told is not None:
            return Reply(told, "session")
        self.seen.append((sql, user.name, parameters))
        if "refuse" in sql:
            raise RefusedError("fewer than k records", code="query-set-size", hint="ask for more")
        if "mistake" in sql:
            raise InputError("there is no column 'mistake'", code="unknown-column")
        if "crash" in sql:
            raise RuntimeError("secret record 31415")
        if "sleep" in sql:
            time.sleep(3)
        return Reply(TABLE, "exact", notices=("exact answer",))

    def recall(self, sql, user, parameters=(), *, errors=False):
        return None

    def parameter_kinds(self, sql, user, count):
        return ("text",) * count

    def budget(self, user):
        return BUDGET.empty_table()

    def describe(self, sql, user, parameters=0, *, errors=False):
        told = self.catalog.answer(sql, (None,) * parameters)
        return TABLE.schema if told is None else told.schema

    def relations(self, user):
        return {"people": {}}


TABLE = pa.table(
    {
        "sector": ["IT", None, "Fin"],
        "n": pa.array([6, 3, 2**40], pa.int64()),
        "small": pa.array([1, 2, None], pa.int32()),
        "mean": [1.5, float("nan"), -2.25],
        "ok": [True, False, None],
        "day": pa.array([date(2024, 2, 29), date(1999, 12, 31), None]),
        "price": pa.array([None, 1, 2], pa.decimal128(10, 2)),
    }
)


@pytest.fixture
def served(tmp_path):
    """Yield (host port, speaker, certificate) of a running server."""
    certificate, key = make_certificate(tmp_path)
    speaker = Fixed()
    setting = Setting(
        speaker=speaker,
        users={
            "ana": User("ana", ("analyst",), scram=str(make_verifier("s3crét", iterations=4096)))
        },
        pool=ThreadPoolExecutor(4),
        tls=tls_context(certificate, key),
        binding=server_binding(certificate),
    )
    loop = asyncio.new_event_loop()
    server = PostgresServer(setting)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    try:
        yield server.port, speaker, certificate
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(patience=0.2), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
        setting.pool.shutdown()
