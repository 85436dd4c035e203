"""PostgreSQL's protocol with real clients: psql, psycopg, SQLAlchemy, pandas; and hostile bytes."""

import os
import shutil
import socket
import struct
import subprocess
import threading
import time

import pandas as pd
import psycopg
import pytest
import sqlalchemy
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.app.server.postgres import messages as m
from discreet.app.server.postgres.scram import Exchange, ScramError, Verifier, make_verifier
from discreet.app.server.postgres.types import encode
from tests.servers import unavailable

pytestmark = pytest.mark.xdist_group("wire")


def connect(port, **options):
    settings = {
        "host": "127.0.0.1",
        "port": port,
        "user": "ana",
        "password": "s3crét",
        "dbname": "discreet",
        "sslmode": "require",
    }
    return psycopg.connect(**(settings | options), autocommit=True)


def test_psycopg_text_binary_parameters_and_prepared(served):
    port, speaker, _ = served
    with connect(port) as client:
        for binary in (False, True):
            with client.cursor(binary=binary) as cursor:
                rows = cursor.execute(
                    "SELECT * FROM people WHERE age < %s AND sector = %s", (30, "IT")
                ).fetchall()
                assert rows[0][:2] == ("IT", 6)
                assert rows[2][1] == 2**40
                assert rows[0][3] == 1.5
                assert rows[1][3] != rows[1][3]
                assert rows[0][4] is True
                assert str(rows[0][5]) == "2024-02-29"
                assert float(rows[2][6]) == 2.0
                assert rows[1][0] is None
        assert speaker.seen[-1] == (
            "SELECT * FROM people WHERE age < $1 AND sector = $2",
            "ana",
            (30, "IT"),
        )
        for _ in range(3):
            client.execute("SELECT 2 FROM people", prepare=True).fetchall()


def test_notices_say_what_the_answer_is(served):
    port, _, _ = served
    with connect(port) as client:
        heard = []
        client.add_notice_handler(lambda notice: heard.append(notice.message_primary))
        client.execute("SELECT x").fetchall()
        assert heard == ["exact answer"]


def test_refusals_and_mistakes_are_sql_errors(served):
    port, _, _ = served
    with connect(port) as client:
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
            client.execute("SELECT refuse")
        assert caught.value.diag.message_hint == "ask for more"
        with pytest.raises(psycopg.errors.UndefinedColumn):
            client.execute("SELECT mistake")
        with pytest.raises(psycopg.errors.InternalError_) as caught:
            client.execute("SELECT crash")
        assert "31415" not in str(caught.value)
        assert client.execute("SELECT 1").fetchone() == (1,)


def test_a_failed_transaction_waits_for_rollback(served):
    port, _, _ = served
    with connect(port) as client:
        client.autocommit = False
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            client.execute("SELECT refuse")
        with pytest.raises(psycopg.Error):
            client.execute("SELECT x")
        client.rollback()
        assert len(client.execute("SELECT x").fetchall()) == 3


def test_channel_binding_and_verified_certificates(served):
    port, _, certificate = served
    with connect(
        port,
        channel_binding="require",
        sslmode="verify-full",
        sslrootcert=str(certificate),
        host="localhost",
        hostaddr="127.0.0.1",
    ) as client:
        assert client.execute("SELECT version()").fetchone()[0].startswith("PostgreSQL 15")


@pytest.mark.parametrize(
    "wrong", [{"password": "other"}, {"user": "nobody"}, {"sslmode": "disable"}]
)
def test_strangers_stay_outside(served, wrong):
    port, speaker, _ = served
    with pytest.raises(psycopg.OperationalError):
        connect(port, **wrong)
    assert speaker.seen == []


def test_sqlalchemy_and_pandas(served):
    port, _, _ = served
    url = sqlalchemy.URL.create(
        "postgresql+psycopg",
        "ana",
        "s3crét",
        "127.0.0.1",
        port,
        "discreet",
        query={"sslmode": "require"},
    )
    engine = sqlalchemy.create_engine(url)
    try:
        frame = pd.read_sql("SELECT sector, n FROM people", engine)
        assert frame["n"].tolist() == [6, 3, 2**40]
    finally:
        engine.dispose()


def test_psql(served):
    if shutil.which("psql") is None:
        unavailable("psql is not installed: apt-get install postgresql-client")
    port, _, _ = served
    done = subprocess.run(
        ["psql", f"host=127.0.0.1 port={port} user=ana dbname=discreet sslmode=require", "-A", "-c", "SELECT x; SELECT y", "-c", "SELECT refuse"],
        env={**os.environ, "PGPASSWORD": "s3crét", "PGCLIENTENCODING": "UTF8"}, capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert "IT|6|1|1.5|t|2024-02-29|" in done.stdout
    assert "fewer than k records" in done.stderr
    assert "HINT:  ask for more" in done.stderr


def test_a_statement_can_be_cancelled(served):
    port, _, _ = served
    with connect(port) as client:
        threading.Timer(0.5, client.cancel_safe).start()
        started = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled):
            client.execute("SELECT sleep")
        assert time.monotonic() - started < 2.5
        assert client.execute("SELECT 1").fetchone() == (1,)


@given(st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_readers_raise_only_protocol_errors(body):
    for reader in (m.read_startup, m.read_parse, m.read_bind, m.read_target):
        try:
            reader(body)
        except m.ProtocolError:
            continue


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\x00\x00\x04",
        b"\x7f\xff\xff\xff",
        b"\x00\x00\x00\x08\x00\x02\x00\x00",
        struct.pack("!ii", 8, m.SSL_REQUEST) + b"GET / HTTP/1.1\r\n",
        struct.pack("!ii", 8, m.CANCEL_REQUEST),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        bytes(range(40, 104)),
    ],
)
def test_hostile_bytes_end_only_their_own_connection(served, raw):
    port, speaker, _ = served
    with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        client.sendall(raw)
        client.settimeout(2)
        try:
            while client.recv(4096):
                pass
        except (TimeoutError, ConnectionError):
            pass
    with connect(port) as client:
        assert client.execute("SELECT 1").fetchone() == (1,)
    assert speaker.seen == []


@pytest.mark.parametrize(
    ("value", "written"),
    [(33700.0, b"33700"), (0.48, b"0.48"), (-0.0, b"-0"), (1e300, b"1e+300"), (1.5e-7, b"1.5e-07")],
)
def test_numbers_are_written_without_digits_they_have_not(value, written):
    # As PostgreSQL does: a mean of two digits, 33,700, gets no third one after a point.
    assert encode(value, 701, binary=0) == written


def test_verifiers_are_those_of_postgresql():
    text = str(make_verifier("pencil", salt=b"0123456789abcdef", iterations=4096))
    assert str(Verifier.parse(text)) == text
    with pytest.raises(ScramError):
        Verifier.parse("md5abc")


def test_an_unknown_user_gets_the_same_salt_every_time():
    first = [
        Exchange(None, user="ghost", secret=b"k").challenge(b"n,,n=,r=abc", "SCRAM-SHA-256")
        for _ in range(2)
    ]
    salts = {challenge.split(b",")[1] for challenge in first}
    assert len(salts) == 1
