"""The intersection of anonymised files."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from discreet.attacks._base import AttackReport
from discreet.attacks._publications import PublicationAttack

__all__ = ["IntersectionOfFiles"]


@dataclasses.dataclass(frozen=True)
class IntersectionOfFiles(PublicationAttack):
    """Keep only the confidential values that the victim's class has in every file.

    Examples
    --------
    >>> IntersectionOfFiles().control().succeeded
    True
    >>> IntersectionOfFiles().run([["flu", "cold"], ["cold", "flu"]], "flu").succeeded
    False
    """

    name: ClassVar[str] = "intersection-of-files"
    reference: ClassVar[str] = "Ganta, Kasiviswanathan and Smith (2008), KDD"

    def run(self, classes: Sequence[Sequence[Any]], truth: Any) -> AttackReport:
        """Attack the values in the victim's class of each file. Any: values of a column."""
        left = set.intersection(*map(set, classes)) if classes else set()
        only = next(iter(left)) if len(left) == 1 else None
        return AttackReport(self.name, len(classes), 0, None, None, succeeded=only == truth)

    def control(self) -> AttackReport:
        """Attack two 4-anonymous files that have one illness of the victim's class in common."""
        first, second = ["AIDS", "flu", "flu", "cold"], ["AIDS", "cancer", "asthma", "gout"]
        return self.run([first, second], "AIDS")
