"""Power cuts: whatever was answered is in the ledger, whatever was spent is spent once."""

import random
import threading
import time
from collections import Counter

import psycopg
import pyarrow as pa
import pytest

import discreet as dc
from discreet.data.sql import Catalog, parse
from discreet.ledger import open_ledger
from discreet.queries.rendering import in_digits
from tests.app.server.serving import Served, write_people, write_policy

pytestmark = pytest.mark.xdist_group("wire")

GUARD = {"perturbation": {"epsilon": 1000.0, "per_query": 0.01, "bounds": {"salary": [0, 200_000]}}}
USERS = tuple(f"user{n}" for n in range(6))
SECTORS, REGIONS = ("IT", "HC", "Fin"), ("TGN", "BCN")
QUESTIONS = [
    f"SELECT {what} AS x FROM people WHERE age < {limit}{where}"
    for limit in range(22, 66)
    for what in ("COUNT(*)", "SUM(salary)", "AVG(salary)")
    for where in (
        "",
        *(f" AND sector = '{s}' AND region = '{r}'" for s in SECTORS for r in REGIONS),
    )
]


class Load:
    """Clients that ask without pause, connect again when cut off, and note what they were told."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.told: list[tuple[str, str, float]] = []
        self.wrong: list[str] = []
        self.stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(who,)) for who in USERS]
        for thread in self._threads:
            thread.start()

    def _ask(self, who: str) -> None:
        choice = random.Random(who)
        while not self.stop.is_set():
            try:
                with self.served.connect(who, connect_timeout=5) as client:
                    while not self.stop.is_set():
                        sql = choice.choice(QUESTIONS)
                        (value,) = client.execute(sql).fetchone()
                        self.told.append((who, sql, float(value)))
            except psycopg.OperationalError:
                time.sleep(0.05)  # cut off, or not up again yet
            except Exception as error:
                self.wrong.append(f"{type(error).__name__}: {error}")
                return

    def flows(self, answers: int = 5, seconds: float = 90) -> None:
        """Wait until some more answers have arrived."""
        goal, limit = len(self.told) + answers, time.monotonic() + seconds
        while len(self.told) < goal and not self.wrong:
            assert time.monotonic() < limit, "no answers arrive"
            time.sleep(0.01)

    def end(self) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join(60)


def survive(folder, ledger: str, kills: int, seed: int) -> dict[str, int]:
    """Kill a server under load again and again; check the ledger; return figures."""
    write_people(folder)
    path = write_policy(
        folder, gateway={"guard": GUARD, "ledger": ledger}, users=("ana", *USERS), workers=1
    )
    served, chance, done = Served(path, ledger), random.Random(seed), Counter()
    try:
        served.wait()
        load = Load(served)
        try:
            for _ in range(kills):
                # Mostly under load; but any moment, also of starting, may be the last.
                if chance.random() < 0.9:
                    load.flows()
                time.sleep(chance.uniform(0.0, 0.3))
                how = chance.choices(("worker", "parent", "all"), (8, 1, 1))[0]
                done[how] += 1
                if how == "worker":
                    served.kill_worker()  # the gateway restarts by itself
                    continue
                served.kill() if how == "all" else served.kill_parent()
                served.restart()
            served.wait()
            load.flows()
        finally:
            load.end()
        assert served.stop() == 0
    finally:
        served.kill()
    assert load.wrong == []
    assert done.total() == kills
    place = ledger if "://" in ledger else str(folder / ledger)
    return check(place, load.told, folder) | {"kills": kills, **done}


def check(ledger: str, told: list[tuple[str, str, float]], folder) -> dict[str, int]:
    with open_ledger(ledger) as book:
        verified = book.verify()
        assert verified.intact, verified.reason
        everything = list(book.entries())
        entries = [entry for entry in everything if entry.kind == "noisy"]
        spent = {who: book.spent("people", f"user:{who}") for who in USERS}
        dataset = book.spent("people", "dataset")
    data = dc.read(folder / "people.csv", roles={"salary": "confidential"}, name="people")
    catalog = Catalog.of("people", data.schema, data.relation.schema)
    queries = {sql: parse(sql, catalog) for sql in QUESTIONS}
    digests = {sql: query.digest for sql, query in queries.items()}
    asked = {query.digest: query for query in queries.values()}
    recorded: dict[tuple[str, str], float] = {}
    for entry in entries:
        with pa.ipc.open_stream(entry.answer) as reader:
            rows = reader.read_all()
        shown = in_digits(asked[entry.digest], rows, entry.details["error_95"])
        (value,) = shown.column("m0").to_pylist()
        recorded[entry.user, entry.digest] = float(value)
    # Each delivered answer is the one recorded for that user and that question.
    missing = [(who, sql) for who, sql, value in told if recorded.get((who, digests[sql])) != value]
    assert missing == [], f"{len(missing)} answers were delivered that the ledger does not hold"
    # Nobody was charged twice for a question, and nothing charged was lost.
    questions = [(entry.user, entry.digest) for entry in entries]
    assert len(questions) == len(set(questions))
    for who in USERS:
        # A charge may be an entry of its own, before the engine runs.
        paid = [e for e in everything if e.user == who and "charges" in e.details]
        assert len(paid) == len({entry.digest for entry in paid})
        assert {e.digest for e in entries if e.user == who} <= {e.digest for e in paid}
        charged = [entry.details["charges"][f"user:{who}"] for entry in paid]
        assert sum(sum(events.values()) for events in charged) == sum(spent[who].values())
    assert sum(dataset.values()) == sum(sum(events.values()) for events in spent.values())
    # The same question had one answer, before and after any crash.
    answers: dict[tuple[str, str], set[float]] = {}
    for who, sql, value in told:
        answers.setdefault((who, sql), set()).add(value)
    assert all(len(values) == 1 for values in answers.values())
    assert len(told) > 0
    return {"answers": len(told), "entries": len(entries)}


def test_sqlite_survives(tmp_path):
    survive(tmp_path, "ledger.db", 3, seed=1)


def test_postgres_survives(tmp_path, postgres_database):
    survive(tmp_path, postgres_database, 3, seed=2)


@pytest.mark.slow
def test_sqlite_survives_two_hundred(tmp_path):
    print(survive(tmp_path, "ledger.db", 200, seed=3))  # noqa: T201  # figures of a run


@pytest.mark.slow
def test_postgres_survives_two_hundred(tmp_path, postgres_database):
    print(survive(tmp_path, postgres_database, 200, seed=4))  # noqa: T201  # as above
