"""Nearest distance: whether the release lies closer to the people in the file than to others."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from discreet.microdata.columns import Numbers
from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding
from discreet.microdata.risks._holdout import HoldoutRisk, interval
from discreet.microdata.risks.membership import Membership
from discreet.randomness import Randomness

__all__ = ["NearestDistance"]


@dataclasses.dataclass(frozen=True)
class NearestDistance(HoldoutRisk):
    """Compare the mean distance to the nearest released record, of people in the file and others.

    The ratio is 1 where the release lies as close to people who are not in the file. The value is
    one minus the ratio, at least 0.

    Examples
    --------
    >>> import pandas as pd
    >>> people, others = pd.DataFrame({"a": [0, 4, 8]}), pd.DataFrame({"a": [1, 5, 8]})
    >>> pair = Pair.of(people, people, holdout=others, paired=False)
    >>> NearestDistance().measure(pair, rng=Randomness.seeded(1)).facts["ratio"]
    0.0
    """

    name: ClassVar[str] = "nearest-distance"
    reference: ClassVar[str] = "Platzer and Reutterer, Frontiers in Big Data 2021"
    scenario: ClassVar[str] = "looks whom the released records lie close to"
    noise: ClassVar[float] = 0.05

    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return how much closer the release lies to people in the file."""
        inside, outside = Membership(targets=self.targets).scores(pair, rng=rng)
        found = _ratio(inside, outside)
        low, high = interval(_ratio, inside, outside, rng=rng)
        words = (
            f"the nearest released record lies {found:.2f} times as far [{low:.2f}, {high:.2f}] "
            "from people in the file as from others"
        )
        facts = {"ratio": found, "low": low, "high": high}
        return self.finding(max(0.0, 1 - found), words, facts)


def _ratio(inside: Numbers, outside: Numbers) -> float:
    other = float(outside.mean())
    return float(inside.mean()) / other if other > 0 else 1.0
