"""The desk: what is at hand, who may try again, what strangers see, clients that do not read."""

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pyarrow as pa
import pytest

import discreet as dc
from discreet.app.server.certificate import make_certificate
from discreet.app.server.desk import Attempts, Rate, Reply, User
from discreet.app.server.from_policy import announce
from discreet.app.server.gateways import Desk, Given
from discreet.app.server.http import Tokens, build_http
from discreet.app.server.metrics import Metrics
from discreet.app.server.postgres import messages as m
from discreet.app.server.postgres.scram import Strangers, make_verifier
from discreet.app.server.postgres.server import PostgresServer, tls_context
from discreet.app.server.postgres.setting import Setting
from discreet.demo.datasets import population
from discreet.errors import InputError, RefusedError
from tests.app.server.test_fuzz import Raw, text

ANA, BOB = User("ana", ("analyst",)), User("bob", ("analyst",))
SQL = "SELECT SUM(salary) AS total FROM people"


@pytest.fixture
def desk():
    gate = dc.Gateway(population(300), guard=dc.Restriction(k=3))
    made = Desk({"people": gate}, rate=Rate(1e6, 10**6), metrics=Metrics())
    yield made
    made.close()


def test_an_answer_is_at_hand_for_whom_it_was_given(desk):
    assert desk.recall(SQL, ANA) is None
    given = desk.ask(SQL, ANA)
    again = desk.recall(SQL, ANA)
    assert again.table.equals(given.table)
    assert again.facts["repeated"] is True
    assert again.facts["spent"] == {}
    assert desk.recall(SQL, BOB) is None
    with pytest.raises(RefusedError):
        desk.ask("SELECT AVG(salary) FROM people WHERE salary > 5", ANA)
    assert desk.recall("SELECT AVG(salary) FROM people WHERE salary > 5", ANA) is None
    desk.ask("EXPLAIN " + SQL, ANA)
    assert desk.recall("EXPLAIN " + SQL, ANA) is None


def test_parameters_that_python_thinks_equal_are_different_questions(desk):
    asked = "SELECT COUNT(*) FROM people WHERE age > $1"
    desk.ask(asked, ANA, (1,))
    assert desk.recall(asked, ANA, (1,)) is not None
    assert desk.recall(asked, ANA, (True,)) is None
    assert desk.recall(asked, ANA, (1.0,)) is None


def test_what_is_at_hand_is_bounded():
    given = Given(most=3, largest=1000)
    for n in range(5):
        given.put(n, Reply(pa.table({"x": [n]}), "exact"))
    given.put("large", Reply(pa.table({"x": list(range(1000))}), "exact"))
    assert [given.get(n) is not None for n in (0, 1, 2, 3, 4, "large")] == [
        False,
        False,
        True,
        True,
        True,
        False,
    ]


def test_describing_a_mistake_tells_it(desk):
    with pytest.raises(RefusedError):
        desk.describe("SELECT salary FROM people", ANA)
    with pytest.raises((InputError, RefusedError)):
        desk.describe("SELECT COUNT(*) FROM nothing", ANA)
    assert desk.describe("EXPLAIN " + SQL, ANA).names == ["fact", "value"]
    schema = desk.describe(
        "SELECT COUNT(*) AS n FROM people WHERE age < $1 AND sector = $2", ANA, 2
    )
    assert schema.names == ["n"]


def test_attempts_are_counted_per_name_and_address_and_forgotten():
    attempts = Attempts(most=2, seconds=0.2, remembered=5)
    for _ in range(2):
        assert attempts.allowed("here", "ana")
        attempts.failed("here", "ana")
    assert not attempts.allowed("here", "ana")
    assert attempts.allowed("there", "ana")
    time.sleep(0.25)
    assert attempts.allowed("here", "ana")
    for n in range(100):
        attempts.failed("here", f"{n}" * 1000)
    assert len(attempts._failures) <= 5


def test_strangers_look_the_same_in_every_process_and_like_users():
    verifiers = [
        str(make_verifier("a", iterations=4096)),
        str(make_verifier("b", iterations=9000)),
        None,
    ]
    one, two = Strangers(verifiers), Strangers(reversed(verifiers))
    assert one.secret == two.secret
    told = {name: one.iterations(name) for name in map(str, range(50))}
    assert told == {name: two.iterations(name) for name in told}
    assert set(told.values()) == {4096, 9000}


class Broken:
    def recall(self, *_, **__):
        return None

    def ask(self, *_, **__):
        raise RuntimeError("secret record 31415")


def test_http_tells_neither_client_nor_log_what_a_failure_said(caplog):
    tokens = Tokens(b"k" * 32)
    app = build_http(Broken(), {"ana": ANA}, ThreadPoolExecutor(1), tokens, Metrics())
    headers = {"Authorization": f"Bearer {tokens.issue('ana').token}"}

    async def ask():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://x", headers=headers
        ) as client:
            failed = await client.post("/ask", json={"sql": "SELECT 1"})
            large = await client.post("/ask", content=b" " * (2 << 20))
            return failed, large

    with caplog.at_level(logging.DEBUG):
        failed, large = asyncio.run(ask())
    assert failed.status_code == 500
    assert large.status_code == 413
    assert "31415" not in failed.text + caplog.text
    assert any(getattr(record, "kind", "") == "RuntimeError" for record in caplog.records)


class Large:
    table = pa.table({"x": ["y" * 1000] * 100_000})

    def recall(self, *_, **__):
        return Reply(self.table, "exact")


def test_a_client_that_does_not_read_is_cut_off(tmp_path):
    certificate, key = make_certificate(tmp_path)
    users = {"ana": User("ana", ("analyst",), scram=str(make_verifier("s3crét", iterations=4096)))}

    async def run():
        setting = Setting(
            Large(), users, ThreadPoolExecutor(1), tls_context(certificate, key), unread_seconds=0.5
        )
        server = PostgresServer(setting)
        await server.start()
        client = await asyncio.to_thread(Raw, server.port, certificate)
        client.socket.sendall(m.message(b"Q", text("SELECT large")))
        for _ in range(200):
            await asyncio.sleep(0.1)
            if server.connections == 0:
                break
        left = server.connections
        client.socket.close()
        await server.stop(patience=0.2)
        return left

    assert asyncio.run(run()) == 0


def test_the_curator_reads_in_the_log_what_a_gateway_found_out(caplog):
    table = pa.table(
        {"ward": ["a"] * 6 + ["b"] * 6, "diagnosis": ["flu"] * 6 + ["flu", "cold"] * 3}
    )
    data = dc.read(table, roles={"ward": "quasi", "diagnosis": "confidential"}, name="people")
    with dc.Gateway(data, guard=dc.Restriction(k=5)) as gate:
        announce({"people": gate})
    (record,) = caplog.records
    assert record.relation == "people"
    assert "diagnosis has few values, or one for most: 1 groups of 5 or more" in record.getMessage()
