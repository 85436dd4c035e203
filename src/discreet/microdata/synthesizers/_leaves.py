"""Trees whose leaves hold donors: a synthetic record gets the value of a record in its leaf."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.microdata.columns import Numbers, Places
from discreet.microdata.synthesizers._variables import Variable
from discreet.randomness import Randomness

__all__ = ["Leaves", "grow", "matrix", "ranks"]

#: A split must lower the impurity by so much: one that tells nothing apart costs time only.
_GAIN = 1e-8
#: Quantiles at which the distribution of a number is looked at.
_QUANTILES = 7


@dataclasses.dataclass(frozen=True, eq=False)
class Leaves:
    """A grown tree and the records in each leaf; without a tree all records are in one."""

    #: Any: scikit-learn has no annotations.
    tree: Any
    donors: Places
    start: Places
    count: Places

    def leaf(self, predictors: np.ndarray) -> Places:
        """Return the leaf that each record falls into."""
        if self.tree is None:
            return np.zeros(len(predictors), np.int64)
        return np.asarray(self.tree.apply(predictors), np.int64)

    def draw(self, predictors: np.ndarray, *, rng: Randomness) -> Places:
        """Return a donor for each record, drawn among those in its leaf."""
        leaf = self.leaf(predictors)
        chosen = (rng.uniform(len(leaf)) * self.count[leaf]).astype(np.int64)
        return self.donors[self.start[leaf] + np.minimum(chosen, self.count[leaf] - 1)]


def grow(
    predictors: np.ndarray,
    target: np.ndarray,
    rows: Places,
    *,
    numeric: bool,
    min_leaf: int,
    rng: Randomness,
) -> Leaves:
    """Return the tree that tells a target from predictors; `rows` are the donors' numbers.

    Splits lower the Gini impurity of categories, or the variance of a number and of whether it lies
    below each of its quantiles: leaves then differ in their whole distribution and not only in their
    mean. None is pruned: a split that changes no majority still moves shares.
    """
    several = rows.size >= 2 * min_leaf and predictors.shape[1] > 0
    if not several or (target == target[0]).all():
        return Leaves(None, rows, np.zeros(1, np.int64), np.array([rows.size]))
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    kind = DecisionTreeRegressor if numeric else DecisionTreeClassifier
    # The state settles ties between equal splits, which would follow the order of columns.
    state = int(rng.integers(0, 2**31 - 1, 1)[0])
    tree = (
        kind(min_samples_leaf=min_leaf, min_impurity_decrease=_GAIN, random_state=state)
        .fit(predictors, _shape(target) if numeric else target)
        .tree_
    )
    leaf = np.asarray(tree.apply(predictors), np.int64)
    order = np.argsort(leaf, kind="stable")
    count = np.bincount(leaf, minlength=tree.node_count)
    return Leaves(tree, rows[order], np.cumsum(count) - count, count)


def _shape(values: Numbers) -> Numbers:
    """Return a number, scaled, beside whether it lies at most at each of its quantiles."""
    cuts = np.unique(np.quantile(values, np.linspace(0, 1, _QUANTILES + 2)[1:-1]))
    scaled = (values - values.mean()) / (values.std() or 1.0)
    below = (values[:, None] <= cuts[None, :]).astype(np.float64)
    return np.concatenate([scaled[:, None], 2 * below], axis=1)


def ranks(predictor: Variable, target: np.ndarray, rows: Places, *, numeric: bool) -> Numbers:
    """Return the order in which a tree should see the codes of a predictor, for one target.

    Numbers keep their own order. Codes are ordered by the mean of a number or of a binary target,
    and by the first principal score of the target's shares within each code otherwise: one cut
    along this order then does what a search over all subsets of codes would.
    """
    width = predictor.width
    if predictor.numeric or width <= 3:
        return np.arange(width, dtype=np.float64)
    places = predictor.places[rows]
    count = np.bincount(places, minlength=width).astype(np.float64)
    present = np.maximum(count, 1)
    if numeric:
        score = np.bincount(places, target, minlength=width) / present
    else:
        classes = int(target.max()) + 1
        counted = np.bincount(places * classes + target, minlength=width * classes)
        shares = counted.reshape(width, classes).astype(np.float64) / present[:, None]
        middle = (count @ shares) / max(count.sum(), 1)
        spread = (shares - middle) * np.sqrt(count)[:, None]
        _, _, axes = np.linalg.svd(spread, full_matrices=False)
        # The sign of an axis is arbitrary; settle it, so that equal files give equal orders.
        axis = axes[0] * np.sign(axes[0][np.argmax(np.abs(axes[0]))] or 1.0)
        score = np.where(count > 0, (shares - middle) @ axis, 0.0)
    found = np.empty(width)
    found[np.lexsort((np.arange(width), score))] = np.arange(width)
    return found


def matrix(columns: Sequence[tuple[Numbers, Places]]) -> np.ndarray:
    """Return predictors as scikit-learn's trees want them: ranks looked up at places."""
    return np.stack([rank[places] for rank, places in columns], axis=1).astype(np.float32)
