"""A server of private retrieval that changes its answers."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.attacks._lies import NOTICED, LookUp, believed
from discreet.registry import parameter

__all__ = ["LyingServer"]


@dataclasses.dataclass(frozen=True)
class LyingServer(Attack):
    """Change one byte of an answer at a time, until the user believes something that is not so.

    Examples
    --------
    >>> LyingServer(trials=10).run(lambda change: change(b"150"), truth=b"150").succeeded
    True
    """

    name: ClassVar[str] = "lying-server"
    reference: ClassVar[str] = "Beimel and Stahl (2002), Robust information-theoretic PIR, SCN"
    attacks: ClassVar[Attacked] = "view"

    trials: int = parameter(100, help="how many answers are changed", low=1)

    def run(self, look_up: LookUp, truth: Any) -> AttackReport:
        """Lie to a user who looks something up. Any: the value that the user should get.

        Lies that were noticed count as refused. What is believed although it is right is no success:
        some bytes of an encrypted answer only carry noise.
        """
        drawn = np.random.default_rng(1)

        def change(body: bytes) -> bytes:
            changed = bytearray(body)
            changed[drawn.integers(len(body))] ^= int(drawn.integers(1, 256))
            return bytes(changed)

        found = [believed(look_up, change) for _ in range(self.trials)]
        noticed = sum(one is NOTICED for one in found)
        wrong = sum(one is not NOTICED and one != truth for one in found)
        share = wrong / self.trials
        return AttackReport(self.name, self.trials, noticed, share, share, wrong > 0)

    def control(self) -> AttackReport:
        """Attack a user who believes whatever comes back."""
        return self.run(lambda change: change(b"salary 150000"), truth=b"salary 150000")
