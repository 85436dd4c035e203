"""Trained models: what a model learned from the release is worth on real records."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.microdata.learning import design, learner, one_thread
from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["TrainedModel", "accuracy"]

#: Classes that a model learns, the most frequent ones; others it never guesses.
_CLASSES = 50
#: Codes of a column that the model takes as such; more it takes as numbers.
_CODES = 255


@dataclasses.dataclass(frozen=True)
class TrainedModel(UtilityMeasure):
    """Accuracy of a model trained on the release, beside the original and the most frequent value.

    A gradient-boosted model learns `target` (the first confidential column by default) from all
    other columns on two thirds of the records, once from the release and once from the original,
    and both predict the original values of the rest. For a number accuracy is the share of variance
    explained, and the baseline 0. The value is the loss of accuracy over the original's gain.

    Examples
    --------
    >>> import pandas as pd
    >>> raw = pd.DataFrame({"age": [20, 60] * 60, "ill": ["cold", "gout"] * 60})
    >>> found = TrainedModel("ill").compare(Pair.of(raw, raw), rng=Randomness.seeded(1))
    >>> found.value, found.facts["release"], found.facts["most frequent value"] < 0.7
    (0.0, 1.0, True)
    """

    name: ClassVar[str] = "trained-model"
    reference: ClassVar[str] = "Iyengar, KDD 2002; Fung, Wang and Yu, ICDE 2005"

    target: str | None = parameter(None, help="column to be predicted")
    rows: int = parameter(6_000, help="records used at most", low=30)

    def applies(self, pair: Pair) -> bool:
        """Needs a column to predict and others to predict it from."""
        target = self._target(pair)
        return pair.size >= 30 and target is not None and len(pair.shared) > 1

    def _target(self, pair: Pair) -> str | None:
        if self.target is not None:
            pair.schema[self.target]
            return self.target if self.target in pair.shared else None
        return pair.confidential[0] if pair.confidential else None

    @one_thread()
    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        """Return the relative loss of accuracy."""
        target = self._target(pair)
        assert target is not None
        others = [n for n in pair.shared if n not in (target, pair.schema.weight)]
        before, after = design(pair, others)
        categories = [not pair.is_numeric(name) for name in others]
        mixed = rng.sample(pair.size, min(pair.size, self.rows))
        train, test = mixed[: 2 * mixed.size // 3], mixed[2 * mixed.size // 3 :]
        before = before[pair.origin]
        numeric = pair.is_numeric(target)
        true, told = _values(pair, target)
        known = ~np.isnan(true), ~np.isnan(told)
        test = test[known[0][test]]
        reached = {}
        for name, rows, values, is_known in (
            ("original", before, true, known[0]),
            ("release", after, told, known[1]),
        ):
            use = train[is_known[train]]
            reached[name] = accuracy(
                rows[use], values[use], before[test], true[test], numeric, categories
            )
        base = 0.0 if numeric else float(np.bincount(true[test].astype(int)).max() / test.size)
        gain = reached["original"] - base
        lost = (reached["original"] - reached["release"]) / gain if gain > 0 else 0.0
        facts: dict[str, Any] = {"target": target, **reached, "most frequent value": base}
        words = (
            f"predicting {target}: {reached['release']:.1%} from the release, "
            f"{reached['original']:.1%} from the original, {base:.1%} without a model"
        )
        return self.comparison(min(max(lost, 0.0), 1.0), words, facts)


def _values(pair: Pair, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a column before and after as numbers, categories by their codes."""
    if pair.is_numeric(name):
        return pair.numbers(name)
    first, second, _ = pair.comparable(name)
    own = first[pair.origin].astype(float)
    return np.where(own < 0, np.nan, own), np.where(second < 0, np.nan, second.astype(float))


def _learnable(rows: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the records of the most frequent classes, without classes of a single record.

    A boosted model grows a tree per class and round: texts that differ in every record took minutes,
    and nothing can be learned of a class that is seen once.
    """
    found, place, count = np.unique(values, return_inverse=True, return_counts=True)
    kept = np.argsort(-count, kind="stable")[:_CLASSES]
    kept = kept[count[kept] > 1] if count.max() > 1 else kept[:1]
    use = np.isin(place, kept)
    return (rows, values) if found.size == kept.size else (rows[use], values[use])


def accuracy(
    rows: np.ndarray,
    values: np.ndarray,
    test: np.ndarray,
    true: np.ndarray,
    numeric: bool,
    categories: Sequence[bool] = (),
) -> float:
    """Return the share of right guesses, or of variance explained, of a model on other records.

    `categories` says which columns hold codes.
    """
    if values.size < 10 or test.size == 0:
        return 0.0
    if not numeric:
        rows, values = _learnable(rows, values)
    # Columns without two values to tell records apart teach nothing, and the learner refuses them.
    varied = [np.unique(column[~np.isnan(column)]).size > 1 for column in rows.T]
    rows, test = rows[:, varied], test[:, varied]
    told = np.array(list(categories) or [False] * len(varied), dtype=bool)[varied]
    few = np.array([np.nanmax(column) < _CODES for column in rows.T], dtype=bool)
    if np.unique(values).size < 2:
        guess = np.full(true.size, values[0])
    elif not any(varied):
        common = values.mean() if numeric else np.bincount(values.astype(int)).argmax()
        guess = np.full(true.size, float(common))
    else:
        model = learner(numeric=numeric, categories=np.flatnonzero(told & few).tolist())
        guess = model.fit(rows, values).predict(test)
    if not numeric:
        return float(np.mean(guess == true))
    base = float(true.var())
    return max(0.0, 1 - float(np.mean((guess - true) ** 2)) / base) if base > 0 else 0.0
