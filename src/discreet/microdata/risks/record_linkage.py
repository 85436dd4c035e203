"""Record linkage: an intruder with the original keys looks for each person in the release."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.microdata import linking
from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding, RiskMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["RecordLinkage"]

_WORDS = {
    "exact": "with exactly their keys",
    "distance": "nearest to their keys",
    "rank": "nearest by the ranks of their keys",
    "one-to-one": "in the best one-to-one matching",
}


@dataclasses.dataclass(frozen=True)
class RecordLinkage(RiskMeasure):
    """Share of people whose released record an intruder finds who knows their original keys.

    `exact` picks any record with equal keys; `distance` the nearest one (numbers divided by their
    spread, categories equal or not); `rank` the same on the ranks of numbers; `one-to-one` matches
    targets with their records so that the total distance is least, proven; at most `matched` people,
    drawn at random and matched with their records alone, and for larger files that figure is not
    part of the overall risk. Where categories were recoded the intruder knows the recoding. At most
    `targets` people, drawn at random, are looked for, always in the whole release; 0 means all.

    Examples
    --------
    >>> import pandas as pd
    >>> raw = pd.DataFrame({"age": [20, 30, 40], "pay": [5.0, 6.0, 9.0]})
    >>> safe = pd.DataFrame({"age": [20, 35, 35], "pay": [5.0, 7.5, 7.5]})
    >>> pair = Pair.of(raw, safe, keys=["age", "pay"])
    >>> RecordLinkage("distance").measure(pair, rng=Randomness.seeded(1)).value
    0.6666666666666666
    """

    name: ClassVar[str] = "record-linkage"
    of_sample: ClassVar[bool] = True
    reference: ClassVar[str] = "Domingo-Ferrer and Torra 2001; Pagliuca and Seri 1999"
    identifies: ClassVar[bool] = True
    scenario: ClassVar[str] = (
        "The intruder holds the original keys of people who are in the file, with their names, and "
        "links each of them to the released record that fits best."
    )

    method: str = parameter("distance", help="how records are compared", choices=tuple(_WORDS))
    targets: int = parameter(10_000, help="people looked for; 0 for all", low=0)
    matched: int = parameter(2_000, help="people matched one to one; 0 for all", low=0)

    def counts(self, pair: Pair) -> bool:
        """One-to-one matching of a few people is easier than finding them in the whole file."""
        whole = len(pair.original) <= (self.matched or len(pair.original))
        return super().counts(pair) and (self.method != "one-to-one" or whole)

    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return the share of people linked to their own record."""
        known = len(pair.before(pair.released_keys[0]))
        most = self.targets or known
        if self.method == "one-to-one":
            most = self.matched or known
        targets = np.arange(known) if known <= most else np.sort(rng.sample(known, most))
        if self.method == "exact":
            right = linking.exact(pair, targets)
        else:
            files = linking.points(pair, targets, ranks=self.method == "rank")
            right = (
                linking.assigned(files, rng)
                if self.method == "one-to-one"
                else linking.nearest(files)
            )
        value = float(right.mean())
        error = float(right.std() / np.sqrt(right.size)) if right.size < known else 0.0
        facts = {
            "people looked for": int(targets.size),
            "linked correctly": float(right.sum()),
            "standard error": error,
            "by chance": 1.0 / pair.size,
        }
        records = np.full(pair.size, np.nan)
        by_person = np.full(known, np.nan)
        by_person[targets] = right
        records[:] = by_person[pair.origin]
        words = (
            f"{value:.1%} of people are linked to their own record, the one {_WORDS[self.method]}"
        )
        return self.finding(value, words, facts, records, measure=f"{self.name}: {self.method}")
