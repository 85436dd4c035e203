"""Membership: whether an intruder can tell who is in the file."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.microdata.columns import Numbers
from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding
from discreet.microdata.risks._holdout import HoldoutRisk, Sides, interval
from discreet.randomness import Randomness

__all__ = ["Membership", "area", "roc"]


@dataclasses.dataclass(frozen=True)
class Membership(HoldoutRisk):
    """Call those people members who lie nearest to a released record, and see how often it is right.

    The score of a person is the distance (Gower) to the nearest released record. AUC is the chance
    that a person in the file lies nearer than one who is not: ½ where nothing is told. The value is
    2 AUC − 1, at least 0, with a 95 % bootstrap interval of AUC beside it.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"a": range(0, 80, 2)})
    >>> others = pd.DataFrame({"a": range(1, 81, 2)})
    >>> pair = Pair.of(people, people, holdout=others, paired=False)
    >>> Membership().measure(pair, rng=Randomness.seeded(1)).facts["AUC"]
    1.0
    """

    name: ClassVar[str] = "membership"
    reference: ClassVar[str] = "Shokri et al., S&P 2017; Chen, Yu, Zhang and Fritz, CCS 2020"
    scenario: ClassVar[str] = (
        "knows everything about people, and wants to know who of them is in the file"
    )
    noise: ClassVar[float] = 0.05

    def scores(self, pair: Pair, *, rng: Randomness) -> tuple[Numbers, Numbers]:
        """Return the distance to the nearest released record, of people inside and outside."""
        sides = Sides.of(pair)
        inside, outside = sides.chosen(self.targets, rng)
        return (
            sides.inside.take(inside).nearest(sides.synthetic).astype(np.float64),
            sides.outside.take(outside).nearest(sides.synthetic).astype(np.float64),
        )

    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return how much better than by lot members are told from others."""
        inside, outside = self.scores(pair, rng=rng)
        found = area(inside, outside)
        low, high = interval(area, inside, outside, rng=rng)
        across, up = roc(inside, outside)
        early = float(np.interp(0.01, across, up))
        some = np.unique(np.linspace(0, across.size - 1, 41).astype(int))
        facts = {
            "AUC": found,
            "low": low,
            "high": high,
            "TPR at 1 % FPR": early,
            "ROC": [[round(float(across[n]), 4), round(float(up[n]), 4)] for n in some],
        }
        leaks = low > 0.5
        words = (
            f"who is in the file is {'told' if leaks else 'not told'}: AUC {found:.3f} "
            f"[{low:.3f}, {high:.3f}], where ½ is chance"
        )
        return self.finding(max(0.0, 2 * found - 1), words, facts)


def area(inside: Numbers, outside: Numbers) -> float:
    """Return the chance that one inside is nearer than one outside; ties count half."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([inside, outside]))
    farther = ranks[: inside.size].sum() - inside.size * (inside.size + 1) / 2
    return float(1 - farther / (inside.size * outside.size))


def roc(inside: Numbers, outside: Numbers) -> tuple[Numbers, Numbers]:
    """Return the false and true positive rates as the threshold grows, from 0 to 1."""
    cuts = np.unique(np.concatenate([inside, outside]))
    true = np.searchsorted(np.sort(inside), cuts, side="right") / inside.size
    false = np.searchsorted(np.sort(outside), cuts, side="right") / outside.size
    return np.append(0.0, false), np.append(0.0, true)
