"""SUDA2: records that few keys make unique."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.microdata.columns import combined
from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding, RiskMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["SUDA2", "SpecialUniques", "special_uniques"]

Places = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class SUDA2(RiskMeasure):
    """Minimal sample uniques: the smallest sets of keys on which a record is alone.

    A record scores (m − s)! for each minimal unique of size s among m keys, so that being alone on
    few keys counts for more (Elliot and others); `scores="ihsn"` counts (2^(m−s) − 1)·s!·(m−s)!/m!
    instead, as the first implementation for statistical offices did. DIS, the probability that a
    unique match is right, is estimated from the U uniques and the P records in pairs and the
    sampling fraction f as U·f / (U·f + P·(1 − f)), and shared out as sdcMicro does: a record of score S
    gets 1 / (1 + U·(1/DIS − 1) / (S^q·Σ S^−q)) with q = 1 + (8 − m)/20. Minimal uniques of up to `size`
    keys are found, all of them; a missing value takes no part.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"age": [1, 1, 2, 2], "sex": list("fmmm"), "job": list("aaab")})
    >>> pair = Pair.of(rows, keys=["age", "sex", "job"])
    >>> SUDA2(fraction=0.1).measure(pair, rng=Randomness.seeded(1)).facts["scores"]
    {'minimal uniques': 4, 'highest score': 2}
    """

    name: ClassVar[str] = "suda2"
    reference: ClassVar[str] = "Manning, Haglin and Keane, DMKD 2008; Elliot et al. 2002"
    scenario: ClassVar[str] = (
        "The intruder looks for people who stand out: who are alone in the file with very few of "
        "their characteristics, and whom they are therefore likely to recognise."
    )

    size: int = parameter(6, help="most keys in a minimal unique", low=1)
    fraction: float | None = parameter(
        None, help="sampling fraction; from the weights if left out, else 0.01", above=0, high=1
    )

    scores: str = parameter(
        "elliot", help="what a minimal unique counts", choices=("elliot", "ihsn")
    )

    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return the mean DIS-SUDA score."""
        share = self.fraction
        if share is None and pair.weights is not None:
            share = min(pair.size / max(float(pair.weights.sum()), 1.0), 1.0)
        once, back = _once(pair)
        found = special_uniques(
            [column[once] for column in pair.coded_keys],
            once.size,
            self.size,
            0.01 if share is None else share,
            scores=self.scores,
        ).of_records(back)
        total = found.score.sum()
        by_key = found.contribution / total if total > 0 else found.contribution
        facts = {
            "special uniques": int((found.score > 0).sum()),
            "minimal uniques by size": {
                size: int(count) for size, count in enumerate(found.by_size) if count
            },
            "scores": {
                "minimal uniques": int(found.by_size.sum()),
                "highest score": _figure(found.score.max(initial=0)),
            },
            "DIS": found.dis,
            "highest DIS-SUDA": float(found.dis_score.max(initial=0)),
            "share of the score by key": dict(
                zip(pair.released_keys, by_key.round(4).tolist(), strict=True)
            ),
        }
        words = (
            f"{facts['special uniques']:,} of {pair.size:,} records are unique on at most "
            f"{min(self.size, len(pair.released_keys))} keys"
        )
        return self.finding(float(found.dis_score.mean()), words, facts, found.dis_score)


@dataclasses.dataclass(frozen=True, eq=False)
class SpecialUniques:
    """Scores of every record, and where they come from."""

    score: npt.NDArray[np.float64]
    dis_score: npt.NDArray[np.float64]
    #: Number of minimal uniques by size.
    by_size: Places
    #: Score that goes through each key.
    contribution: npt.NDArray[np.float64]
    dis: float

    def of_records(self, place: Places) -> SpecialUniques:
        """Return the scores of records, each at a place of those scored."""
        return dataclasses.replace(self, score=self.score[place], dis_score=self.dis_score[place])


def _once(pair: Pair) -> tuple[Places, Places]:
    """Return one record of each person and class, and for each record its place among these.

    Two records of one person that look alike must not hide each other.
    """
    if pair.units is None:
        every = np.arange(pair.size)
        return every, every
    _, first, place = np.unique(
        np.stack((pair.class_of, pair.units)), axis=1, return_index=True, return_inverse=True
    )
    return first, place.ravel()


def _figure(score: float) -> float:
    return int(score) if float(score).is_integer() else float(score)


def _worth(keys: int, many: int, scores: str) -> float:
    """Return what a minimal unique of `many` keys counts.

    >>> [_worth(4, many, "elliot") for many in (1, 2)], [_worth(4, many, "ihsn") for many in (1, 2)]
    ([6.0, 2.0], [1.75, 0.5])
    """
    rest = math.factorial(keys - many)
    if scores == "elliot":
        return float(rest)
    share = math.factorial(many) * rest / math.factorial(keys)
    return float((2.0 ** (keys - many) - 1) * share)


def special_uniques(
    keys: Sequence[Places], rows: int, size: int, fraction: float, *, scores: str = "elliot"
) -> SpecialUniques:
    """Find all minimal uniques of up to a size.

    A record that is unique on some keys is unique on all of them, so the search looks at different
    combinations only, and follows those that occur once. Sets of keys are taken by size: one that
    holds a smaller unique of the same record is not minimal.
    """
    whole = combined(keys, rows)
    first = np.unique(whole, return_index=True)[1]
    counts = np.bincount(whole)
    table = [column[first] for column in keys]
    alone = np.flatnonzero(counts == 1)
    nothing = np.zeros(alone.size, bool)
    holds = {0: nothing}  # sets of keys of one size, and which records have a unique within
    by_size = np.zeros(len(keys) + 1, np.int64)
    score = np.zeros(alone.size)
    contribution = np.zeros(len(keys))
    missing = np.zeros(alone.size, np.int64)
    for place, column in enumerate(table):
        missing |= (column[alone] < 0).astype(np.int64) << place
    for many in range(1, min(size, len(keys)) + 1):
        weight = _worth(len(keys), many, scores)
        smaller, holds = holds, {}
        for chosen in itertools.combinations(range(len(keys)), many):
            bits = sum(1 << place for place in chosen)
            group = combined([table[place] for place in chosen], first.size)
            unique = np.bincount(group, counts)[group[alone]] == 1
            unique &= (missing & bits) == 0
            within = np.logical_or.reduce([smaller[bits & ~(1 << place)] for place in chosen])
            minimal = unique & ~within
            holds[bits] = within | minimal
            score[minimal] += weight
            by_size[many] += minimal.sum()
            contribution[list(chosen)] += weight * minimal.sum()
    by_class = np.zeros(first.size)
    by_class[alone] = score
    found = by_class[whole]
    dis, shared = _dis(found, counts, fraction, len(keys))
    return SpecialUniques(found, shared, by_size, contribution, dis)


def _dis(
    scores: npt.NDArray[np.float64], counts: Places, fraction: float, keys: int
) -> tuple[float, npt.NDArray[np.float64]]:
    """Return the DIS of the file, and shared out by the scores."""
    uniques, pairs = float((counts == 1).sum()), 2.0 * float((counts == 2).sum())
    base = uniques * fraction + pairs * (1 - fraction)
    dis = uniques * fraction / base if base > 0 else 0.0
    shared = np.zeros(scores.size)
    some = scores > 0
    if some.any() and dis > 0:
        power = scores[some] ** (1 + (8 - keys) / 20)
        odds = power * (1 / power).sum() / uniques
        shared[some] = 1 / (1 + (1 / dis - 1) / odds)
    return dis, shared
