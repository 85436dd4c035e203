"""Replicated uniques: people alone in the file whom the release holds again."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.microdata.columns import Numbers, Places
from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding
from discreet.microdata.risks._holdout import HoldoutRisk, Sides, interval
from discreet.randomness import Randomness

__all__ = ["ReplicatedUniques"]


@dataclasses.dataclass(frozen=True)
class ReplicatedUniques(HoldoutRisk):
    """Count the records that are alone in the file and come again in the release, whole.

    Some do so by chance: as many as of other people's file, where it has the same size. The value is
    the share of the file's unique records that come again, minus that of the other file's.

    Examples
    --------
    >>> import pandas as pd
    >>> people, others = pd.DataFrame({"a": range(0, 9)}), pd.DataFrame({"a": range(5, 14)})
    >>> pair = Pair.of(people, people, holdout=others, paired=False)
    >>> found = ReplicatedUniques().measure(pair, rng=Randomness.seeded(1))
    >>> round(found.facts["in the file"], 3), round(found.facts["not in the file"], 3)
    (1.0, 0.444)
    """

    name: ClassVar[str] = "replicated-uniques"
    reference: ClassVar[str] = "Raab, Nowok and Dibben, synthpop disclosure measures, 2024"
    scenario: ClassVar[str] = "knows somebody's whole record, and finds it in the release"

    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return the excess of unique records that come again."""
        inside, outside, synthetic = Sides.of(pair).rows
        again = [_again(side, synthetic) for side in (inside, outside)]
        copies = [float(np.isin(side, synthetic).mean()) for side in (inside, outside)]
        gain = _gain(*again)
        low, high = interval(_gain, *again, rng=rng) if all(a.size for a in again) else (0.0, 0.0)
        facts = {
            "in the file": _mean(again[0]),
            "not in the file": _mean(again[1]),
            "copies in the file": copies[0],
            "copies not in the file": copies[1],
            "low": low,
            "high": high,
        }
        words = (
            f"{facts['in the file']:.1%} of the people alone in the file come again, as do "
            f"{facts['not in the file']:.1%} of people alone among others"
        )
        return self.finding(max(0.0, gain), words, facts)


def _again(side: Places, synthetic: Places) -> Numbers:
    found, count = np.unique(side, return_counts=True)
    return np.isin(found[count == 1], synthetic).astype(np.float64)


def _mean(values: Numbers) -> float:
    return float(values.mean()) if values.size else 0.0


def _gain(inside: Numbers, outside: Numbers) -> float:
    return _mean(inside) - _mean(outside)
