"""Linkage with an outside register."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from discreet.attacks._base import AttackReport
from discreet.attacks._publications import PublicationAttack
from discreet.registry import parameter

__all__ = ["RegisterLinkage"]


@dataclasses.dataclass(frozen=True)
class RegisterLinkage(PublicationAttack):
    """Find records that share all their keys with nobody else, and look them up by name.

    Examples
    --------
    >>> RegisterLinkage().control().succeeded
    True
    """

    name: ClassVar[str] = "register-linkage"
    reference: ClassVar[str] = "Sweeney (2002), k-anonymity, IJUFKS 10"

    keys: tuple[str, ...] = parameter(
        ("zip", "birth", "sex"), help="columns that the file and the register share"
    )

    def run(
        self, file: Sequence[Mapping[str, Any]], register: Sequence[Mapping[str, Any]]
    ) -> AttackReport:
        """Link a released file with a register of names; it succeeds if anybody is found.

        Any: values of columns.
        """
        names = Counter(self._key(row) for row in register)
        rows = Counter(self._key(row) for row in file)
        found = sum(count == 1 and names[key] == 1 for key, count in rows.items())
        share = found / len(file) if file else 0.0
        return AttackReport(self.name, len(file), 0, share, share, succeeded=found > 0)

    def _key(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row.get(name) for name in self.keys)

    def control(self) -> AttackReport:
        """Link a hospital's file, its names taken out, with the list of voters."""
        values = ["02138", "1945-07-31", "m"], ["02139", "1945-07-31", "f"]
        several = [dict(zip(self.keys, row, strict=False)) for row in values]
        voters = [{**row, "name": name} for row, name in zip(several, "ab", strict=True)]
        return self.run([{**row, "ill": "flu"} for row in several], voters)
