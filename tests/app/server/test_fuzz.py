"""A hostile client that has logged in: well-formed messages in any order, and broken ones."""

import base64
import contextlib
import hashlib
import hmac
import logging
import socket
import ssl
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.app.server.postgres import messages as m
from tests.app.server.test_postgres import connect

pytestmark = pytest.mark.xdist_group("wire")

NAMES = st.sampled_from(["", "a", "b", "é", "x" * 70])
TEXTS = st.sampled_from(
    [
        "", ";", "SELECT 1", "SELECT * FROM people WHERE age < $1 AND sector = $2", "SELECT refuse",
        "SELECT mistake", "SELECT crash", "BEGIN", "COMMIT", "ROLLBACK", "SHOW ALL", "SET x TO 1",
        "SELECT relname FROM pg_class WHERE oid = $1", "DECLARE c CURSOR FOR SELECT 1", "'", "/*",
        "COPY people FROM STDIN", "SELECT 1; SELECT refuse; SELECT 1", "DEALLOCATE ALL", "SELECT $9999999",
        "EXPLAIN SELECT 1", "SELECT " + "(" * 500, "\u202eSELECT 1", "FETCH ALL", "SELECT $$a$$", "DISCARD ALL",
    ]
)  # fmt: skip


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def bind(portal, statement, formats, values, results) -> bytes:
    body = text(portal) + text(statement) + struct.pack("!h", len(formats))
    body += b"".join(struct.pack("!h", code) for code in formats)
    body += struct.pack("!h", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return body + struct.pack("!h", len(results)) + b"".join(struct.pack("!h", r) for r in results)


CODES = st.lists(st.integers(-1, 3), max_size=3)
WELL_FORMED = st.one_of(
    st.tuples(st.just(b"Q"), TEXTS.map(text)),
    st.tuples(
        st.just(b"P"),
        st.builds(
            lambda n, s, t: text(n) + text(s) + struct.pack(f"!h{len(t)}i", len(t), *t),
            NAMES, TEXTS, st.lists(st.sampled_from([0, 16, 20, 23, 25, 701, 1082, 1114, 1700, 999999]), max_size=3),
        ),
    ),
    st.tuples(
        st.just(b"B"),
        st.builds(bind, NAMES, NAMES, CODES, st.lists(st.none() | st.binary(max_size=12), max_size=3), CODES),
    ),
    st.tuples(st.sampled_from([b"D", b"C"]), st.builds(lambda k, n: k + text(n), st.sampled_from([b"S", b"P", b"Z"]), NAMES)),
    st.tuples(st.just(b"E"), st.builds(lambda n, r: text(n) + struct.pack("!i", r), NAMES, st.integers(-2, 3))),
    st.tuples(st.sampled_from([b"S", b"H", b"c", b"X"]), st.just(b"")),
    st.tuples(st.sampled_from([b"d", b"f", b"F", b"p", b"~"]), st.binary(max_size=8)),
)  # fmt: skip


@st.composite
def mutated(draw):
    """One message, possibly with bytes changed, cut off, or a length that lies."""
    kind, body = draw(WELL_FORMED)
    raw = m.message(kind, body)
    match draw(st.integers(0, 9)):
        case 0 if len(raw) > 5:
            place = draw(st.integers(5, len(raw) - 1))
            return raw[:place] + bytes([draw(st.integers(0, 255))]) + raw[place + 1 :]
        case 1:
            return kind + struct.pack("!i", draw(st.integers(-5, 1 << 30))) + body
        case 2:
            return raw[: draw(st.integers(1, len(raw)))]
        case _:
            return raw


class Raw:
    """A client that logs in properly and then sends what it is given."""

    def __init__(self, port: int, certificate, password: str = "s3crét") -> None:
        plain = socket.create_connection(("127.0.0.1", port), timeout=10)
        plain.sendall(struct.pack("!ii", 8, m.SSL_REQUEST))
        assert plain.recv(1) == b"S"
        context = ssl.create_default_context(cafile=str(certificate))
        self.socket = context.wrap_socket(plain, server_hostname="localhost")
        start = struct.pack("!i", m.PROTOCOL_3) + text("user") + text("ana") + b"\0"
        self.socket.sendall(struct.pack("!i", len(start) + 4) + start)
        self.message()
        first = b"n=,r=abcdefgh"
        body = text("SCRAM-SHA-256") + struct.pack("!i", len(first) + 3) + b"n,," + first
        self.socket.sendall(m.message(b"p", body))
        challenge = self.message()[1][4:]
        fields = dict(part.split(b"=", 1) for part in challenge.split(b","))
        without = b"c=biws,r=" + fields[b"r"]
        salted = hashlib.pbkdf2_hmac(
            "sha256", password.encode(), base64.b64decode(fields[b"s"]), int(fields[b"i"])
        )
        key = hmac.digest(salted, b"Client Key", "sha256")
        signed = b",".join((first, challenge, without))
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        self.socket.sendall(m.message(b"p", without + b",p=" + base64.b64encode(proof)))
        self.until_ready()

    def message(self) -> tuple[bytes, bytes]:
        head = self._exactly(5)
        (size,) = struct.unpack("!i", head[1:])
        return head[:1], self._exactly(size - 4)

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            piece = self.socket.recv(size - len(found))
            if not piece:
                raise ConnectionResetError
            found += piece
        return found

    def until_ready(self) -> list[bytes]:
        kinds = []
        while True:
            kind, body = self.message()
            assert b"31415" not in body  # what the failing handler would have told
            kinds.append(kind)
            if kind == b"Z":
                return kinds

    def until_closed(self) -> None:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while self.socket.recv(65536):
                pass


@given(st.lists(mutated(), max_size=12))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_message_breaks_the_server(served, caplog, sent):
    port, _, certificate = served
    client = Raw(port, certificate)
    with connect(port) as other, caplog.at_level(logging.ERROR):
        caplog.clear()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            client.socket.sendall(b"".join(sent) + m.message(b"S"))
            client.socket.shutdown(socket.SHUT_WR)
        client.until_closed()
        client.socket.close()
        # The handler that fails on purpose is all that may have failed.
        kinds = {getattr(record, "kind", record.getMessage()) for record in caplog.records}
        assert kinds <= {"RuntimeError"}
        assert other.execute("SELECT 1").fetchone() == (1,)


@given(
    st.lists(
        WELL_FORMED.filter(lambda pair: pair[0] in (b"Q", b"P", b"E", b"D", b"H", b"C")),
        max_size=10,
    )
)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)  # fmt: skip
def test_every_sync_is_answered_and_the_session_goes_on(served, sent):
    port, _, certificate = served
    client = Raw(port, certificate)
    broken = any(kind in (b"D", b"C") and body[:1] == b"Z" for kind, body in sent)
    # A transaction may have been begun and have failed: then only its end is heard.
    end = m.message(b"S") + m.message(b"Q", text("ROLLBACK")) + m.message(b"Q", text("SELECT 1"))
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        client.socket.sendall(b"".join(m.message(kind, body) for kind, body in sent) + end)
    seen: list[bytes] = []
    try:
        while seen[-3:] != [b"D", b"C", b"Z"] or len(seen) < 4:
            seen += client.until_ready()
    except (ConnectionError, ssl.SSLError):
        # Neither statement nor portal ends the connection, unless an error before it made the
        # server skip it.
        assert broken
    client.socket.close()


def test_limits_of_one_connection(served):
    port, _, certificate = served
    client = Raw(port, certificate)
    for n in range(1001):
        client.socket.sendall(m.message(b"P", text(f"s{n}") + text("SELECT 1") + b"\0\0"))
    client.socket.sendall(m.message(b"S"))
    assert client.until_ready().count(b"E") == 1
    client.socket.sendall(
        m.message(b"P", text("large") + text("SELECT " + "1" * 200_000) + b"\0\0") + m.message(b"S")
    )
    assert b"E" in client.until_ready()
    client.socket.sendall(m.message(b"Q", text("SELECT 1;" * 500)))
    assert client.until_ready() == [b"E", b"Z"]
    client.socket.close()


def test_guessing_passwords_is_slowed(served):
    import psycopg

    port, _, _ = served
    for _ in range(10):
        with pytest.raises(psycopg.OperationalError, match="authentication failed"):
            connect(port, user="ghost", password="guess")
    with pytest.raises(psycopg.OperationalError, match="too many failed attempts"):
        connect(port, user="ghost", password="guess")
    with connect(port) as other:  # others are not concerned
        assert other.execute("SELECT 1").fetchone() == (1,)
