"""Value loss: how far released values are from the original ones, column by column."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.microdata.columns import codes
from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure
from discreet.microdata.utilities.changes import changed
from discreet.randomness import Randomness

__all__ = ["ValueLoss", "coverage"]


@dataclasses.dataclass(frozen=True)
class ValueLoss(UtilityMeasure):
    """Mean loss of a value, from 0 (as it was) to 1 (gone), over columns and records.

    A number loses its distance from the original over √2 standard deviations (IL1s), at most 1. A
    category loses 1 when it is another one, and when it is coarser the share of the other values
    that it also covers. A value or a record that is gone loses 1.

    Examples
    --------
    >>> import pandas as pd
    >>> raw = pd.DataFrame({"job": ["cook", "pilot"], "sex": ["f", "m"]})
    >>> safe = pd.DataFrame({"job": ["cook", None], "sex": ["f", "m"]})
    >>> ValueLoss().compare(Pair.of(raw, safe), rng=Randomness.seeded(1)).value
    0.25
    """

    name: ClassVar[str] = "value-loss"
    reference: ClassVar[str] = "Yancey, Winkler and Creecy 2002; Iyengar 2002"

    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        """Return the mean loss."""
        kept = pair.size / len(pair.original) if len(pair.original) else 1.0
        by_column = {
            name: kept * self._column(pair, name) + (1 - kept)
            for name in pair.shared
            if name != pair.schema.weight
        }
        hidden = {*pair.schema.identifiers, pair.schema.weight, *pair.shared}
        by_column |= {name: 1.0 for name in pair.original.columns if name not in hidden}
        value = float(np.mean(list(by_column.values()))) if by_column else 0.0
        return self.comparison(value, f"a value lost {value:.1%} on average", by_column)

    def _column(self, pair: Pair, name: str) -> float:
        if pair.size == 0:
            return 0.0
        if pair.is_numeric(name):
            before, after = pair.numbers(name)
            known = ~np.isnan(before)
            spread = float(before[known].std(ddof=1)) if known.sum() > 1 else 0.0
            scale = np.sqrt(2) * spread if spread > 0 else 1.0
            apart = np.minimum(np.abs(before - after) / scale, 1.0)
            apart[np.isnan(before) & np.isnan(after)] = 0.0
            return float(np.nan_to_num(apart, nan=1.0).mean())
        different, missing = changed(pair, name)
        share, width = coverage(pair, name)
        coarser = (share - 1 / width) / (1 - 1 / width) if width > 1 else share * 0.0
        lost = np.where(missing, 1.0, np.where(np.isnan(share), different.astype(float), coarser))
        return float(lost.mean())


def coverage(pair: Pair, name: str) -> tuple[np.ndarray, int]:
    """Return the share of a column's values that each released one covers, and their number.

    By the column's hierarchy, where it has one that knows the released value; else by the values
    that became it. Not-a-number where the released value is one of the original values or was not
    changed; 1 where it is gone or stands for everything.
    """
    import pyarrow as pa

    places, values = codes(pair.after(name))
    words = values.cast(pa.string()).to_pylist()
    found = pair.schema.hierarchies(name)
    if found:
        tree = found[0]
        leaves = tree.is_leaf.astype(np.int64).copy()
        for code in range(len(tree) - 1, 0, -1):  # children come after parents
            leaves[tree.parents[code]] += leaves[code]
        width = len(tree.leaves)
        share = [
            (np.nan if tree.is_leaf[tree.index[w]] else leaves[tree.index[w]] / width)
            if w in tree.index
            else (1.0 if w == "*" else np.nan)
            for w in words
        ]
    else:
        own, originals = codes(pair.before(name))
        own, width = own[pair.origin], max(len(originals), 1)
        known = (places >= 0) & (own >= 0)
        joint = np.unique(places[known] * width + own[known])
        counts = np.bincount(joint // width, minlength=len(words))
        familiar = set(originals.cast(pa.string()).to_pylist())
        share = [
            np.nan if word in familiar else counts[place] / width
            for place, word in enumerate(words)
        ]
    covered = np.array([*share, 1.0])[places]
    covered[~changed(pair, name)[0]] = np.nan  # also what was missing before
    return covered, max(width, 1)
