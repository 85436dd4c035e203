"""k-map risk: classes that are small in the population, not only in the file."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding, RiskMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["KMapRisk"]


@dataclasses.dataclass(frozen=True)
class KMapRisk(RiskMeasure):
    """Share of records whose class has fewer than k people in the population.

    People are counted in the file of the population, or estimated by the weights.

    Examples
    --------
    >>> import pandas as pd
    >>> pair = Pair.of(pd.DataFrame({"age": [20, 20, 30]}), keys=["age"], population=9)
    >>> KMapRisk(5).measure(pair, rng=Randomness.seeded(1)).value
    0.3333333333333333
    """

    name: ClassVar[str] = "k-map-risk"
    reference: ClassVar[str] = "Sweeney, Computational Disclosure Control, 2001"
    needs: ClassVar[str] = "the population, its size or sampling weights"
    scenario: ClassVar[str] = (
        "The intruder knows the keys of everyone in the population and takes a released record for "
        "a person when fewer than k people fit it."
    )

    k: int = parameter(5, help="fewest people who must fit", low=1)

    def applies(self, pair: Pair) -> bool:
        """Needs the population, its size or weights."""
        return super().applies(pair) and (pair.everyone is not None or pair.weights is not None)

    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return the share of records below k."""
        people = pair.people
        assert people is not None
        below = people < self.k - 1e-9
        value = float(below.mean())
        words = f"{value:.1%} of records fit fewer than {self.k} people of the population"
        return self.finding(value, words, {"fewest people": float(people.min())}, 1 / people)
