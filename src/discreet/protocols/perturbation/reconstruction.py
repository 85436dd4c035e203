"""The distribution behind noisy values, by expectation and maximisation over bins."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.protocols.perturbation.law import NoiseLaw
from discreet.report import Report, Rows

__all__ = ["Reconstruction", "reconstruct"]

Floats = npt.NDArray[np.float64]
#: For each category the odds of what it becomes.
Matrix = Mapping[Any, Mapping[Any, float]]
_MOST_BINS = 2_000


@dataclasses.dataclass(frozen=True, eq=False)
class Reconstruction(Report):
    """A distribution that was had back from values behind noise."""

    edges: Floats
    probability: Floats
    raw: Floats
    iterations: int
    converged: bool
    #: The categories, where values are none on a line; `edges` is empty then.
    categories: tuple[str, ...] = ()

    def rows(self) -> Rows:
        """Return one line for each bin or category."""
        if self.categories:
            found = zip(self.categories, self.probability, self.raw, strict=True)
            return ("category", "reconstructed", "of changed values"), [
                (name, float(share), float(raw)) for name, share, raw in found
            ]
        lines = zip(self.edges[:-1], self.edges[1:], self.probability, self.raw, strict=True)
        return ("from", "to", "reconstructed", "of noisy values"), [
            tuple(map(float, one)) for one in lines
        ]

    def distance(self, truth: Floats, *, raw: bool = False) -> float:
        """Return the L1 distance to the true shares of the bins."""
        return float(np.abs((self.raw if raw else self.probability) - truth).sum())


def reconstruct(
    noisy: npt.ArrayLike,
    law: NoiseLaw | Matrix,
    *,
    low: float | None = None,
    high: float | None = None,
    bins: int = 60,
    tolerance: float = 0.05,
    iterations: int = 5_000,
) -> Reconstruction:
    """Return the distribution of values, given only what they are with noise of a known law.

    Each step asks of every noisy value in which bin its original lies, under the distribution of
    the step before, and averages (Agrawal and Srikant 2000; the limit is the maximum of the
    likelihood, Agrawal and Aggarwal 2001). It ends when a step gains less than `tolerance` in twice
    the log likelihood: going on would fit the noise.

    Parameters
    ----------
    noisy
        Values behind noise.
    law
        The law of the noise, as it was published; or the matrix by which categories were changed
        (PRAM): for each category the odds of what it becomes, `{from: {to: probability}}`.
    low, high
        Between which the originals lie; not for categories.
    bins
        How many intervals of equal width.
    tolerance
        Gain in twice the log likelihood below which the iteration stops.
    iterations
        At most so many steps; `converged` says whether fewer were enough.

    Examples
    --------
    >>> from discreet.randomness import Randomness
    >>> rng = Randomness.seeded(1)
    >>> ages = np.where(rng.uniform(20_000) < 0.5, 30.0, 70.0)
    >>> law = NoiseLaw("gaussian", 10.0)
    >>> found = reconstruct(ages + law.draw(20_000, rng=rng), law, low=0, high=80, bins=4)
    >>> found.probability.round(1).tolist(), found.converged
    ([0.0, 0.5, 0.0, 0.5], True)

    Of three in four cooks one in five was published as a pilot:

    >>> matrix = {"cook": {"cook": 0.8, "pilot": 0.2}, "pilot": {"pilot": 1.0}}
    >>> jobs = ["cook"] * 600 + ["pilot"] * 400
    >>> reconstruct(jobs, matrix).probability.round(2).tolist()
    [0.75, 0.25]
    """
    if isinstance(law, Mapping):
        return _categories(noisy, law, tolerance, iterations)
    values = np.asarray(noisy, dtype=np.float64).reshape(-1)
    values = values[np.isfinite(values)]
    if (
        low is None
        or high is None
        or not values.size
        or not low < high
        or not 1 <= bins <= _MOST_BINS
    ):
        raise InputError(
            "there is nothing to reconstruct: no values, no room between low and high, or no bins",
            code="out-of-range",
            hint=f"give values, low < high, and 1 to {_MOST_BINS} bins",
        )
    edges = np.linspace(low, high, bins + 1)
    width = (high - low) / bins
    middles = (edges[:-1] + edges[1:]) / 2
    # Noisy values are binned on the same grid, continued on both sides as far as they reach.
    before = max(0, int(np.ceil((low - values.min()) / width)))
    after = max(0, int(np.ceil((values.max() - high) / width)))
    grid = low + width * np.arange(-before, bins + after + 1)
    counts, _ = np.histogram(np.clip(values, grid[0], grid[-1]), bins=grid)
    # Chance of each noisy bin, given that the original is in the middle of a bin.
    chance = np.diff(law.cumulative(grid[:, None] - middles[None, :]), axis=0)
    seen = counts > 0
    counts, chance = counts[seen].astype(np.float64), chance[seen]
    reachable = chance.sum(axis=1) > 0  # others are no originals in [low, high] with this law
    counts, chance = counts[reachable], chance[reachable]
    if not counts.size:
        raise InputError(
            "no value can come from between low and high with this noise",
            code="out-of-range",
            hint="give the bounds of the originals and the law that was published",
        )
    share, steps, converged = _maximised(counts, chance, tolerance, iterations)
    raw, _ = np.histogram(np.clip(values, low, high), bins=edges)
    return Reconstruction(edges, share, raw / raw.sum(), steps, converged)


def _maximised(
    counts: Floats, chance: Floats, tolerance: float, iterations: int
) -> tuple[Floats, int, bool]:
    """Return the shares of largest likelihood, in how many steps, and whether these were enough."""
    share = np.full(chance.shape[1], 1.0 / chance.shape[1])
    likelihood, steps, converged = -np.inf, 0, False
    while steps < iterations and not converged:
        steps += 1
        mixture = chance @ share
        now = 2 * float(counts @ np.log(mixture))
        converged, likelihood = now - likelihood < tolerance, now
        share = share * (chance.T @ (counts / mixture)) / counts.sum()
        share /= share.sum()
    return share, steps, converged


def _categories(changed: Any, matrix: Matrix, tolerance: float, iterations: int) -> Reconstruction:
    """Return the shares of categories before they were changed. Any: codes of any kind."""
    names = tuple(str(name) for name in matrix)
    odds = np.array(
        [[float({str(k): v for k, v in row.items()}.get(name, 0.0)) for row in matrix.values()]
         for name in names]
    )  # fmt: skip
    codes = [str(one) for one in np.asarray(changed).reshape(-1).tolist()]
    counts = np.array([codes.count(name) for name in names], dtype=np.float64)
    if (
        not codes
        or counts.sum() < len(codes)
        or (odds < 0).any()
        or not np.allclose(odds.sum(axis=0), 1.0, atol=1e-6)
        or (counts[odds.sum(axis=1) == 0] > 0).any()
    ):
        raise InputError(
            "the matrix does not say what the values came from",
            code="out-of-range",
            hint="give for every category the odds of what it becomes, adding up to 1",
        )
    seen = counts > 0
    # An exact fit is the limit; a step that gains so little is near it.
    share, steps, converged = _maximised(counts[seen], odds[seen], tolerance * 1e-4, iterations)
    return Reconstruction(np.zeros(0), share, counts / counts.sum(), steps, converged, names)


def shares(values: Any, edges: Floats) -> Floats:
    """Return which share of values lies in each bin."""
    counts, _ = np.histogram(np.asarray(values, dtype=np.float64), bins=edges)
    return np.asarray(counts / max(counts.sum(), 1))
