"""Trees whose leaves hold donors: a synthetic record gets the value of a record in its leaf."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.microdata.columns import Numbers, Places
from discreet.microdata.synthesizers._score import Score, scored
from discreet.microdata.synthesizers._variables import Variable
from discreet.randomness import Randomness

__all__ = ["Leaves", "grow", "matrix", "ranks"]

#: A split of numbers must lower the impurity by so much: one that tells nothing costs time only.
_GAIN = 1e-8
#: A split of codes must gain what a split by lot gains, and so many standard deviations more.
_BEYOND = 0.4
#: Leaves of fewer records ask for finer splits: so much less of that gain is then demanded.
_FINE = 50
#: Orders in which a tree sees the codes of a predictor, at most.
_AXES = 4
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
    #: For each node of the tree the one whose donors it uses; None where each uses its own.
    into: Places | None = None
    #: What the tree looks at in place of the predictors; None where it looks at them.
    score: Score | None = None

    def leaf(self, predictors: np.ndarray) -> Places:
        """Return the leaf that each record falls into."""
        if self.tree is None:
            return np.zeros(len(predictors), np.int64)
        if self.score is not None:
            predictors = self.score.of(predictors)
        found = np.asarray(self.tree.apply(predictors), np.int64)
        return found if self.into is None else self.into[found]

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
    owner: Places | None = None,
    scores: bool = False,
    rng: Randomness,
) -> Leaves:
    """Return the tree that tells a target from predictors; `rows` are the donors' numbers.

    Where units own several records (`owner`), leaves of fewer units than `min_leaf` are joined.

    Splits lower the Gini impurity of categories, or the variance of a number and of whether it lies
    below each of its quantiles: leaves then differ in their whole distribution and not only in their
    mean. None is pruned for changing no majority: it still moves shares. A split of codes that gains
    no more than one by lot would is not made: it keeps nothing, and smaller leaves tell more of people.
    With `scores` the tree sees the score of boosted trees in place of the predictors: see `scored`.
    """
    several = rows.size >= 2 * min_leaf and predictors.shape[1] > 0
    if not several or (target == target[0]).all():
        return Leaves(None, rows, np.zeros(1, np.int64), np.array([rows.size]))
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    kind = DecisionTreeRegressor if numeric else DecisionTreeClassifier
    # The state settles ties between equal splits, which would follow the order of columns.
    state = int(rng.integers(0, 2**31 - 1, 1)[0])
    score = scored(predictors, target, min_leaf=min_leaf, state=state) if scores else None
    if score is not None:
        predictors = score.of(predictors)
    least = _GAIN if numeric else max(_GAIN, _chance(target) * min(1.0, min_leaf / _FINE))
    tree = (
        kind(
            min_samples_leaf=min_leaf,
            min_impurity_decrease=least,
            random_state=state,
        )
        .fit(predictors, _shape(target) if numeric else target)
        .tree_
    )
    leaf = np.asarray(tree.apply(predictors), np.int64)
    into = None if owner is None else _joined(tree, leaf, owner, min_leaf)
    leaf = leaf if into is None else into[leaf]
    order = np.argsort(leaf, kind="stable")
    count = np.bincount(leaf, minlength=tree.node_count)
    return Leaves(tree, rows[order], np.cumsum(count) - count, count, into, score)


def _joined(tree: Any, leaf: Places, owner: Places, fewest: int) -> Places:
    """Return for each node the nearest one above it, or itself, whose leaves have enough units each.

    Any: scikit-learn has no annotations.
    """
    parent = np.zeros(tree.node_count, np.int64)
    inner = np.flatnonzero(tree.children_left >= 0)
    parent[tree.children_left[inner]] = parent[tree.children_right[inner]] = inner
    into = np.arange(tree.node_count)
    while True:
        now = into[leaf]
        pairs = np.unique(np.stack([now, owner]), axis=1)[0]
        units = np.bincount(pairs, minlength=tree.node_count)
        small = np.flatnonzero((units > 0) & (units < fewest))
        small = small[small > 0]  # the root has all there are
        if not small.size:
            return into
        # A node is numbered before those below it, so that joins travel all the way down.
        closed = np.zeros(tree.node_count, bool)
        closed[parent[small]] = True
        for node in range(1, tree.node_count):
            above = parent[node]
            if closed[above] or into[above] != above:
                into[node] = into[above]


def _shape(values: Numbers) -> Numbers:
    """Return a number, scaled, beside whether it lies at most at each of its quantiles."""
    cuts = np.unique(np.quantile(values, np.linspace(0, 1, _QUANTILES + 2)[1:-1]))
    scaled = (values - values.mean()) / (values.std() or 1.0)
    below = (values[:, None] <= cuts[None, :]).astype(np.float64)
    return np.concatenate([scaled[:, None], 2 * below], axis=1)


def _chance(target: Places) -> float:
    """Return the fall of the Gini impurity that a split has to exceed to be more than chance.

    Records split by lot, in whatever shares, lower the impurity of n records by a weighted sum of
    χ² over n, whose weights are the eigenvalues of diag(p) − ppᵀ for class shares p: its mean is
    1 − Σp², its variance 2(Σp² − 2Σp³ + (Σp²)²).
    """
    shares = np.bincount(target) / target.size
    square, cube = float((shares**2).sum()), float((shares**3).sum())
    spread = np.sqrt(max(2 * (square - 2 * cube + square**2), 0.0))
    return (1 - square + _BEYOND * float(spread)) / target.size


def ranks(predictor: Variable, target: np.ndarray, rows: Places, *, numeric: bool) -> list[Numbers]:
    """Return the orders in which a tree should see the codes of a predictor, for one target.

    Numbers keep their own order. Codes are ordered by the principal scores of what the target looks
    like within each code: the shares of its classes, or of a number's quantiles. For two classes
    there is one, and a cut along it does what a search over all subsets of codes would; for more,
    cuts along several tell codes apart that one order would mix.
    """
    width = predictor.width
    if predictor.numeric or width <= 3:
        return [np.arange(width, dtype=np.float64)]
    places = predictor.places[rows]
    count = np.bincount(places, minlength=width).astype(np.float64)
    present = np.maximum(count, 1)[:, None]
    if numeric:
        shape = _shape(target).T
        sums = [np.bincount(places, column, minlength=width) for column in shape]
        profile = np.stack(sums, axis=1) / present
    else:
        classes = int(target.max()) + 1
        counted = np.bincount(places * classes + target, minlength=width * classes)
        profile = counted.reshape(width, classes).astype(np.float64) / present
    away = profile - (count @ profile) / max(count.sum(), 1)
    _, sizes, axes = np.linalg.svd(away * np.sqrt(count)[:, None], full_matrices=False)
    several = max(1, int((sizes[:_AXES] > 1e-9 * max(sizes[0], 1e-300)).sum()))
    return [_ranked(np.where(count > 0, away @ axis, 0.0), axis) for axis in axes[:several]]


def _ranked(score: Numbers, axis: Numbers) -> Numbers:
    """Return the rank of each code by its score along an axis."""
    # The sign of an axis is arbitrary; settle it, so that equal files give equal orders.
    sign = np.sign(axis[np.argmax(np.abs(axis))]) or 1.0
    found = np.empty(score.size)
    found[np.lexsort((np.arange(score.size), sign * score))] = np.arange(score.size)
    return found


def matrix(columns: Sequence[tuple[Sequence[Numbers], Places]]) -> np.ndarray:
    """Return predictors as scikit-learn's trees want them: ranks looked up at places."""
    seen = [rank[places] for several, places in columns for rank in several]
    return np.stack(seen, axis=1).astype(np.float32)
