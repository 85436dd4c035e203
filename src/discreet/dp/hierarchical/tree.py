"""Least squares over a tree of places, in two passes.

In the analysis-of-variance basis the coordinates of a histogram are independent, so that the best
linear unbiased estimate of a whole tree is one scalar problem per coordinate: information is
gathered from the leaves to the root, and the root's estimate is handed down again.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Fit", "Gathered", "Spine", "fit", "gather", "variance_of_sum"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False)
class Spine:
    """A tree of places with all leaves on the last level.

    `parents[l]` has, for each node of level l + 1, the place of its parent in level l, ascending.

    Examples
    --------
    >>> spine = Spine((np.array([0, 0]), np.array([0, 0, 1])))
    >>> spine.sizes, spine.add_up(np.array([[1], [2], [3]]), 2).tolist()
    ((1, 2, 3), [[3], [3]])
    """

    parents: tuple[Ints, ...]

    @functools.cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of nodes of each level, the root first."""
        return (1, *(len(above) for above in self.parents))

    @property
    def depth(self) -> int:
        """Number of levels."""
        return len(self.sizes)

    @functools.cached_property
    def starts(self) -> tuple[Ints, ...]:
        """For each level but the last, where the children of each of its nodes begin; and the end."""
        return tuple(
            np.searchsorted(above, np.arange(size + 1)).astype(np.int64)
            for above, size in zip(self.parents, self.sizes[:-1], strict=True)
        )

    def add_up(self, level: npt.NDArray[np.generic], number: int) -> npt.NDArray[np.generic]:
        """Return the sums over siblings of an array with one row per node of a level."""
        return np.asarray(np.add.reduceat(level, self.starts[number - 1][:-1], axis=0))


@dataclasses.dataclass(frozen=True, eq=False)
class Gathered:
    """What is known of each node from its own measurements and those below it.

    Per level: estimates and variances of the coordinates; (1, cells) where all nodes are alike.
    """

    spine: Spine
    estimate: tuple[Floats, ...]
    variance: tuple[Floats, ...]

    def children(self, number: int) -> tuple[Floats, Floats]:
        """Return the sums of estimates and of variances over the children of each node of a level."""
        below = number + 1
        variance = self.variance[below]
        if len(variance) == 1:
            count = np.diff(self.spine.starts[number])[:, None]
            total: Floats = count * variance
        else:
            total = np.asarray(self.spine.add_up(variance, below), dtype=np.float64)
        return np.asarray(self.spine.add_up(self.estimate[below], below), dtype=np.float64), total


@dataclasses.dataclass(frozen=True, eq=False)
class Fit:
    """The best linear unbiased estimate: coordinates and their variances at every level."""

    gathered: Gathered
    estimate: tuple[Floats, ...]
    variance: tuple[Floats, ...]


def gather(
    spine: Spine,
    weighted: Sequence[Floats],
    precisions: Sequence[Floats],
    exact: Mapping[int, tuple[Bools, Floats]] | None = None,
) -> Gathered:
    """Return the pass up.

    Parameters
    ----------
    weighted
        Per level the measurements in coordinates, times their precisions.
    precisions
        Per level the precision of each coordinate; zero where it is not measured. On the last
        level every coordinate must be measured.
    exact
        Levels of which some coordinates are known without error: which, and their values.
    """
    exact = exact or {}
    last = spine.depth - 1
    estimate: list[Floats] = [np.zeros((0, 0))] * spine.depth
    variance: list[Floats] = [np.zeros((0, 0))] * spine.depth
    for number in range(last, -1, -1):
        if number == last:
            variance[number] = 1 / precisions[number][None, :]
            estimate[number] = weighted[number] * variance[number]
        else:
            done = Gathered(spine, tuple(estimate), tuple(variance))
            total, spread = done.children(number)
            known = spread == 0  # everything below is exact
            below = np.where(known, 0.0, 1 / np.where(known, 1.0, spread))
            variance[number] = np.where(
                known, 0.0, 1 / (precisions[number] + np.where(known, 1.0, below))
            )
            found = (weighted[number] + total * below) * variance[number]
            estimate[number] = np.where(known, total, found)
        if number in exact:
            which, values = exact[number]
            estimate[number][:, which] = values
            variance[number] = variance[number].copy()
            variance[number][:, which] = 0.0
    return Gathered(spine, tuple(estimate), tuple(variance))


def fit(gathered: Gathered) -> Fit:
    """Return the pass down: estimates that add up, with their variances."""
    spine = gathered.spine
    estimate, variance = [gathered.estimate[0]], [gathered.variance[0]]
    for number in range(spine.depth - 1):
        gain, gap, slack = _gains(gathered, number, estimate[number], variance[number])
        above = spine.parents[number]
        estimate.append(gathered.estimate[number + 1] + gain * gap[above])
        variance.append(gathered.variance[number + 1] - gain**2 * slack[above])
    return Fit(gathered, tuple(estimate), tuple(np.maximum(one, 0.0) for one in variance))


def _gains(
    gathered: Gathered, number: int, estimate: Floats, variance: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return how children share their parent's gap, the gap, and the variance that it explains."""
    total, spread = gathered.children(number)
    above = gathered.spine.parents[number]
    inverse = np.where(spread == 0, 0.0, 1 / np.where(spread == 0, 1.0, spread))
    gain = gathered.variance[number + 1] * inverse[above]
    return gain, estimate - total, np.where(spread == 0, 0.0, spread - variance)


def variance_of_sum(fitted: Fit, weights: Mapping[int, Floats]) -> Floats:
    """Return per coordinate the variance of a weighted sum of nodes of several levels.

    Given its parent, a child is the parent's share plus an independent rest; so the sum over a
    subtree is a multiple of its top plus a rest, from the leaves up.
    """
    gathered, spine = fitted.gathered, fitted.gathered.spine
    cells = gathered.estimate[0].shape[1]
    factor, rest = np.zeros((0, cells)), np.zeros((0, cells))
    for number in range(spine.depth - 1, -1, -1):
        own = np.zeros((spine.sizes[number], cells))
        extra = np.zeros_like(own)
        if number < spine.depth - 1 and (factor.any() or rest.any()):
            _, spread = gathered.children(number)
            inverse = np.where(spread == 0, 0.0, 1 / np.where(spread == 0, 1.0, spread))
            below = gathered.variance[number + 1]
            mixed = np.asarray(spine.add_up(factor * below, number + 1))
            extra = (
                np.asarray(spine.add_up(rest + factor**2 * below, number + 1)) - mixed**2 * inverse
            )
            own = mixed * inverse
        if number in weights:
            own = own + weights[number][:, None]
        factor, rest = own, extra
    return np.asarray(factor[0] ** 2 * fitted.variance[0][0] + rest[0])
