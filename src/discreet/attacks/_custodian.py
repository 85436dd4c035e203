"""Attacks on what a gateway remembers: they open it again, over other rows, names or ledgers.

The attacker does not hold the data. Somebody else adds a row, serves the records under a second name
or restores a backup; the attacker asks before and after, and subtracts.
"""

from __future__ import annotations

import abc
import contextlib
import csv
import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from discreet.attacks._base import (
    Attack,
    Attacked,
    AttackReport,
    Interrogation,
    Victim,
    combination,
)
from discreet.errors import DiscreetError

__all__ = ["Custodian", "HistoryAttack", "Site"]


class Open(Protocol):
    """A gateway that answers until it is closed."""

    def ask(self, sql: str, *, user: str) -> Any:
        """Answer a statement. Any: whatever has `kind` and `table`."""

    def close(self) -> None:
        """End it."""


class Custodian(Protocol):
    """Opens a gateway over a file under a name, with a ledger whose head is noted in a file."""

    def __call__(self, source: Path, *, name: str, ledger: Path, head: Path) -> Open:
        """Return the gateway, or refuse to open it."""


@dataclasses.dataclass(frozen=True)
class Site:
    """The files of one custodian: two sources may be written, a ledger, and a noted head."""

    folder: Path

    @property
    def source(self) -> Path:
        """The records."""
        return self.folder / "people.csv"

    @property
    def ledger(self) -> Path:
        """What was answered about them."""
        return self.folder / "ledger.db"

    @property
    def head(self) -> Path:
        """Where the ledger's end is noted; it lies elsewhere, and nobody restores it."""
        return self.folder / "head.json"

    def write(self, rows: Sequence[dict[str, Any]], place: Path | None = None) -> None:
        """Write the records, or a view of them to another place. Any: numbers and texts."""
        with (place or self.source).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


@dataclasses.dataclass(frozen=True)
class HistoryAttack(Attack):
    """An attack that has a gateway opened more than once."""

    attacks: ClassVar[Attacked] = "history"

    @abc.abstractmethod
    def ask_twice(self, asking: Asking) -> Sequence[tuple[float, float] | None]:
        """Ask for a sum with the victim and for the same without; return both."""

    def run(
        self,
        open_gateway: Custodian,
        rows: Sequence[dict[str, Any]],
        victim: Victim,
        truth: float,
        *,
        tolerance: float = 0.01,
    ) -> AttackReport:
        """Attack a custodian who holds these rows, of which the victim's is the last.

        Any: numbers and texts.
        """
        with tempfile.TemporaryDirectory(prefix="discreet-attack-") as folder:
            asking = Asking(open_gateway, Site(Path(folder)), rows, victim)
            more, less = self.ask_twice(asking)
        found = combination([(1, more), (-1, less)])
        return asking.report(self.name, found, truth, tolerance=tolerance)

    def control(self) -> AttackReport:
        """Attack a gateway that remembers by name and ledger, over the introductory example."""
        from discreet.attacks._forgetful import Forgetful
        from discreet.demo.datasets import salaries

        rows = salaries().arrow().to_pylist()
        who = "sector = 'Fin' AND region = 'TGN'"
        rows.sort(key=lambda row: (row["sector"], row["region"]) == ("Fin", "TGN"))
        victim = Victim("people", "salary", who, "region = 'TGN'", "sector = 'IT'")
        return self.run(Forgetful, rows, victim, truth=150_000.0)


class Asking:
    """Opens, asks and closes for an attack, and keeps count."""

    def __init__(
        self,
        open_gateway: Custodian,
        site: Site,
        rows: Sequence[dict[str, Any]],
        victim: Victim,
    ) -> None:
        self._open, self.site, self.rows, self.victim = open_gateway, site, rows, victim
        self.asked = self.refused = 0

    def visit(self) -> None:
        """Have the gateway opened and closed, so that its ledger exists."""
        with contextlib.suppress(DiscreetError):
            self._opened(self.victim.relation, None).close()

    def view(self) -> Path:
        """Write the records without the columns that the attacker does not ask about."""
        needed = (self.victim.column, self.victim.condition, self.victim.group)
        kept = [name for name in self.rows[0] if any(name in text for text in needed)]
        place = self.site.folder / "view.csv"
        self.site.write([{name: row[name] for name in kept} for row in self.rows], place)
        return place

    def _opened(self, name: str, ledger: Path | None, source: Path | None = None) -> Open:
        return self._open(
            source or self.site.source,
            name=name,
            ledger=ledger or self.site.ledger,
            head=self.site.head if ledger is None else ledger.with_suffix(".head"),
        )

    def total(
        self,
        *,
        without: bool,
        name: str | None = None,
        ledger: Path | None = None,
        source: Path | None = None,
    ) -> tuple[float, float] | None:
        """Return the sum over the victim's group, with or without the victim."""
        relation = name or self.victim.relation
        condition = f" AND NOT ({self.victim.condition})" if without else ""
        self.asked += 1
        try:
            gate = self._opened(relation, ledger, source)
        except DiscreetError:
            self.refused += 1
            return None
        with contextlib.closing(gate):
            interrogation = Interrogation(gate)
            found = interrogation.value(
                f"SELECT SUM({self.victim.column}) FROM {relation} "  # noqa: S608 - the attacker writes SQL
                f"WHERE {self.victim.group}{condition}"
            )
        self.refused += interrogation.refused
        return found

    def report(
        self, attack: str, found: tuple[float, float] | None, truth: float, *, tolerance: float
    ) -> AttackReport:
        """Return the report; a conclusion counts if both of its ends are near the truth."""
        near = tolerance * max(abs(truth), 1.0)
        hit = found is not None and max(abs(end - truth) for end in found) <= near
        low, high = (None, None) if found is None else found
        return AttackReport(attack, self.asked, self.refused, low, high, hit)
