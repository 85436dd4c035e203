"""Work for processes that are killed at any moment: one release or answer, then the end."""

from __future__ import annotations

from pathlib import Path

import discreet as dc
from discreet.demo import salaries

#: What a process may be at, by its number.
KINDS = ("table", "other table", "file", "noise", "answer")
EPSILON = 0.01
QUESTION = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"


def work(ledger: str, folder: str, number: int) -> None:
    """Release something about the fifteen people, or ask about them."""
    people, place = salaries(), Path(folder) / f"{number:04d}"
    kind = KINDS[number % len(KINDS)]
    rules = [dc.MinimumFrequency(3)]
    with dc.open_ledger(ledger) as book:
        if kind in ("table", "other table"):
            by = "sector" if kind == "table" else "region"
            table = dc.tabulate(people, by=[by], measure="salary")
            table.protect(rules, ledger=book).write(place, ledger=book)
        elif kind == "file":
            trees = {
                name: (dc.Hierarchy.flat(sorted(set(people.frame[name])), total="*"),)
                for name in ("sector", "region")
            }
            held = people.replace(hierarchies=trees)
            file = dc.anonymize(held, [dc.KAnonymity(5)], ledger=book)
            file.write(place, ledger=book)
        elif kind == "noise":
            counts = dc.tabulate(people, by=["sector"])
            noisy = counts.protect(method=dc.DPTableNoise(epsilon=EPSILON), ledger=book)
            noisy.write(place, ledger=book)
        else:
            with dc.Gateway(people, guard=dc.Restriction(k=3), ledger=book) as gate:
                answer = gate.ask(QUESTION, user=f"user {number}")
            if not answer.refused:
                (Path(folder) / f"{number:04d}.answer").write_text(str(answer.kind))
