"""Metrics of classes: discernibility, average class size, and ARX's generalisation loss."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure
from discreet.microdata.utilities.value_loss import coverage
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["ClassMetrics"]


@dataclasses.dataclass(frozen=True)
class ClassMetrics(UtilityMeasure):
    """Discernibility, average equivalence class size and generalisation loss of the keys.

    The value is ARX's Loss: for each key the mean share of its hierarchy's values that a released
    value covers, scaled so that single values give 0, and the geometric mean over the keys. A
    suppressed record covers everything. Discernibility adds up the squares of the class sizes, and
    the number of records for each suppressed one; the average class size is over `k`.

    Examples
    --------
    >>> import pandas as pd
    >>> raw = pd.DataFrame({"age": ["1", "2", "3", "4"]})
    >>> safe = pd.DataFrame({"age": ["1-2", "1-2", "3-4", "3-4"]})
    >>> found = ClassMetrics().compare(Pair.of(raw, safe, keys=["age"]), rng=Randomness.seeded(1))
    >>> round(found.value, 4), found.facts["discernibility"]
    (0.3333, 8)
    """

    name: ClassVar[str] = "class-metrics"
    of_sample: ClassVar[bool] = False
    reference: ClassVar[str] = "Bayardo and Agrawal 2005; LeFevre et al. 2006; Prasser et al. 2016"

    k: int = parameter(1, help="size that classes should have, for the average", low=1)

    def applies(self, pair: Pair) -> bool:
        """Needs keys that are categories in the release."""
        return super().applies(pair) and bool(pair.released_keys)

    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        """Return ARX's Loss."""
        total = len(pair.original)
        gone = total - pair.size
        sizes = np.bincount(pair.class_of)
        by_key: dict[str, float] = {}
        for name in pair.released_keys:
            share, width = coverage(pair, name)
            covered = (np.where(np.isnan(share), 1 / width, share).sum() + gone) / max(total, 1)
            by_key[name] = float((covered - 1 / width) / (1 - 1 / width)) if width > 1 else 0.0
        value = float(np.prod([1 + v for v in by_key.values()]) ** (1 / len(by_key)) - 1)
        facts: dict[str, Any] = {
            "generalisation by key": by_key,
            "discernibility": int((sizes.astype(np.int64) ** 2).sum()) + gone * total,
            "average class size": float(sizes.mean() / self.k),
        }
        return self.comparison(value, f"the keys lost {value:.1%} of their detail", facts)
