"""Changes: records and values suppressed or modified."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure
from discreet.randomness import Randomness

__all__ = ["Changes", "changed"]


@dataclasses.dataclass(frozen=True)
class Changes(UtilityMeasure):
    """How many records and values are gone or different.

    Examples
    --------
    >>> import pandas as pd
    >>> raw, safe = pd.DataFrame({"age": [20, 30]}), pd.DataFrame({"age": [20, None]})
    >>> found = Changes().compare(Pair.of(raw, safe), rng=Randomness.seeded(1))
    >>> found.value, found.facts["suppressed values"]
    (0.5, 1)
    """

    name: ClassVar[str] = "changes"
    reference: ClassVar[str] = "Hundepool et al., Statistical Disclosure Control, 2012, 3.7"

    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        """Return the share of released values that are gone or different."""
        gone = modified = cells = 0
        touched = np.zeros(pair.size, bool)
        by_column = {}
        for name in pair.shared:
            different, missing = changed(pair, name)
            cells += pair.size
            gone += int(missing.sum())
            modified += int((different & ~missing).sum())
            touched |= different
            by_column[name] = float(different.mean())
        lost = len(pair.original) - pair.size
        facts = {
            "suppressed records": lost,
            "modified records": int(touched.sum()),
            "suppressed values": gone,
            "modified values": modified,
            "changed by column": by_column,
        }
        value = (gone + modified) / max(cells, 1)
        words = f"{value:.1%} of the released values differ from the original; {lost:,} records are gone"
        return self.comparison(value, words, facts)


def changed(pair: Pair, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return which released values of a column differ from the original, and which are gone."""
    import pyarrow as pa

    if pair.is_numeric(name):
        before, after = pair.numbers(name)
        missing = np.isnan(after) & ~np.isnan(before)
        return ~((before == after) | (np.isnan(before) & np.isnan(after))), missing
    before = pair.before(name).cast(pa.string()).take(pa.array(pair.origin))
    after = pair.after(name).cast(pa.string())
    was, now = (np.asarray(c.is_valid()) for c in (before, after))
    same = np.asarray(pa.compute.equal(before, after).fill_null(False))
    missing = was & ~now
    return ~(same | (~was & ~now)), missing
