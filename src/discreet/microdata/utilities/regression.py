"""Regression: the analyst's own model before and after."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.errors import InputError
from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["Interval", "Regression"]

#: An estimate and half of its interval.
Interval = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Regression(UtilityMeasure):
    """Ordinary least squares of one column on others, before and after.

    Categories enter as indicators of their values, recoded ones as what they became. The value is
    one minus the mean overlap of the 95 % confidence intervals of the coefficients, each as a share
    of both intervals' lengths. Records with a missing value are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> raw = pd.DataFrame({"age": [20.0, 30, 40, 50], "pay": [1.0, 2.1, 2.9, 4]})
    >>> method = Regression("pay", on="age")
    >>> method.compare(Pair.of(raw, raw), rng=Randomness.seeded(1)).value
    0.0
    """

    name: ClassVar[str] = "regression"
    reference: ClassVar[str] = "Karr et al., The American Statistician 2006"
    needs_origin: ClassVar[bool] = False

    target: str | None = parameter(None, help="column explained")
    on: tuple[str, ...] = parameter((), help="columns that explain")

    def __post_init__(self) -> None:
        given = (self.on,) if isinstance(self.on, str) else tuple(self.on)
        object.__setattr__(self, "on", given)
        super().__post_init__()

    def applies(self, pair: Pair) -> bool:
        """Only where the caller says which regression."""
        return self.target is not None and super().applies(pair)

    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        """Return one minus the mean overlap of the intervals."""
        overlap, facts = [], {}
        for name, one, two in self.intervals(pair):
            overlap.append(_overlap(one, two))
            facts[name] = {"before": one[0], "after": two[0], "overlap": overlap[-1]}
        value = 1 - float(np.mean(overlap))
        words = f"the coefficients' intervals overlap by {1 - value:.1%} on average"
        return self.comparison(value, words, facts)

    def intervals(self, pair: Pair) -> list[tuple[str, Interval, Interval]]:
        """Return each coefficient with half of its 95 % interval, before and after."""
        assert self.target is not None
        for name in (self.target, *self.on):
            if name not in pair.shared:
                raise InputError(
                    f"column {name!r} of the regression is not in the release",
                    code="unknown-column",
                    column=name,
                )
        if not pair.is_numeric(self.target) or not self.on:
            raise InputError(
                f"a regression explains a number by other columns; {self.target!r} is none",
                code="not-numeric",
                column=self.target,
            )
        (left, right), names = self._designs(pair)
        goal = pair.numbers(self.target)
        fits = _fit(left, goal[0]), _fit(right, goal[1])
        return list(zip(names, *fits, strict=True))

    def _designs(self, pair: Pair) -> tuple[tuple[np.ndarray, np.ndarray], list[str]]:
        counts = len(pair.own(np.arange(len(pair.original)))), pair.size
        left, right = ([np.ones((count, 1))] for count in counts)
        names = ["(constant)"]
        for name in self.on:
            if pair.is_numeric(name):
                before, after = pair.numbers(name)
                left.append(before[:, None])
                right.append(after[:, None])
                names.append(name)
                continue
            first, second, _ = pair.comparable(name)
            own = pair.own(first)
            used = np.unique(np.concatenate([own, second]))
            used = used[used >= 0][1:]
            left.append(_indicators(own, used))
            right.append(_indicators(second, used))
            names += [f"{name}.{place}" for place in range(1, used.size + 1)]
        return (np.concatenate(left, axis=1), np.concatenate(right, axis=1)), names


def _indicators(values: np.ndarray, used: np.ndarray) -> np.ndarray:
    return np.where(values[:, None] < 0, np.nan, (values[:, None] == used).astype(float))


def _fit(rows: np.ndarray, goal: np.ndarray) -> list[Interval]:
    """Return estimate and half of its 95 % interval for each coefficient."""
    known = ~np.isnan(rows).any(axis=1) & ~np.isnan(goal)
    rows, goal = rows[known], goal[known]
    inverse = np.linalg.pinv(rows.T @ rows)
    slope = inverse @ (rows.T @ goal)
    rest = goal - rows @ slope
    free = max(rows.shape[0] - rows.shape[1], 1)
    error = np.sqrt(np.maximum(np.diag(inverse) * float(rest @ rest) / free, 0))
    return [(float(b), float(1.96 * e)) for b, e in zip(slope, error, strict=True)]


def _overlap(one: Interval, two: Interval) -> float:
    if one == two:
        return 1.0
    low, high = max(one[0] - one[1], two[0] - two[1]), min(one[0] + one[1], two[0] + two[1])
    shared = max(high - low, 0.0)
    lengths = [2 * w for w in (one[1], two[1])]
    return float(np.mean([shared / w if w > 0 else 0.0 for w in lengths]))
