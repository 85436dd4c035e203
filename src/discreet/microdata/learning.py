"""Models that learn from files: for the propensity score, for inference, for use by analysts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.microdata.columns import numbers
from discreet.microdata.pair import Pair

__all__ = ["design", "learner", "one_thread"]

Numbers = npt.NDArray[np.float64]


def design(pair: Pair, names: Sequence[str]) -> tuple[Numbers, Numbers]:
    """Return columns of both files as numbers for a tree model; missing values stay missing.

    Categories are numbered in the order of their names, the same in both files.
    """
    before, after = [], []
    for name in names:
        if pair.is_numeric(name):
            before.append(numbers(pair.before(name), name=name))
            after.append(numbers(pair.after(name), name=name))
        else:
            first, second, _ = pair.comparable(name)
            before.append(np.where(first < 0, np.nan, first.astype(float)))
            after.append(np.where(second < 0, np.nan, second.astype(float)))
    return np.stack(before, axis=1), np.stack(after, axis=1)


def learner(*, numeric: bool, categories: Sequence[int] = ()) -> Any:
    """Return an untrained gradient-boosted model: a regression or a classifier.

    Codes of the columns named by their places are sorted by what they tell of the target, and not by
    their number. Any: scikit-learn is imported only where a model is trained.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if numeric else HistGradientBoostingClassifier
    # The state only steers the binning sample and early stopping, both unused here.
    return kind(
        max_iter=40, early_stopping=False, random_state=0, categorical_features=list(categories)
    )


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Train in one thread: threads of small models spend most of their time waiting for each other.

    On 2,000 records one is ten times as fast as two on a busy machine.
    """
    import sklearn.ensemble  # noqa: F401  # limits hold for what is loaded already
    from threadpoolctl import (  # type: ignore[import-untyped]  # it has no annotations
        threadpool_limits,
    )

    with threadpool_limits(limits=1, user_api="openmp"):
        yield
