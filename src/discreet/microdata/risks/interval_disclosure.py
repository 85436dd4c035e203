"""Interval disclosure: released numbers that stay close to the true ones."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding, RiskMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["IntervalDisclosure"]


@dataclasses.dataclass(frozen=True)
class IntervalDisclosure(RiskMeasure):
    """Share of numbers that lie in a narrow interval around what is released for them.

    The interval reaches `width` standard deviations of the column (`deviation`), or `width` of all
    ranks (`rank`), to either side. Looks at every number that is released and was changed anywhere.

    Examples
    --------
    >>> import pandas as pd
    >>> raw, safe = pd.DataFrame({"pay": [0.0, 100.0]}), pd.DataFrame({"pay": [1.0, 50.0]})
    >>> pair = Pair.of(raw, safe, keys=["pay"])
    >>> IntervalDisclosure().measure(pair, rng=Randomness.seeded(1)).value
    0.5
    """

    name: ClassVar[str] = "interval-disclosure"
    of_sample: ClassVar[bool] = True
    reference: ClassVar[str] = (
        "Pagliuca and Seri 1999; Mateo-Sanz, Sebé and Domingo-Ferrer, PSD 2004"
    )
    needs: ClassVar[str] = "a released file in which a number was changed"
    scenario: ClassVar[str] = (
        "The intruder knows which record belongs to a person and would like to know a number: being "
        "told it almost exactly is as good as being told it."
    )

    width: float = parameter(0.05, help="half of the interval", above=0)
    by: str = parameter("deviation", help="unit of the width", choices=("deviation", "rank"))

    def applies(self, pair: Pair) -> bool:
        """Needs a number that was changed."""
        return pair.size > 0 and bool(self._columns(pair))

    def _columns(self, pair: Pair) -> list[str]:
        if pair.original is pair.released:
            return []
        numeric = [name for name in pair.shared if pair.is_numeric(name)]
        return [n for n in numeric if not np.array_equal(*pair.numbers(n), equal_nan=True)]

    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return the mean share over the changed columns."""
        facts: dict[str, Any] = {}
        inside = []
        for name in self._columns(pair):
            before, after = pair.numbers(name)
            near = self._near(before, after)
            inside.append(near)
            facts[name] = float(near.mean())
        records = np.mean(inside, axis=0)
        value = float(records.mean())
        words = f"{value:.1%} of changed columns' numbers are still told to within {self.width:.0%}"
        return self.finding(value, words, facts, records)

    def _near(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        known = ~np.isnan(before)
        if self.by == "deviation":
            spread = float(before[known].std()) if known.any() else 0.0
            close: np.ndarray = np.abs(before - after) <= self.width * spread
            return close  # missing is near nothing
        order = np.sort(before[known])
        place = [
            np.searchsorted(order, v, side=s) for v in (before, after) for s in ("left", "right")
        ]
        one, two = place[0] + place[1], place[2] + place[3]
        near = np.abs(one - two) / 2 <= self.width * max(order.size, 1)
        told: np.ndarray = near & known & ~np.isnan(after)
        return told
