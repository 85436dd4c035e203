"""The attack on repeated releases: the same table again and again."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.attacks._tables import Counts, Publish, Rates, TableAttack
from discreet.dp.noise import add_gaussian
from discreet.errors import RefusedError
from discreet.registry import parameter

__all__ = ["RepeatedReleases"]


@dataclasses.dataclass(frozen=True)
class RepeatedReleases(TableAttack):
    """Average the same table over many releases: without a ledger the noise goes away.

    Examples
    --------
    >>> RepeatedReleases().control().succeeded
    True
    """

    name: ClassVar[str] = "repeated-releases"
    reference: ClassVar[str] = "Dwork and Roth (2014), Algorithmic foundations of DP, 3.5"

    times: int = parameter(200, help="how often the table is asked for", low=1)

    def run(self, publish: Publish, truth: Counts, cell: int) -> Rates:
        """Attack whoever publishes the table on demand; refusals end the attack."""
        found, refused = [], 0
        for _ in range(self.times):
            try:
                found.append(float(publish(truth)[cell]))
            except RefusedError:
                refused += 1
        mean = float(np.mean(found)) if found else None
        done = mean is not None and not refused and abs(mean - float(truth[cell])) < 0.5
        return Rates(self.name, self.times, refused, mean, mean, done, float(done), 0.0)

    def control(self) -> Rates:
        """Attack noise that anybody may have drawn anew."""
        return self.run(lambda counts: add_gaussian(counts, scale=1.0), np.array([5, 12, 0]), 1)
