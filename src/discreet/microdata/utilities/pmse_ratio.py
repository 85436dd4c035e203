"""pMSE ratio: whether a release is told from the original better than the right model's would be."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.microdata.columns import Numbers
from discreet.microdata.learning import design, learner, one_thread
from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["PMSERatio"]

#: Fits to shuffled labels, where no formula says what to expect.
_SHUFFLES = 3


@dataclasses.dataclass(frozen=True)
class PMSERatio(UtilityMeasure):
    """Propensity error over what it would be if records came from the right model of the original.

    A logistic regression on all columns (categories as indicators) tells released records from
    original ones. Of N records, a share c released, its error is expected to be
    (p − 1)(1 − c)² c / N for p parameters where records are drawn from the right model, fitted to
    the original; a second sample of the population gives twice that. For trees the expectation comes
    from shuffled labels. The value is the ratio minus 1, at least 0.

    Examples
    --------
    >>> import pandas as pd
    >>> raw = pd.DataFrame({"age": range(100)})
    >>> pair = Pair.of(raw, raw + 50, paired=False)
    >>> PMSERatio().compare(pair, rng=Randomness.seeded(1)).facts["ratio"] > 10
    True
    """

    name: ClassVar[str] = "pmse-ratio"
    reference: ClassVar[str] = "Snoke, Raab, Nowok, Dibben and Slavković, JRSS A 2018"
    needs_origin: ClassVar[bool] = False

    model: str = parameter("logistic", help="the classifier", choices=("logistic", "trees"))
    rows: int = parameter(30_000, help="records of each file used at most", low=10)

    def applies(self, pair: Pair) -> bool:
        """Needs enough records to learn from."""
        return super().applies(pair) and min(pair.size, len(pair.original)) >= 20

    @one_thread()
    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        """Return how far the ratio lies above 1."""
        names = [n for n in pair.shared if n != pair.schema.weight]
        sides = design(pair, names)
        some = [v[np.sort(rng.sample(len(v), min(len(v), self.rows)))] for v in sides]
        rows = np.concatenate(some)
        label = np.repeat([0.0, 1.0], [len(v) for v in some])
        if self.model == "logistic":
            numeric = [pair.is_numeric(name) for name in names]
            seen = _indicators(rows, numeric)
            share = float(label.mean())
            error = _error(_logistic(seen, label), share)
            expected = (seen.shape[1] - 1) * (1 - share) ** 2 * share / label.size
        else:
            error = _error(_trees(rows, label), float(label.mean()))
            shuffled = [
                _error(_trees(rows, label[rng.permutation(label.size)]), label.mean())
                for _ in range(_SHUFFLES)
            ]
            expected = float(np.mean(shuffled))
        ratio = error / expected if expected > 0 else 0.0
        facts = {"ratio": ratio, "pMSE": error, "expected": expected}
        words = (
            f"told from the original {ratio:.2f} times as well as draws from the right model are"
        )
        return self.comparison(max(0.0, ratio - 1), words, facts)


def _error(odds: Numbers, share: float) -> float:
    return float(np.mean((odds - share) ** 2))


def _trees(rows: Numbers, label: Numbers) -> Numbers:
    return np.asarray(learner(numeric=False).fit(rows, label).predict_proba(rows)[:, 1])


def _indicators(rows: Numbers, numeric: list[bool]) -> Numbers:
    """Return a constant, numbers scaled, and an indicator of every code but the first."""
    found = [np.ones(len(rows))]
    for place, is_number in enumerate(numeric):
        values = rows[:, place]
        missing = np.isnan(values)
        if missing.any():
            found.append(missing.astype(float))
        if is_number:
            known = values[~missing]
            if known.size and known.std() > 0:
                found.append(np.where(missing, 0.0, (values - known.mean()) / known.std()))
            continue
        found += [(values == code).astype(float) for code in np.unique(values[~missing])[1:]]
    return np.stack(found, axis=1)


def _logistic(rows: Numbers, label: Numbers) -> Numbers:
    """Return the fitted probabilities of a logistic regression, by Newton's method."""
    slope = np.zeros(rows.shape[1])
    # Codes that only one file has would send their coefficients to infinity.
    ridge = 1e-3 * np.eye(rows.shape[1])
    for _ in range(25):
        odds = 1 / (1 + np.exp(-np.clip(rows @ slope, -30, 30)))
        weight = odds * (1 - odds)
        step = np.linalg.solve(
            (rows * weight[:, None]).T @ rows + ridge, rows.T @ (label - odds) - ridge @ slope
        )
        slope = slope + step
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(1 / (1 + np.exp(-np.clip(rows @ slope, -30, 30))))
