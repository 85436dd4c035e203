"""Opening a ledger of many entries: verified since a checkpoint, from the start, and by a gateway.

    python benchmarks/ledger_opening.py [ENTRIES]

A gateway answers some hundred questions; the same answers are recorded for more and more users, until
the ledger holds so many entries of real size. Prints wall and CPU seconds, the best of three.
"""

from __future__ import annotations

import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import discreet as dc
from discreet.demo import population
from discreet.ledger.entry import Charge, Draft, Entry
from discreet.ledger.opening import open_ledger
from discreet.ledger.queue import Ticket
from discreet.ledger.store import Ledger

GUARDS = {
    "perturbation": dc.Perturbation(epsilon=1e6, per_query=1.0, bounds={"salary": (0, 500_000)}),
    "restriction": dc.Restriction(k=5),
}


def statements() -> Iterator[str]:
    """Return 500 questions about groups and ranges."""
    for low in range(18, 68):
        for width in range(5, 15):
            yield (
                "SELECT sector, COUNT(*), AVG(salary) FROM people "
                f"WHERE age BETWEEN {low} AND {low + width} GROUP BY sector"
            )


def fill(place: Path, entries: int, guard: dc.Guard, people: dc.Dataset) -> None:
    """Make a ledger with so many entries of what a gateway answers."""
    with dc.Gateway(people, guard=guard, ledger=place) as gate:
        for sql in statements():
            gate.ask(sql, user="u0")
        known = [e for e in gate.ledger.entries() if e.kind in ("charged", "noisy", "exact")]
        number, person = len(list(gate.ledger.entries())), 0
        while number < entries:
            person += 1
            copied = [(entry, f"u{person}") for entry in known[: entries - number]]
            tickets = [record(gate.ledger, *one) for one in copied]
            for ticket in tickets:
                ticket.result()
            number += len(tickets)


def record(ledger: Ledger, entry: Entry, user: str) -> Ticket:
    """Record an answer again, for somebody else."""
    details = dict(entry.details)
    charges = [
        Charge(scope if scope == "dataset" else f"user:{user}", events, lambda _: True)
        for scope, events in details.pop("charges", {}).items()
    ]
    draft = Draft(
        entry.dataset, user, entry.kind, entry.question, entry.digest, entry.policy, details,
        entry.answer,
    )  # fmt: skip
    return ledger.submit(draft, charges)


def timed(what: str, run: Callable[[], object]) -> None:
    """Print wall and CPU seconds of the best of three runs."""
    best = (float("inf"), 0.0)
    for _ in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
    print(f"|{what}|{best[0]:.2f}|{best[1]:.2f}|", flush=True)


def forget_checkpoint(place: Path) -> None:
    """Take the checkpoint out, as if the ledger had never been verified."""
    with sqlite3.connect(place) as connection:
        connection.execute("DELETE FROM discreet_checkpoint")
    connection.close()


def open_from_the_start(place: Path) -> None:
    """Open a ledger that has no checkpoint."""
    forget_checkpoint(place)
    open_ledger(place).close()


def ask_once(people: dc.Dataset, guard: dc.Guard, place: Path) -> None:
    """Open a gateway and ask what it was asked before."""
    with dc.Gateway(people, guard=guard, ledger=place) as gate:
        gate.ask("SELECT COUNT(*) FROM people", user="u0")


def main(entries: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        people = population(20_000, seed=1)
        for name, guard in GUARDS.items():
            place = Path(folder) / f"{name}.db"
            fill(place, entries, guard, people)
            size = place.stat().st_size / 1e6
            print(
                f"\n{name}: {entries:,} entries, {size:.0f} MB\n\n|opened|wall s|CPU s|\n|---|---|---|"
            )
            timed("the ledger, with a checkpoint", lambda p=place: open_ledger(p).close())
            timed("the ledger, without one", lambda p=place: open_from_the_start(p))
            timed(
                "the gateway, and one question answered",
                lambda p=place, g=guard: ask_once(people, g, p),
            )
            with open_ledger(place, read_only=True) as ledger:
                timed("`discreet ledger verify`", ledger.verify)
    print(f"\npeak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
