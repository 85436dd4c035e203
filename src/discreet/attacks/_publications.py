"""What attacks on several publications share: sums that were printed, and who is in them.

The attacker knows everybody's public columns (a register) and reads what was published: tables,
answers, sums of files. Every printed number is one equation over the people in it.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.attacks._base import Attack, Attacked, AttackReport

__all__ = ["Printed", "PublicationAttack", "SumsAttack", "printed_table"]


@dataclasses.dataclass(frozen=True)
class Printed:
    """A number that was printed, and the people that it is about, by their names."""

    people: frozenset[Any]
    value: float


def printed_table(
    rows: Sequence[Mapping[str, Any]],
    register: Mapping[Any, Mapping[str, Any]],
    by: Sequence[str],
    *,
    value: str = "value",
    total: str = "Total",
) -> list[Printed]:
    """Return the numbers of a published table; withheld cells give none. Any: values of columns.

    >>> people = {"ana": {"sector": "IT"}, "bob": {"sector": "HC"}}
    >>> cells = [{"sector": "Total", "value": 9.0}, {"sector": "IT", "value": None}]
    >>> [(len(one.people), one.value) for one in printed_table(cells, people, ["sector"])]
    [(2, 9.0)]
    """
    found = []
    for row in rows:
        if row[value] is None or row[value] != row[value]:  # not a number
            continue
        inside = frozenset(
            name
            for name, known in register.items()
            if all(str(row[c]) in (total, str(known[c])) for c in by)
        )
        found.append(Printed(inside, float(row[value])))
    return found


class PublicationAttack(Attack):
    """An attack on several publications about the same people."""

    attacks: ClassVar[Attacked] = "publications"


@dataclasses.dataclass(frozen=True)
class SumsAttack(PublicationAttack):
    """Solves all printed sums for one person."""

    def run(self, printed: Sequence[Printed], victim: Any, truth: float) -> AttackReport:
        """Attack printed sums; the truth only says whether it succeeded. Any: a person's name."""
        people = sorted({name for one in printed for name in one.people}, key=str)
        place = {name: number for number, name in enumerate(people)}
        found = None
        if victim in place:
            rows = np.zeros((len(printed), len(people)))
            for number, one in enumerate(printed):
                rows[number, [place[name] for name in one.people]] = 1.0
            wanted = np.zeros(len(people))
            wanted[place[victim]] = 1.0
            weights, *_ = np.linalg.lstsq(rows.T, wanted, rcond=None)
            if np.abs(rows.T @ weights - wanted).max() < 1e-6:
                found = float(weights @ np.array([one.value for one in printed]))
        done = found is not None and abs(found - truth) <= 0.01 * max(abs(truth), 1.0)
        return AttackReport(self.name, len(printed), 0, found, found, succeeded=done)

    def control(self) -> AttackReport:
        """Attack publications that were made without memory."""
        printed, victim, truth = self.example()
        return self.run(printed, victim, truth)

    @abc.abstractmethod
    def example(self) -> tuple[list[Printed], Any, float]:
        """Return what was printed without memory, a victim, and the truth. Any: a name."""
