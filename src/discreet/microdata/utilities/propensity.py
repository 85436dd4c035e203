"""Propensity score: whether a classifier can tell the release from the original."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from discreet.microdata.learning import design, learner, one_thread
from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["Propensity"]


@dataclasses.dataclass(frozen=True)
class Propensity(UtilityMeasure):
    """Train a classifier to tell original from released records; a good release leaves it guessing.

    Half of the records of both files train a gradient-boosted model (or a logistic regression), the
    other half get its probability p of being released, and the other way round. pMSE is the mean of
    (p − ½)², between 0 and ¼, and utility U = 1 − 4 pMSE; the value is 4 pMSE.

    Examples
    --------
    >>> import pandas as pd
    >>> raw = pd.DataFrame({"age": range(100)})
    >>> found = Propensity().compare(Pair.of(raw, raw + 1000), rng=Randomness.seeded(1))
    >>> found.facts["U"] < 0.1
    True
    """

    name: ClassVar[str] = "propensity"
    reference: ClassVar[str] = "Woo, Reiter, Oganian and Karr, JPC 2009; Snoke et al., JRSS A 2018"

    noise: ClassVar[float] = 0.2
    needs_origin: ClassVar[bool] = False

    model: str = parameter("trees", help="the classifier", choices=("trees", "logistic"))
    rows: int = parameter(20_000, help="records of each file used at most", low=10)

    def applies(self, pair: Pair) -> bool:
        """Needs enough records to learn from."""
        return super().applies(pair) and pair.size >= 20

    @one_thread()
    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        """Return 4 pMSE."""
        names = [n for n in pair.shared if n != pair.schema.weight]
        before, after = design(pair, names)
        some = [v[np.sort(rng.sample(len(v), min(len(v), self.rows)))] for v in (before, after)]
        rows = np.concatenate(some)
        label = np.repeat([0, 1], [len(v) for v in some])
        half = np.zeros(label.size, bool)
        half[rng.sample(label.size, label.size // 2)] = True
        odds = np.empty(label.size)
        for train in (half, ~half):
            odds[~train] = self._fitted(rows[train], label[train]).predict_proba(rows[~train])[:, 1]
        middle = float(label.mean())
        error = float(np.mean((odds - middle) ** 2))
        facts = {
            "pMSE": error,
            "U": 1 - 4 * error,
            "told apart": float(((odds > 0.5) == label).mean()),
        }
        words = (
            f"a classifier tells {facts['told apart']:.0%} of records apart; U = {facts['U']:.3f}"
        )
        return self.comparison(4 * error, words, facts)

    def _fitted(self, rows: np.ndarray, label: np.ndarray) -> Any:  # Any: scikit-learn is untyped
        if self.model == "trees":
            return learner(numeric=False).fit(rows, label)
        from sklearn.impute import SimpleImputer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        steps = (
            SimpleImputer(keep_empty_features=True),
            StandardScaler(),
            LogisticRegression(max_iter=500),
        )
        return make_pipeline(*steps).fit(rows, label)
