"""Minutes of load over the wire without a failure.

DISCREET_SOAK_SECONDS sets how long, DISCREET_SOAK_ROWS how many records.
"""

import os
import random
import threading
import time

import psycopg
import pytest

import discreet as dc
from discreet.demo.datasets import population
from tests.app.server.serving import connect, served_here, user

pytestmark = pytest.mark.xdist_group("wire")

USERS = ("ana", "bob", "eva")


@pytest.mark.slow
def test_nothing_fails_for_ten_minutes(tmp_path):
    seconds = float(os.environ.get("DISCREET_SOAK_SECONDS", "600"))
    rows = int(os.environ.get("DISCREET_SOAK_ROWS", "1000000"))
    # Each user is answered by another guard, from one ledger.
    gate = dc.Gateway(
        population(rows),
        guard=dc.Perturbation(epsilon=1e9, per_query=0.1, bounds={"salary": (0, 500_000)}),
        policies={"user:bob": dc.Restriction(k=5), "user:eva": dc.Camouflage(bound=0.3)},
        apart=True,
        ledger=tmp_path / "ledger.db",
    )
    failures: list[str] = []
    answers, refused = [0] * 64, [0] * 64
    end = 0.0

    def ask(number: int, port: int) -> None:
        chance = random.Random(number)
        try:
            with connect(port, USERS[number % 3], connect_timeout=120) as client:
                while time.monotonic() < end:
                    low = chance.randint(16, 40)
                    what = chance.choice(("COUNT(*)", "SUM(salary)", "AVG(salary)"))
                    key = chance.choice(("sex", "education", "sector"))
                    where = f"age BETWEEN {low} AND {low + chance.randint(5, 40)}"
                    sql = f"SELECT {key}, {what} FROM people WHERE {where} GROUP BY {key}"
                    if chance.random() < 0.5:
                        sql = f"SELECT {what} FROM people WHERE {where}"
                    try:
                        client.execute(sql).fetchall()
                        answers[number] += 1
                    except psycopg.errors.InsufficientPrivilege:
                        refused[number] += 1
        except psycopg.Error as error:
            failures.append(f"{type(error).__name__}: {error}")

    users = {name: user(name) for name in USERS}
    with served_here({"people": gate}, users, tmp_path, patience=600) as at:
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=ask, args=(n, at.postgres)) for n in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 300)
        assert gate.ledger.verify().intact
    assert failures == []
    assert min(answers) > 0
    # Exact answers alone are ever refused.
    assert sum(refused) == sum(refused[1::3])
    figures = {"seconds": seconds, "answers": sum(answers), "refused": sum(refused)}
    print(figures | {"by": {name: sum(answers[n::3]) for n, name in enumerate(USERS)}})  # noqa: T201  # figures of a run
