"""Interval overlap: whether a reader of the release would conclude what a reader of the original does."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.errors import InputError
from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure
from discreet.microdata.utilities.regression import Interval, Regression
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["IntervalOverlap"]


@dataclasses.dataclass(frozen=True)
class IntervalOverlap(UtilityMeasure):
    """Overlap of the 95 % confidence intervals of the analyst's own regression, written as a formula.

    For the intervals (l, u) of the original and of the release it is the mean of what they share,
    min u − max l, over the length of each: 1 where they are the same, below 0 where they lie apart.
    The value is 1 minus the mean over the coefficients, at most 1.

    Examples
    --------
    >>> import pandas as pd
    >>> raw = pd.DataFrame({"age": [20.0, 30, 40, 50], "pay": [1.0, 2.1, 2.9, 4]})
    >>> pair = Pair.of(raw, raw.assign(pay=raw.pay + 50), paired=False)
    >>> found = IntervalOverlap("pay ~ age").compare(pair, rng=Randomness.seeded(1)).facts
    >>> round(found["age"]["overlap"], 6), found["(constant)"]["overlap"] < 0
    (1.0, True)
    """

    name: ClassVar[str] = "interval-overlap"
    reference: ClassVar[str] = (
        "Karr et al., The American Statistician 2006; Snoke et al., JRSS A 2018"
    )
    needs_origin: ClassVar[bool] = False

    formula: str | None = parameter(None, help="the regression, such as 'income ~ age + sex'")

    def applies(self, pair: Pair) -> bool:
        """Only where the caller says which regression."""
        return self.formula is not None and super().applies(pair)

    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        """Return one minus the mean overlap of the intervals."""
        del rng
        target, _, terms = (self.formula or "").partition("~")
        on = tuple(term.strip() for term in terms.split("+") if term.strip())
        if not target.strip() or not on:
            raise InputError(
                "the regression is not understood",
                code="parameter-type",
                hint="write 'income ~ age + sex'",
                parameter="formula",
            )
        facts = {
            name: {"before": one[0], "after": two[0], "overlap": shared(one, two)}
            for name, one, two in Regression(target.strip(), on=on).intervals(pair)
        }
        mean = float(np.mean([own["overlap"] for own in facts.values()]))
        words = f"the coefficients' intervals overlap by {mean:.1%} on average"
        return self.comparison(min(1 - mean, 1.0), words, facts)


def shared(one: Interval, two: Interval) -> float:
    """Return the mean share of two intervals that both cover; negative where they lie apart.

    >>> shared((0.0, 1.0), (1.0, 1.0)), shared((0.0, 1.0), (3.0, 1.0))
    (0.5, -0.5)
    """
    if one == two:
        return 1.0
    reach = min(one[0] + one[1], two[0] + two[1]) - max(one[0] - one[1], two[0] - two[1])
    lengths = [2 * half for half in (one[1], two[1])]
    return float(np.mean([reach / length if length > 0 else 0.0 for length in lengths]))
