"""Somebody in the middle with a certificate of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.errors import DiscreetError

__all__ = ["SubstitutedCertificate"]


@dataclasses.dataclass(frozen=True)
class SubstitutedCertificate(Attack):
    """Answer in the place of a party, with another certificate of the same name.

    A party that trusts whoever calls itself so hands over its shares; one that compares the pinned
    certificate does not say a word.

    Examples
    --------
    >>> SubstitutedCertificate().control().succeeded
    True
    """

    name: ClassVar[str] = "substituted-certificate"
    reference: ClassVar[str] = "RFC 8446 (TLS 1.3), appendix E; RFC 7469 (pinning)"
    attacks: ClassVar[Attacked] = "view"

    def run(self, call: Callable[[], Any]) -> AttackReport:
        """Let a party call the impostor; whatever it gets out of the call is a success."""
        try:
            heard = call()
        except (DiscreetError, OSError):
            return AttackReport(self.name, 1, 1, None, None, succeeded=False)
        return AttackReport(self.name, 1, 0, None, None, succeeded=bool(heard))

    def control(self) -> AttackReport:
        """Attack a party that compares names only."""
        shown = {"name": "hospital-b", "key": "the impostor's"}
        return self.run(lambda: b"shares" if shown["name"] == "hospital-b" else b"")
