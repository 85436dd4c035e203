"""Contingency tables: one- and two-way tables before and after."""

from __future__ import annotations

import dataclasses
import itertools
from typing import ClassVar

import numpy as np

from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["ContingencyTables"]


@dataclasses.dataclass(frozen=True)
class ContingencyTables(UtilityMeasure):
    """Total variation between one- and two-way tables before and after.

    Numbers are cut at the original's quantiles; a recoded category is compared with what most
    records of its original value became, so that coarser categories lose only what is misplaced.
    `by` names the columns of one table of one's own.

    Examples
    --------
    >>> import pandas as pd
    >>> raw, safe = pd.DataFrame({"job": ["a", "a", "b"]}), pd.DataFrame({"job": ["a", "b", "b"]})
    >>> found = ContingencyTables().compare(Pair.of(raw, safe), rng=Randomness.seeded(1))
    >>> round(found.value, 4)
    0.3333
    """

    name: ClassVar[str] = "contingency-tables"
    reference: ClassVar[str] = "Shlomo and Young 2006"

    by: tuple[str, ...] = parameter((), help="columns of one table; all pairs if left out")
    bins: int = parameter(10, help="intervals of a number", low=2)
    pairs: int = parameter(60, help="most two-way tables", low=0)

    def __post_init__(self) -> None:
        given = (self.by,) if isinstance(self.by, str) else tuple(self.by)
        object.__setattr__(self, "by", given)
        super().__post_init__()

    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        """Return the mean total variation of the tables."""
        names = list(self.by or (n for n in pair.shared if n != pair.schema.weight))
        told = {name: self._codes(pair, name) for name in names}
        if self.by:
            value = _variation([told[n] for n in names])
            words = f"the table of {' × '.join(names)} differs by {value:.2%} of its records"
            return self.comparison(value, words, {"table": names, "total variation": value})
        ones = {name: _variation([told[name]]) for name in names}
        twos = {
            f"{a} × {b}": _variation([told[a], told[b]])
            for a, b in itertools.islice(itertools.combinations(names, 2), self.pairs)
        }
        value = float(np.mean([*ones.values(), *twos.values()]))
        words = f"one- and two-way tables differ by {value:.2%} of their records on average"
        facts = {
            "one-way": ones,
            "two-way, mean": float(np.mean(list(twos.values()))) if twos else None,
            "two-way, worst": max(twos.items(), key=lambda item: item[1]) if twos else None,
        }
        return self.comparison(value, words, facts)

    def _codes(self, pair: Pair, name: str) -> tuple[np.ndarray, np.ndarray]:
        if pair.is_numeric(name):
            before, after = pair.numbers(name)
            known = before[~np.isnan(before)]
            ends = (
                np.unique(np.quantile(known, np.linspace(0, 1, self.bins + 1)[1:-1]))
                if known.size
                else np.zeros(0)
            )
            return tuple(
                np.where(np.isnan(v), -1, np.searchsorted(ends, v, side="right"))
                for v in (before, after)
            )  # type: ignore[return-value]  # two of them
        first, second, _ = pair.comparable(name)
        return first[pair.origin], second


def _variation(columns: list[tuple[np.ndarray, np.ndarray]]) -> float:
    from discreet.microdata.columns import combined

    rows = columns[0][0].size
    joint = combined([np.concatenate(c) for c in columns], 2 * rows)
    size = int(joint.max(initial=0)) + 1
    one, two = (np.bincount(v, minlength=size) / rows for v in (joint[:rows], joint[rows:]))
    return float(np.abs(one - two).sum() / 2)
