"""Inference: a model trained on the release guesses confidential values."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from discreet.microdata.learning import design, learner, one_thread
from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding, RiskMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["InferenceRisk"]


@dataclasses.dataclass(frozen=True)
class InferenceRisk(RiskMeasure):
    """How much better than guessing a model trained on the release tells confidential values.

    A gradient-boosted model learns the confidential column from the released keys and predicts it
    from the original keys of people: 0 is no better than the most frequent value (or the mean), 1
    is always right. What it finds may be a fact of the subject rather than a leak: compare it with
    the same figure for people who are not in the file.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> rows = pd.DataFrame({"age": [20, 60] * 50, "ill": ["cold", "gout"] * 50})
    >>> people = dc.read(rows, roles={"age": "quasi", "ill": "confidential"})
    >>> InferenceRisk().measure(Pair.of(people), rng=Randomness.seeded(1)).value
    1.0
    """

    name: ClassVar[str] = "inference"
    reference: ClassVar[str] = "Hittmeir, Mayer and Ekelhart, ARES 2020"
    needs: ClassVar[str] = "a confidential column in the release and at least 20 records"
    scenario: ClassVar[str] = (
        "The intruder does not look for a record at all, but learns from the release how "
        "confidential values go with the keys, and applies that to people they know."
    )

    column: str | None = parameter(None, help="confidential column; all of them if left out")
    rows: int = parameter(5_000, help="records used at most", low=10)

    def applies(self, pair: Pair) -> bool:
        """Needs a confidential column and enough records to learn from."""
        return super().applies(pair) and bool(pair.confidential) and pair.size >= 20

    @one_thread()
    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return the largest gain over guessing."""
        wanted = pair.confidential if self.column is None else (self.column,)
        some = np.arange(pair.size)
        if pair.size > self.rows:
            some = np.sort(rng.sample(pair.size, self.rows))
        before, after = design(pair, pair.released_keys)
        before, after = before[pair.origin][some], after[some]
        facts: dict[str, Any] = {}
        gains = [0.0]
        for name in wanted:
            gain, found = self._gain(pair, name, before, after, some)
            facts[name] = found
            gains.append(gain)
        value = max(gains)
        words = f"the model removes {value:.0%} of the mistakes that guessing makes"
        return self.finding(value, words, facts)

    def _gain(
        self, pair: Pair, name: str, before: np.ndarray, after: np.ndarray, some: np.ndarray
    ) -> tuple[float, dict[str, float]]:
        if pair.is_numeric(name):
            true, told = (v[some] for v in pair.numbers(name))
            known = ~np.isnan(told) & ~np.isnan(true)
            if known.sum() < 10 or np.ptp(told[known]) == 0:
                return 0.0, {}
            before, after = _told_columns(before, after, known)
            if not after.shape[1]:
                return 0.0, {}
            model = learner(numeric=True).fit(after[known], told[known])
            error = float(np.mean((model.predict(before[known]) - true[known]) ** 2))
            base = float(true[known].var())
            gain = max(0.0, 1 - error / base) if base > 0 else 0.0
            return gain, {"share of variance explained": gain}
        true, told, _ = pair.comparable(name)
        true, told = true[pair.origin][some], told[some]
        known = (told >= 0) & (true >= 0)
        if known.sum() < 10 or np.unique(told[known]).size < 2:
            return 0.0, {}
        before, after = _told_columns(before, after, known)
        if not after.shape[1]:
            return 0.0, {}
        model = learner(numeric=False).fit(after[known], told[known])
        right = float(np.mean(model.predict(before[known]) == true[known]))
        base = float(np.bincount(true[known]).max() / known.sum())
        gain = max(0.0, (right - base) / (1 - base)) if base < 1 else 0.0
        return gain, {"accuracy": right, "most frequent value": base}


def _told_columns(
    before: np.ndarray, after: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns in which the release has a value: a model cannot learn from the others."""
    some = ~np.isnan(after[known].astype(np.float64)).all(axis=0)
    return before[:, some], after[:, some]
