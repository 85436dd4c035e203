"""Kill a gateway under load again and again, and see that nothing was lost or answered twice.

Run ``python -m tests.ledger.crash LEDGER ROUNDS``. Each round forks a gateway that answers from
four threads and reports each answer it has delivered through a pipe; the parent kills it with
SIGKILL at a random moment, reopens the ledger and compares. What a gateway imports when it first
answers is imported once, before the forks: a round is then a start, a load and a kill, not an import.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import signal
import sys
import threading
import time

import discreet as dc
from discreet.demo import salaries
from discreet.dp.accountant import Accountant
from discreet.ledger.opening import open_ledger

LIMIT = 40.0
GUARD = dc.Perturbation(epsilon=LIMIT, per_query=0.01, user_epsilon=10.0)


def serve(ledger: str, out: int, seed: int) -> None:
    """Answer until killed; write each delivered answer's number and value."""
    gate = dc.Gateway(salaries(), guard=GUARD, ledger=ledger)

    def ask(thread: int) -> None:
        rng = random.Random(seed * 10 + thread)
        while True:
            sql = f"SELECT COUNT(*) FROM people WHERE salary > {rng.randrange(2000)}"
            answer = gate.ask(sql, user=f"user{rng.randrange(8)}")
            if answer.kind == "refused":
                assert answer.code == "budget-exhausted", answer
                continue
            line = json.dumps([answer.number, answer.value(), answer.question])
            os.write(out, line.encode() + b"\n")

    threads = [threading.Thread(target=ask, args=(n,), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    threads[0].join()


def preload() -> None:
    """Import here what a gateway imports; threads of an engine would not survive a fork."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            with dc.Gateway(salaries(), guard=GUARD) as gate:
                gate.ask("SELECT COUNT(*) FROM people", user="user0")
            from discreet.queries import packing  # noqa: F401  # what `compare` reads answers with

            with os.fdopen(write, "w") as out:
                out.write("\n".join(sys.modules))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        names = told.read().split()
    os.waitpid(child, 0)
    assert "opendp.measurements" in names, "the gateway that was to be imported did not answer"
    for name in names:
        with contextlib.suppress(ImportError):  # some names are made by their packages
            importlib.import_module(name)


def round_(ledger: str, seed: int, rng: random.Random) -> list[list[object]]:
    """Run one gateway, kill it, and return what it delivered."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            serve(ledger, write, seed)
        finally:
            os._exit(1)
    os.close(write)
    data = b""
    started = time.monotonic()
    deadline = None
    while True:
        # The clock runs from the first answer, so that the kill falls into the load.
        if data and deadline is None:
            deadline = time.monotonic() + rng.uniform(0.0, 0.15)
        if deadline is not None and time.monotonic() >= deadline:
            break
        if time.monotonic() - started > 600:
            raise AssertionError("the gateway gave no answer")
        os.set_blocking(read, False)
        try:
            data += os.read(read, 65536)
        except BlockingIOError:
            time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.set_blocking(read, True)
    while part := os.read(read, 65536):
        data += part
    os.close(read)
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def compare(ledger: str, delivered: list[list[object]]) -> int:
    """Return the number of entries; raise if the ledger does not hold what was delivered."""
    from discreet.queries.packing import unpacked

    with open_ledger(ledger) as book:
        verification = book.verify()
        assert verification.intact, verification
        entries = {entry.number: entry for entry in book.entries()}
        for number, value, question in delivered:
            entry = entries[number]
            assert entry.question == question
            assert unpacked(entry.answer).column("m0")[0].as_py() == value
        accountant = Accountant("basic")
        # Charged before the engine runs: a kill may leave a charge without its answer, and the
        # same question asked again is not charged again; no answer is without a charge.
        paid = [(e.user, e.digest) for e in entries.values() if "charges" in e.details]
        answered = {(e.user, e.digest) for e in entries.values() if e.kind == "noisy"}
        assert len(paid) == len(set(paid))
        assert answered <= set(paid)
        charged = len(paid)
        total = accountant.epsilon(book.spent("people", "dataset"))
        assert abs(total - 0.01 * charged) < 1e-6
        assert total <= LIMIT + 1e-6
        for user in range(8):
            assert accountant.epsilon(book.spent("people", f"user:user{user}")) <= 10.0 + 1e-6
        return len(entries)


def main(ledger: str, rounds: int) -> None:
    preload()
    rng = random.Random(7)
    delivered = 0
    entries = 0
    for number in range(rounds):
        answers = round_(ledger, number, rng)
        delivered += len(answers)
        entries = compare(ledger, answers)
        if number % 20 == 19:
            sys.stderr.write(f"{number + 1} rounds, {delivered} answers delivered\n")
    sys.stdout.write(f"{rounds} kills, {delivered} delivered, {entries} entries, intact\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
