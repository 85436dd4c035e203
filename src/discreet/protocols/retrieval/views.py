"""What a server sees, and a classifier that tries to tell from it which slot was asked for."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.protocols.retrieval.schemes._base import Public, Scheme, Shape
from discreet.randomness import Randomness

__all__ = ["ViewTest", "view_test"]


@dataclasses.dataclass(frozen=True)
class ViewTest:
    """How well a classifier tells two slots apart by one server's view; 0.5 is chance."""

    auc: float
    standard_error: float
    views: int

    @property
    def is_chance(self) -> bool:
        """Whether it is within three standard errors of guessing."""
        return abs(self.auc - 0.5) <= 3 * self.standard_error


def view_test(
    scheme: Scheme,
    shape: Shape,
    slots: tuple[Sequence[int], Sequence[int]],
    *,
    views: int,
    rng: Randomness,
    server: int = 0,
    public: Public | None = None,
) -> ViewTest:
    """Ask for two selections in turn and try to tell them apart by what one server gets.

    Half of the views teach the direction in which the two differ on average; on the other half the
    area under the ROC curve is measured. A reused vector or secret shows at once.

    Examples
    --------
    >>> from discreet.protocols.retrieval.schemes.dpf import DPF
    >>> shape = Shape(columns=128, width=8)
    >>> view_test(DPF(), shape, ([3], [77]), views=400, rng=Randomness.seeded(1)).is_chance
    True
    """
    seen = [
        np.stack(
            [
                _features(scheme, scheme.ask(shape, one, rng=rng, public=public).questions[server])
                for _ in range(views // 2)
            ]
        )
        for one in slots
    ]
    half = views // 4
    direction = seen[1][:half].mean(axis=0) - seen[0][:half].mean(axis=0)
    scores = [part[half:] @ direction for part in seen]
    return _area(scores[0], scores[1])


def _features(scheme: Scheme, question: bytes) -> npt.NDArray[np.float64]:
    if scheme.arithmetic == "add":
        return np.frombuffer(question, np.int32) / 2.0**31
    return np.unpackbits(np.frombuffer(question, np.uint8)).astype(np.float64) - 0.5


def _area(low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> ViewTest:
    """Return the probability that a score of the second kind is larger, ties counted half."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([low, high]))
    n, m = len(low), len(high)
    auc = (ranks[n:].sum() - m * (m + 1) / 2) / (n * m)
    # Standard error under the hypothesis that nothing can be told.
    return ViewTest(float(auc), math.sqrt((n + m + 1) / (12 * n * m)), 2 * (n + m))
