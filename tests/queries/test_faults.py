"""A gateway over PostgreSQL whose server fails: it recovers or says so, and nobody pays twice."""

from __future__ import annotations

import dataclasses
import itertools
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import psycopg
import pytest

import discreet as dc
from discreet.data.engines import postgres_session
from discreet.errors import EngineError
from discreet.queries.guards._base import Guard
from discreet.queries.guards._profiles import Remembered
from tests.servers import kill_sessions

ROLES = {"region": "quasi", "age": "quasi", "salary": "confidential", "bonus": "confidential"}
BOUNDS = {"salary": (0, 5_000), "bonus": (0, 1_000)}
GUARDS = {
    "restriction": dc.Restriction(k=3),
    "partition": dc.Restriction(k=3, mode="partition"),
    "camouflage": dc.Camouflage(bound=0.3),
    "noise on answers": dc.Perturbation(epsilon=4.0, per_query=0.1, bounds=BOUNDS),
    "noise on records": dc.Perturbation(mode="input", epsilon=4.0, bounds=BOUNDS),
}
REGIONS = pd.DataFrame({"code": ["r0", "r1", "r2"], "coast": ["north", "south", "north"]})


def fill(url: str, rows: int = 400) -> None:
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("DROP TABLE IF EXISTS people")
        server.execute(
            "CREATE TABLE people AS SELECT i AS number, 'r' || i % 3 AS region, i % 7 AS age, "
            "1000 + (i * 37) % 911 AS salary, (i * i) % 709 AS bonus "
            f"FROM generate_series(1, {rows}) i"
        )


@pytest.fixture
def database(postgres_database: str) -> str:
    fill(postgres_database)
    return postgres_database


def people_of(url: str) -> dc.Dataset:
    columns = ["region", "age", "salary", "bonus"]
    return dc.read(f"{url}#people", columns=columns, roles=ROLES)


def questions(guard: Guard) -> Iterator[str]:
    """Give questions that were not asked before, which the engine must compute."""
    for number, region in itertools.product(range(1000), ("r0", "r1", "r2")):
        low = number % 7
        column = "salary" if guard.answers == "exact" else f"salary + {number}"
        yield f"SELECT COUNT(*), SUM({column}) FROM people WHERE age >= {low} AND region <> '{region}'"
        yield f"SELECT region, AVG({column}) FROM people WHERE age <> {low} GROUP BY region"


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS.keys())
def test_a_killed_session_is_not_noticed_by_whoever_asks(database: str, guard, tmp_path: Path):
    people = people_of(database)
    regions = dc.read(REGIONS, roles={"code": "quasi", "coast": "quasi"}, name="regions")
    with dc.Gateway(
        people,
        guard=guard,
        ledger=tmp_path / "ledger.db",
        lookups={"regions": regions},
        joins={"regions": ("region", "code")},
    ) as gate:
        first = gate.ask("SELECT region, AVG(salary) FROM people GROUP BY region")
        assert first.kind == guard.answers
        for place in range(2):
            kill_sessions(database)
            answer = gate.ask(
                "SELECT regions.coast, COUNT(*) FROM people JOIN regions "
                f"ON people.region = regions.code WHERE age <> {place} GROUP BY regions.coast"
            )
            assert answer.kind == guard.answers, answer.reason
            kill_sessions(database)
            answer = gate.ask(f"SELECT SUM(salary) FROM people WHERE age > {place}")
            assert answer.kind == guard.answers, answer.reason
        kill_sessions(database)
        assert gate.explain("SELECT SUM(salary) FROM people WHERE age > 3").kind == guard.answers
        again = gate.ask("SELECT region, AVG(salary) FROM people GROUP BY region")
        assert (again.repeated, again.table) == (True, first.table)
    people.engine.close()


def test_history_is_kept_when_guards_are_opened_anew(database: str):
    """Answers given before a lost session still count against those given after it."""
    people = people_of(database)
    regions = dc.read(REGIONS, roles={"code": "quasi", "coast": "quasi"}, name="regions")
    joins = {"regions": ("region", "code")}
    with dc.Gateway(
        people, guard=dc.Restriction(k=30), lookups={"regions": regions}, joins=joins
    ) as gate:
        # What the lookup is loaded into goes with the session, so that guards are opened anew.
        assert gate.ask("SELECT SUM(salary) FROM people").kind == "exact"
        kill_sessions(database)
        assert gate.ask("SELECT SUM(salary) FROM people WHERE regions.coast = 'north'").kind in (
            "exact",
            "refused",
        )
        small = "WHERE NOT (region = 'r0' AND age = 1)"  # all but 19 records
        answer = gate.ask(f"SELECT SUM(salary) FROM people {small}")
        assert (answer.kind, answer.code) == ("refused", "too-few-records"), answer
    people.engine.close()


def test_a_ledger_on_the_same_server_goes_on_too(database: str):
    people = people_of(database)
    with dc.Gateway(people, guard=dc.Restriction(k=3), ledger=database) as gate:
        for low in range(4):
            kill_sessions(database)
            answer = gate.ask(
                f"SELECT region, COUNT(*) FROM people WHERE age <> {low} GROUP BY region"
            )
            assert answer.kind == "exact"
    people.engine.close()


def test_a_server_that_stays_away_is_no_refusal_and_costs_nothing(
    own_postgres, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(postgres_session, "PATIENCE", 0.3)
    fill(own_postgres.url)
    people = people_of(own_postgres.url)
    guard = GUARDS["noise on answers"]
    with dc.Gateway(people, guard=guard, ledger=tmp_path / "ledger.db") as gate:
        asked = "SELECT SUM(salary) FROM people WHERE age > 2"
        own_postgres.stop()
        for _ in range(3):
            with pytest.raises(EngineError) as caught:
                gate.ask(asked, user="ana")
            assert caught.value.code == "connection-lost"
            assert "expression" not in str(caught.value)
        own_postgres.start()
        answer = gate.ask(asked, user="ana")
        assert answer.kind == "noisy"
        (line,) = [line for line in gate.budget("ana") if line["scope"] == "user"]
        assert line["spent"] == pytest.approx(0.1)  # charged once, for four attempts
    people.engine.close()


def test_a_restarted_server_is_waited_for(own_postgres, tmp_path: Path):
    fill(own_postgres.url)
    people = people_of(own_postgres.url)
    with dc.Gateway(people, guard=dc.Camouflage(), ledger=tmp_path / "ledger.db") as gate:
        assert gate.ask("SELECT SUM(salary) FROM people").kind == "interval"
        own_postgres.stop(signal.SIGQUIT)
        starting = threading.Thread(target=own_postgres.start)
        starting.start()
        assert gate.ask("SELECT SUM(salary) FROM people WHERE age > 1").kind == "interval"
        starting.join(120)
    people.engine.close()


def test_lost_rights_and_columns_are_told_as_such(database: str):
    people = people_of(database)
    with (
        dc.Gateway(people, guard=dc.Restriction(k=3)) as gate,
        psycopg.connect(database, autocommit=True) as server,
    ):
        server.execute("ALTER TABLE people RENAME salary TO pay")
        with pytest.raises(EngineError) as caught:
            gate.ask("SELECT SUM(salary) FROM people")
        assert (caught.value.code, caught.value.hint) == ("changed-table", "tell the curator")
        server.execute("ALTER TABLE people RENAME pay TO salary")
        assert gate.ask("SELECT SUM(salary) FROM people").kind == "exact"
    people.engine.close()


# -- changed data ------------------------------------------------------------------------------------
CHANGES = {
    "same counts": "UPDATE people SET salary = salary + 1 WHERE number = 1",
    "one more": "INSERT INTO people VALUES (1000, 'r0', 1, 1500, 10)",
    "one less": "DELETE FROM people WHERE number = 2",
    "exchanged": "UPDATE people SET salary = 3001 - salary WHERE number IN (3, 4)",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("lasting", [False, True], ids=["forgets", "remembers"])
def test_changed_records_are_noticed(database: str, change: str, lasting: bool, tmp_path: Path):
    people = people_of(database)
    ledger = tmp_path / "ledger.db" if lasting else ":memory:"
    with (
        dc.Gateway(people, guard=dc.Restriction(k=3), ledger=ledger) as gate,
        psycopg.connect(database, autocommit=True) as server,
    ):
        assert gate.ask("SELECT SUM(age) FROM people").kind == "exact"
        # Somebody else's table, and rows that are rewritten as they were, change nothing.
        server.execute("CREATE TABLE other AS SELECT 1 AS a")
        server.execute("UPDATE people SET salary = salary WHERE number < 20")
        assert gate.ask("SELECT SUM(salary) FROM people").kind == "exact"
        server.execute(change)
        answer = gate.ask("SELECT SUM(bonus) FROM people")
        assert (answer.kind, answer.code) == ("refused", "changed-data"), answer
    people.engine.close()


def test_changed_records_of_a_view_are_noticed(database: str):
    with psycopg.connect(database, autocommit=True) as server:
        server.execute(
            "CREATE VIEW adults AS SELECT region, age, salary, bonus FROM people WHERE age > 2"
        )
        adults = dc.read(f"{database}#adults", roles=ROLES)
        with dc.Gateway(adults, guard=dc.Restriction(k=3)) as gate:
            server.execute("CREATE TABLE other AS SELECT 1 AS a")
            assert gate.ask("SELECT SUM(age) FROM adults").kind == "exact"
            server.execute(CHANGES["exchanged"])
            assert gate.ask("SELECT SUM(salary) FROM adults").code == "changed-data"
        adults.engine.close()


# -- under load --------------------------------------------------------------------------------------
def kills_under_load(url: str, ledger: Path, rounds: int, guard: Guard) -> None:
    """Kill all sessions again and again while four people ask; then everything must be in order."""
    people = people_of(url)
    done, wrong, answered = threading.Event(), [], [0]
    with dc.Gateway(people, guard=guard, ledger=ledger) as gate:

        def ask(user: str) -> None:
            for question in questions(guard):
                if done.is_set():
                    return
                try:
                    answer = gate.ask(question, user=user)
                except EngineError as error:
                    if error.code != "connection-lost":
                        wrong.append(error)
                except Exception as error:
                    wrong.append(error)
                else:
                    answered[0] += 1
                    if answer.code == "not-computable":
                        wrong.append(answer)

        askers = [threading.Thread(target=ask, args=(f"user-{n}",)) for n in range(4)]
        for asker in askers:
            asker.start()
        for _ in range(rounds):
            before, end = answered[0], time.monotonic() + 60
            while answered[0] < before + 3 and time.monotonic() < end:
                time.sleep(0.01)
            assert answered[0] >= before + 3
            kill_sessions(url)
        done.set()
        for asker in askers:
            asker.join(120)
        assert wrong == []
        assert (
            gate.ask("SELECT AVG(salary) FROM people WHERE age < 6", user="eve").kind != "refused"
        )
        for user in [f"user-{n}" for n in range(4)]:
            spent = {line["scope"]: line["spent"] for line in gate.budget(user)}
            charged = {
                entry.digest
                for kind in ("charged", "noisy")
                for entry in gate.ledger.history(gate.data.name, kind=kind)
                if entry.user == user
            }
            # One charge for each question, however often it was computed in vain.
            assert spent.get("user", 0) == pytest.approx(0.1 * len(charged))
    people.engine.close()


@pytest.mark.parametrize("name", ["restriction", "noise on answers"])
def test_sessions_killed_under_load(database: str, tmp_path: Path, name: str, monkeypatch):
    monkeypatch.setattr(Remembered, "get", lambda _self, _name, make: make()[0])
    kills_under_load(database, tmp_path / "ledger.db", 3, _roomy(GUARDS[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["restriction", "camouflage", "noise on answers"])
def test_twenty_rounds_of_kills_under_load(database: str, tmp_path: Path, name: str, monkeypatch):
    monkeypatch.setattr(Remembered, "get", lambda _self, _name, make: make()[0])
    kills_under_load(database, tmp_path / "ledger.db", 20, _roomy(GUARDS[name]))


def _roomy(guard: Guard) -> Guard:
    """Return a guard whose budget holds all questions of a test."""
    return dataclasses.replace(guard, epsilon=1000.0) if hasattr(guard, "epsilon") else guard
