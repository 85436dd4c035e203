"""Minutes of load over the wire without a failure; DISCREET_SOAK_SECONDS sets how long."""

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


@pytest.mark.slow
def test_nothing_fails_for_ten_minutes(tmp_path):
    seconds = float(os.environ.get("DISCREET_SOAK_SECONDS", "600"))
    gate = dc.Gateway(
        population(20_000),
        guard=dc.Perturbation(epsilon=1e9, per_query=0.1, bounds={"salary": (0, 500_000)}),
        ledger=tmp_path / "ledger.db",
    )
    failures: list[str] = []
    answers = [0] * 64
    end = time.monotonic() + seconds

    def ask(number: int, port: int) -> None:
        chance = random.Random(number)
        try:
            with connect(port, connect_timeout=120) as client:
                while time.monotonic() < end:
                    low = chance.randint(16, 40)
                    what = chance.choice(("COUNT(*)", "AVG(salary)"))
                    sql = f"SELECT {what} FROM people WHERE age BETWEEN {low} AND {low + chance.randint(5, 40)}"
                    client.execute(sql).fetchall()
                    answers[number] += 1
        except psycopg.Error as error:
            failures.append(f"{type(error).__name__}: {error}")

    with served_here({"people": gate}, {"ana": user("ana")}, tmp_path) as at:
        threads = [threading.Thread(target=ask, args=(n, at.postgres)) for n in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 300)
    assert failures == []
    assert min(answers) > 0
    print({"seconds": seconds, "answers": sum(answers)})  # noqa: T201  # figures of a run
