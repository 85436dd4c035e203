"""What an attack is: it declares what it attacks, and must succeed where nothing protects.

Attacks on gateways ask questions and conclude the value of one person. Attacks on something else
(a gateway's memory, releases, a model, a party's view, files) receive it as an argument of a `run` of their own.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Protocol

from discreet.errors import DiscreetError
from discreet.registry import Member, members
from discreet.report import Report

__all__ = [
    "Attack",
    "AttackReport",
    "Attacked",
    "GatewayAttack",
    "Interrogation",
    "Target",
    "Victim",
    "attacks_on",
]

#: What an attack attacks: `discreet attack` and the laws of what is attacked choose by it.
Attacked = Literal[
    "gateway", "history", "releases", "publications", "tables", "model", "view", "files"
]


class Target(Protocol):
    """What an attack asks: a gateway, or the raw database."""

    def ask(self, sql: str, *, user: str) -> Any:
        """Answer a statement. Any: whatever has `kind` and `table`."""


@dataclasses.dataclass(frozen=True)
class Victim:
    """Somebody the attacker knows by public columns, and what the attacker is after."""

    relation: str
    #: The confidential column.
    column: str
    #: A condition on public columns that only the victim meets.
    condition: str
    #: A condition that the victim meets with many others.
    group: str
    #: Some condition that splits the data about in half and has nothing to do with the victim.
    other: str


@dataclasses.dataclass(frozen=True)
class AttackReport(Report):
    """What an attack found out."""

    attack: str
    asked: int
    refused: int
    #: What the attacker concludes; both ends equal for a value, None if there was no conclusion.
    lower: float | None
    upper: float | None
    #: Whether the conclusion is the victim's value, to within the tolerance.
    succeeded: bool


class Interrogation:
    """Asks questions for an attack and keeps count."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.asked = 0
        self.refused = 0

    def value(self, sql: str, user: str = "attacker") -> tuple[float, float] | None:
        """Return what a one-value question says: both ends of it, or None if refused."""
        self.asked += 1
        answer = self._target.ask(sql, user=user)
        table = answer.table
        if answer.kind == "refused" or table is None or table.num_rows != 1:
            self.refused += 1
            return None
        row = [column[0].as_py() for column in table.columns]
        if any(cell is None for cell in row):
            return None
        return float(row[0]), float(row[-1])

    def sum(
        self, victim: Victim, condition: str, *, column: str | None = None, user: str = "attacker"
    ) -> tuple[float, float] | None:
        """Return what the sum over a condition is said to be, of the victim's column by default."""
        what = f"SELECT SUM({column or victim.column}) FROM {victim.relation}"  # noqa: S608 - the attacker writes SQL
        return self.value(f"{what} WHERE {condition}", user)

    def fails(self, sql: str, user: str = "attacker") -> bool:
        """Whether a statement is not answered, for whatever reason; only that is looked at."""
        self.asked += 1
        try:
            failed = bool(self._target.ask(sql, user=user).kind == "refused")
            self.refused += failed
        except DiscreetError:
            failed = True
        return failed

    def report(
        self,
        attack: GatewayAttack,
        found: tuple[float, float] | None,
        truth: float,
        *,
        tolerance: float,
    ) -> AttackReport:
        """Return the report; a conclusion counts if both of its ends are near the truth."""
        near = tolerance * max(abs(truth), 1.0)
        hit = found is not None and max(abs(end - truth) for end in found) <= near
        low, high = (None, None) if found is None else found
        return AttackReport(attack.name, self.asked, self.refused, low, high, hit)


@dataclasses.dataclass(frozen=True)
class Attack(Member):
    """Base of every attack."""

    #: What it attacks.
    attacks: ClassVar[Attacked]

    @abc.abstractmethod
    def control(self) -> AttackReport:
        """Attack a deliberately naive form of the target, which protects nothing.

        An attack that fails there says nothing where it fails elsewhere.
        """


@dataclasses.dataclass(frozen=True)
class GatewayAttack(Attack):
    """An attack on a gateway: questions about one person."""

    attacks: ClassVar[Attacked] = "gateway"

    @abc.abstractmethod
    def conclude(self, interrogation: Interrogation, victim: Victim) -> tuple[float, float] | None:
        """Ask, and return what follows for the victim's value, or None."""

    def run(
        self, target: Target, victim: Victim, truth: float, *, tolerance: float = 0.01
    ) -> AttackReport:
        """Attack a target; the truth is only used to say whether it succeeded."""
        interrogation = Interrogation(target)
        found = self.conclude(interrogation, victim)
        return interrogation.report(self, found, truth, tolerance=tolerance)

    def control(self) -> AttackReport:
        """Attack the fifteen persons of the introductory example, raw."""
        from discreet.attacks._raw import RawDatabase
        from discreet.demo.datasets import salaries

        who = "sector = 'Fin' AND region = 'TGN'"
        victim = Victim("people", "salary", who, "region = 'TGN'", "sector = 'IT'")
        return self.run(RawDatabase(salaries()), victim, truth=150_000.0)


def attacks_on(attacked: Attacked) -> dict[str, type[Any]]:
    """Return the attacks on one kind of target, by name.

    Any: attacks on different targets have nothing but their declaration in common.

    >>> "tracker" in attacks_on("gateway")
    True
    """
    found: dict[str, type[Any]] = members("attack")
    return {name: attack for name, attack in found.items() if attack.attacks == attacked}


def combination(
    parts: Sequence[tuple[int, tuple[float, float] | None]],
) -> tuple[float, float] | None:
    """Return the ends of a sum of answers with signs; None if any is missing.

    >>> combination([(1, (10.0, 12.0)), (-1, (3.0, 4.0))])
    (6.0, 9.0)
    """
    low = high = 0.0
    for sign, ends in parts:
        if ends is None:
            return None
        low += sign * ends[0] if sign > 0 else sign * ends[1]
        high += sign * ends[1] if sign > 0 else sign * ends[0]
    return low, high
