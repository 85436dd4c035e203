"""Marginals: how far tables of one, two and three columns moved."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.microdata.columns import Places, numbers
from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["Marginals", "coded_columns", "distances"]

#: Tables of three columns looked at, at most; drawn by lot where there are more.
_TABLES = 120


@dataclasses.dataclass(frozen=True)
class Marginals(UtilityMeasure):
    """Total variation between tables of one, two and three columns, the worst of them named.

    Numbers with many values are cut at the original's quantiles; missing is a value. The value is
    the mean distance of pairs of columns, from 0 (same shares) to 1 (nothing in common); NIST's score
    is 1000 (1 − mean distance of three columns).

    Examples
    --------
    >>> import pandas as pd
    >>> raw = pd.DataFrame({"a": [0, 0, 1, 1], "b": ["x", "x", "y", "y"]})
    >>> found = Marginals().compare(
    ...     Pair.of(raw, raw.assign(b=["x", "y", "x", "y"]), paired=False), rng=Randomness.seeded(1)
    ... )
    >>> found.value, found.facts["tv1"], found.facts["worst pair"]
    (0.5, 0.0, 'a × b')
    """

    name: ClassVar[str] = "marginals"
    reference: ClassVar[str] = "Sen et al., NIST SP 1500; Snoke et al., JRSS A 2018"
    needs_origin: ClassVar[bool] = False

    bins: int = parameter(12, help="classes that numbers are cut into", low=2)

    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        """Return the mean distance of tables of two columns."""
        columns = coded_columns(pair, bins=self.bins)
        found = {size: distances(columns, _subsets(list(columns), size, rng)) for size in (1, 2, 3)}
        facts: dict[str, Any] = {}
        for size, word in ((1, "column"), (2, "pair"), (3, "triple")):
            if not found[size]:
                continue
            worst = max(found[size], key=lambda names: found[size][names])
            facts[f"tv{size}"] = float(np.mean(list(found[size].values())))
            facts[f"worst {word}"] = " × ".join(worst)
            facts[f"worst tv{size}"] = found[size][worst]
        if "tv3" in facts:
            facts["NIST score"] = 1000 * (1 - facts["tv3"])
        main = 2 if found[2] else 1
        words = (
            f"tables of {main} columns differ by {facts[f'tv{main}']:.3f} on average, at most by "
            f"{facts[f'worst tv{main}']:.3f} ({facts['worst pair' if main == 2 else 'worst column']})"
        )
        return self.comparison(facts[f"tv{main}"], words, facts)


def coded_columns(pair: Pair, *, bins: int = 12) -> dict[str, tuple[Places, Places, int]]:
    """Return each shared column before and after as codes from 0, and how many there are."""
    found = {}
    for name in pair.shared:
        if name == pair.schema.weight:
            continue
        if pair.is_numeric(name):
            one, two = (numbers(side(name), name=name) for side in (pair.before, pair.after))
            known = one[~np.isnan(one)]
            cuts = np.unique(known)
            if cuts.size > bins:
                cuts = np.unique(np.quantile(known, np.linspace(0, 1, bins + 1)[1:-1]))
            width = cuts.size + 2
            found[name] = (_cut(one, cuts), _cut(two, cuts), width)
        else:
            first, second, width = pair.comparable(name)
            found[name] = (first + 1, second + 1, width + 1)
    return found


def _cut(values: np.ndarray, cuts: np.ndarray) -> Places:
    return np.where(np.isnan(values), cuts.size + 1, np.searchsorted(cuts, values, side="right"))


def distances(
    columns: dict[str, tuple[Places, Places, int]], tables: Sequence[tuple[str, ...]]
) -> dict[tuple[str, ...], float]:
    """Return the total variation distance of tables of columns."""
    found = {}
    for names in tables:
        sides: list[Places] = []
        for side in (0, 1):
            coded = [columns[name][:2][side] for name in names]
            joint = np.zeros(coded[0].size, np.int64)
            for name, own in zip(names, coded, strict=True):
                joint = joint * columns[name][2] + own
            sides.append(joint)
        used = np.unique(np.concatenate(sides), return_inverse=True)[1].ravel()
        one, two = np.split(used, [sides[0].size])
        width = int(used.max(initial=0)) + 1
        share = [np.bincount(s, minlength=width) / max(s.size, 1) for s in (one, two)]
        found[names] = float(np.abs(share[0] - share[1]).sum() / 2)
    return found


def _subsets(names: list[str], size: int, rng: Randomness) -> list[tuple[str, ...]]:
    every = list(itertools.combinations(sorted(names), size))
    if size < 3 or len(every) <= _TABLES:
        return every
    return [every[place] for place in np.sort(rng.sample(len(every), _TABLES))]
