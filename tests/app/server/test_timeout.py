"""Statements that take too long are ended: by the policy's limit, by the client's, by the client."""

import duckdb
import httpx
import psycopg
import pytest

import discreet as dc
from discreet.app.server.postgres.session_statements import Transaction, session_reply
from discreet.errors import InputError
from tests.app.server.serving import PASSWORD, connect, served_here, user

pytestmark = pytest.mark.xdist_group("wire")

# Hashes are computed when a condition reads them: seconds for a million rows.
SLOW = "SELECT COUNT(*) FROM people WHERE code LIKE '%abc%' AND code NOT LIKE '%{}%'"


@pytest.fixture(scope="module")
def slow_gate(tmp_path_factory):
    place = tmp_path_factory.mktemp("slow") / "people.db"
    with duckdb.connect(str(place)) as database:
        database.execute(
            "CREATE VIEW people AS SELECT i % 90 AS age, i % 1000 AS salary, "
            "sha256(sha256(sha256(sha256(i::VARCHAR)))) AS code FROM range(1000000) t(i)"
        )
    people = dc.read(
        f"duckdb:///{place}#people",
        roles={"age": "quasi", "code": "quasi", "salary": "confidential"},
        name="people",
    )
    guard = dc.Perturbation(epsilon=1e6, per_query=0.1, bounds={"salary": (0, 1000)})
    with dc.Gateway(people, guard=guard) as gate:
        yield gate


def test_limits_of_client_and_policy(slow_gate, tmp_path):
    with (
        served_here(
            # Statements that are being ended must not hold up the next.
            {"people": slow_gate},
            {"ana": user("ana")},
            tmp_path,
            statement_seconds=0.2,
            threads=8,
        ) as at,
        connect(at.postgres) as client,
    ):
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            client.execute(SLOW.format("policy"))
        # The client may ask for less time, not for more.
        client.execute("SET statement_timeout = 0")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            client.execute(SLOW.format("policy"))
        client.execute("SET statement_timeout = '1ms'")
        assert client.execute("SHOW statement_timeout").fetchone() == ("1ms",)
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            client.execute(SLOW.format("client"))
        client.execute("RESET statement_timeout")
        assert client.execute("SELECT COUNT(*) FROM people").fetchone()[0] > 999_000
        with httpx.Client(base_url=f"https://127.0.0.1:{at.http}", verify=False) as http:
            token = http.post("/token", auth=("ana", PASSWORD)).json()["token"]
            reply = http.post(
                "/ask",
                json={"sql": SLOW.format("http")},
                headers={"Authorization": f"Bearer {token}"},
                timeout=30,
            )
            assert reply.json()["error"] == "statement-timeout"
        # What was ended was charged all the same: how long it takes depends on the data.
        asked = [e for e in slow_gate.ledger.entries() if "LIKE" in e.question]
        assert all(entry.kind == "charged" for entry in asked)


@pytest.mark.parametrize(
    ("sql", "seconds"),
    [
        ("SET statement_timeout = 250", 0.25),
        ("set session statement_timeout to '2s'", 2.0),
        ("SET statement_timeout TO '1.5 min';", 90.0),
        ("SET statement_timeout = DEFAULT", 0.0),
    ],
)
def test_what_set_means(sql, seconds):
    transaction = Transaction(session_timeout=7.0)
    session_reply(sql, transaction)
    assert transaction.timeout == seconds


def test_local_ends_with_the_transaction_and_nonsense_is_refused():
    transaction = Transaction()
    session_reply("BEGIN", transaction)
    session_reply("SET LOCAL statement_timeout = '3s'", transaction)
    assert transaction.timeout == 3.0
    session_reply("COMMIT", transaction)
    assert transaction.timeout == 0.0
    session_reply("SET LOCAL statement_timeout = '3s'", transaction)
    assert transaction.timeout == 0.0
    session_reply("SET statement_timeout = '3s'", transaction)
    session_reply("DISCARD ALL", transaction)
    assert transaction.timeout == 0.0
    with pytest.raises(InputError):
        session_reply("SET statement_timeout = 'soon'", transaction)
