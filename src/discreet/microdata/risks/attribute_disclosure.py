"""Attribute disclosure: what a class of records that look alike gives away all the same."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from discreet.microdata.columns import codes
from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding, RiskMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["AttributeDisclosure"]


@dataclasses.dataclass(frozen=True)
class AttributeDisclosure(RiskMeasure):
    """Share of records whose class tells a confidential value though it does not tell the record.

    A categorical value is told when the whole class has it; a number when the class spans less
    than `width` of the column's range. Also how sure the intruder is on average of the most
    frequent value of the class.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(
    ...     pd.DataFrame({"age": [1, 1, 2, 2], "ill": ["flu", "flu", "flu", "cold"]}),
    ...     roles={"age": "quasi", "ill": "confidential"},
    ... )
    >>> AttributeDisclosure().measure(Pair.of(people), rng=Randomness.seeded(1)).value
    0.5
    """

    name: ClassVar[str] = "attribute-disclosure"
    reference: ClassVar[str] = "Machanavajjhala et al., l-diversity, TKDD 2007"
    needs: ClassVar[str] = "a confidential column in the release"
    scenario: ClassVar[str] = (
        "The intruder finds the class a person belongs to, cannot tell which record is theirs, and "
        "does not need to, because all records of the class say the same."
    )

    width: float = parameter(0.05, help="share of the range within which numbers agree", above=0)

    def applies(self, pair: Pair) -> bool:
        """Needs a confidential column."""
        return super().applies(pair) and bool(pair.confidential)

    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return the share of records that lose a confidential value."""
        lost = np.zeros(pair.size, bool)
        facts: dict[str, Any] = {}
        for name in pair.confidential:
            here, sure = self._column(pair, name)
            lost |= here
            facts[name] = {"disclosed": float(here.mean()), "mean confidence": sure}
        value = float(lost.mean())
        words = f"{value:.1%} of records lose a confidential value through their class alone"
        return self.finding(value, words, facts, lost.astype(np.float64))

    def _column(self, pair: Pair, name: str) -> tuple[np.ndarray, float | None]:
        group, many = pair.class_of, int(pair.class_of.max()) + 1
        if pair.is_numeric(name):
            values = pair.numbers(name)[1]
            known = ~np.isnan(values)
            low, high = np.full(many, np.inf), np.full(many, -np.inf)
            np.minimum.at(low, group[known], values[known])
            np.maximum.at(high, group[known], values[known])
            spread = float(np.ptp(values[known])) if known.any() else 0.0
            return known & ((high - low)[group] < self.width * spread), None
        places, words = codes(pair.after(name))
        known = places >= 0
        width = len(words) + 1
        cells, counts = np.unique(group * width + places + 1, return_counts=True)
        most = np.zeros(many)
        np.maximum.at(most, cells // width, counts)
        share = most / np.bincount(group, minlength=many)
        return known & (share[group] == 1.0), float(share[group].mean())
