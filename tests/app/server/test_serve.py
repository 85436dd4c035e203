"""`discreet serve` as a process: users, both protocols, order at the end, several workers."""

import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter

import httpx
import psycopg
import pytest
import yaml

from discreet.app.server.from_policy import serve_policy
from discreet.errors import InputError
from discreet.ledger import open_ledger
from tests.app.server.serving import PASSWORD, REPOSITORY, Served, write_people, write_policy

pytestmark = pytest.mark.xdist_group("wire")

NOISE = {"perturbation": {"epsilon": 1.0, "per_query": 0.05, "bounds": {"salary": [0, 200_000]}}}


@pytest.fixture
def folder(tmp_path):
    write_people(tmp_path)
    return tmp_path


def test_from_a_policy_to_answers_and_an_orderly_end(folder):
    made = subprocess.run(
        [sys.executable, "-m", "discreet", "user", "eve", "--role", "analyst"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "DISCREET_PASSWORD": PASSWORD},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert PASSWORD not in made.stdout
    path = write_policy(folder, gateway={"guard": {"restriction": {"k": 3}}})
    policy = yaml.safe_load(path.read_text())
    policy["server"]["users"] |= yaml.safe_load(made.stdout)["server"]["users"]
    path.write_text(yaml.safe_dump(policy))
    served = Served(path)
    try:
        served.wait()
        with served.connect("eve") as client:
            assert client.execute("SELECT COUNT(*) FROM people").fetchone() == (400,)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                client.execute(
                    "SELECT AVG(salary) FROM people WHERE age = 20 AND region = 'TGN' AND sector = 'Fin'"
                )
        with pytest.raises(psycopg.OperationalError, match="authentication failed"):
            served.connect("eve", password="wrong")
        address = f"https://127.0.0.1:{policy['server']['http_port']}"
        with httpx.Client(base_url=address, verify=False) as http:  # self-signed
            token = http.post("/token", auth=("eve", PASSWORD)).json()["token"]
            told = http.post(
                "/ask",
                json={"sql": "SELECT COUNT(*) FROM people"},
                headers={"Authorization": f"Bearer {token}"},
            )
            assert told.json()["rows"] == [[400]]
            assert told.json()["facts"]["repeated"] is True
        idle = served.connect()
        assert served.stop() == 0
        with pytest.raises(psycopg.OperationalError):
            idle.execute("SELECT 1")
    finally:
        served.kill()
    lines = [
        json.loads(line) for line in served.log.read_text().splitlines() if line.startswith("{")
    ]
    assert Counter(line.get("outcome") for line in lines)["refused"] == 1
    assert "400" not in "".join(str(line.get("event")) for line in lines)
    with open_ledger(folder / "ledger.db") as ledger:
        assert ledger.verify().intact


def test_a_worker_that_dies_is_replaced_and_none_outlives_the_parent(folder):
    path = write_policy(folder, gateway={"guard": {"restriction": {"k": 3}}})
    served = Served(path)
    try:
        served.wait()
        (first,) = served.workers()
        with served.connect() as client:
            assert client.execute("SELECT COUNT(*) FROM people").fetchone() == (400,)
            os.kill(first, signal.SIGKILL)
            with pytest.raises(psycopg.OperationalError):
                client.execute("SELECT COUNT(*) FROM people WHERE age < 50")
        # Who connects while nobody serves waits; nobody is turned away.
        with served.connect(connect_timeout=60) as client:
            assert client.execute("SELECT COUNT(*) FROM people").fetchone() == (400,)
        assert served.workers() != [first]
        served.kill_parent()
        with pytest.raises(psycopg.OperationalError):
            served.connect(connect_timeout=5)
        served.restart()
        served.wait()
        assert served.stop() == 0
    finally:
        served.kill()


def test_what_keeps_a_server_from_starting_is_told(folder):
    path = write_policy(folder, gateway={"guard": {"restriction": {"k": 500}}})
    served = Served(path)
    try:
        assert served.process.wait(60) == 2
    finally:
        served.kill()
    assert "k = 500 is more than the 400 records" in served.log.read_text()
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.MonkeyPatch.context() as patched:
        patched.setattr("discreet.app.server.supervision._PATIENCE", 0.0)
        port = taken.getsockname()[1]
        path = write_policy(folder, gateway={"guard": {"restriction": {"k": 3}}}, port=port)
        with pytest.raises(InputError, match=f"port {port} of 127.0.0.1 cannot be listened on"):
            serve_policy(path, started=print)


def test_several_workers_need_a_shared_ledger(folder):
    path = write_policy(folder, gateway={"guard": {"restriction": {"k": 3}}}, workers=2)
    with pytest.raises(InputError, match="share"):
        serve_policy(path, started=print)


def test_two_workers_never_overspend(folder, postgres_database):
    users = [f"user{n}" for n in range(8)]
    path = write_policy(
        folder,
        gateway={"guard": NOISE, "ledger": postgres_database},
        users=("ana", *users),
        workers=2,
    )
    served = Served(path, postgres_database)
    try:
        served.wait(120)

        def asks(number):
            outcomes = Counter()
            with served.connect(users[number % 8]) as client:
                for turn in range(8):
                    try:
                        client.execute(
                            f"SELECT COUNT(*) FROM people WHERE age < {21 + (number * 8 + turn) % 200}"
                        )
                        outcomes["answered"] += 1
                    except psycopg.errors.ConfigurationLimitExceeded:
                        outcomes["exhausted"] += 1
            return outcomes

        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            total = sum(pool.map(asks, range(32)), Counter())
        # A worker that dies is replaced by the parent.
        children = served.workers()
        assert len(children) >= 2
        os.kill(children[0], signal.SIGKILL)
        end = time.monotonic() + 60
        while "worker ended" not in served.log.read_text() and time.monotonic() < end:
            time.sleep(0.1)
        served.wait()
        assert served.stop() == 0
    finally:
        served.kill()
    with open_ledger(postgres_database) as book:
        assert book.verify().intact
        noisy = [entry for entry in book.entries() if entry.kind == "noisy"]
        assert sum(entry.details["spent"]["epsilon"] for entry in noisy) == pytest.approx(1.0)
    assert len(noisy) == 20
    assert total["answered"] >= 20  # the same question by the same user is free
    assert total["exhausted"] > 0
