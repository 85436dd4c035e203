"""How far a consistent table is from what it counts, simulated on the published table itself.

The published table is taken for the truth and protected again: whatever comes out follows from what
everybody can read, so that it costs no privacy and tells nothing more.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from discreet.data.table import Floats, Ints, Table
from discreet.dp.hierarchical.budget import allocate
from discreet.progress import silent
from discreet.randomness import Randomness
from discreet.tables.methods._cube import views
from discreet.tables.methods._projection import least_squares
from discreet.tables.methods._tree_estimate import TreeEstimate
from discreet.tables.methods.top_down import TopDown

__all__ = ["Simulation", "discrete_gaussian", "simulate"]

#: Draws beyond which nobody waits for a page, and up to which the mean of three runs is shown.
_DRAWS, _SEVERAL = 1_000_000, 150_000
#: Cells up to which dp-noise is shown: it solves dense equations.
_DENSE = 20_000
#: Upper ends of classes of places by the people in them.
_CLASSES = (0, 10, 50, 200)


@dataclasses.dataclass(frozen=True)
class Simulation:
    """Mean absolute errors of totals per level and form, and the bias of places by their size."""

    levels: tuple[str, ...]
    #: Per form, per level: totals of places and single cells.
    errors: dict[str, list[tuple[float, float]]]
    #: Class of size, number of places, mean signed error of their totals.
    bias: list[tuple[str, int, float]]


def simulate(
    method: TopDown, estimate: TreeEstimate, levels: tuple[str, ...], *, repeats: int = 3
) -> Simulation | None:
    """Protect the published table again: by this method, from the leaves up, and by dp-noise.

    Returns None if the table is large, or not whole.
    """
    places, task = estimate.places, method.task_of(estimate.places)
    draws = places.draws(task.budget)
    if draws > _DRAWS or estimate.whole is None:
        return None
    repeats = repeats if draws <= _SEVERAL else 1
    truth = list(estimate.whole)
    alone = allocate(method.loss, [{(): 1.0}], records=method.records).measures[0].scale
    found: dict[str, list[Floats]] = {}
    moved = np.zeros(len(truth[-1]))
    # What is published is protected again, so that nobody's privacy hangs on these draws.
    rng = Randomness.seeded(1)

    def noise(values: Ints, scale: float) -> Ints:
        return discrete_gaussian(values, scale, rng)

    for _ in range(repeats):
        again = method.estimate(task.measure(truth[-1], silent, noise), places, rng=rng)
        assert again.whole is not None
        moved += (again.whole[-1] - truth[-1]).sum(axis=1)
        noisy = noise(truth[-1], alone)
        forms = {
            method.name: list(again.whole),
            "bottom-up, signed": _summed(places.spine, noisy),
            "bottom-up, cut at zero": _summed(places.spine, np.maximum(noisy, 0)),
        }
        if places.size <= _DENSE:
            leaves = _by_dp_noise(estimate, task.epsilon(method.stated_delta), method.records, rng)
            forms["dp-noise, the same ε"] = _summed(places.spine, leaves)
        for name, levels_found in forms.items():
            found.setdefault(name, []).append(
                np.array(
                    [
                        (np.abs((a - b).sum(axis=1)).mean(), np.abs(a - b).mean())
                        for a, b in zip(levels_found, truth, strict=True)
                    ]
                )
            )
    errors = {
        name: [(float(t), float(c)) for t, c in np.mean(several, axis=0)]
        for name, several in found.items()
    }
    return Simulation(levels, errors, _bias(truth[-1].sum(axis=1), moved / repeats))


def discrete_gaussian(values: Ints, scale: float, rng: Randomness) -> Ints:
    """Return whole numbers with discrete Gaussian noise that can be drawn again, for simulations.

    >>> rng = Randomness.seeded(1)
    >>> drawn = discrete_gaussian(np.zeros(20_000, dtype=np.int64), 2.0, rng)
    >>> bool(abs(drawn.std() - 2.0) < 0.05), bool(abs(drawn.mean()) < 0.06)
    (True, True)
    """
    reach = math.ceil(12 * scale)
    support = np.arange(-reach, reach + 1)
    chance = np.cumsum(np.exp(-(support.astype(np.float64) ** 2) / (2 * scale**2)))
    lots = rng.uniform(values.size) * chance[-1]
    return np.asarray(values + support[np.searchsorted(chance, lots)].reshape(values.shape))


def _by_dp_noise(estimate: TreeEstimate, epsilon: float, records: int, rng: Randomness) -> Floats:
    """Return single cells of the published table after dp-noise, one row per leaf."""
    places = estimate.places
    sizes = [len(dimension.codes) for dimension in places.dimensions]
    codes = np.indices(sizes).reshape(len(sizes), -1).T.astype(np.int32)
    table = Table(places.dimensions, codes, estimate.value, statistic="count")
    view = views(table)
    # As dp-noise spends it: alike on every level of totals, with two-sided geometric noise.
    rate = epsilon / len(np.unique(view)) / records
    lots = -np.log(rng.uniform(2 * len(table)).reshape(2, -1)) / rate
    noisy = table.value + np.floor(lots[0]) - np.floor(lots[1])
    value = least_squares(table.equations.tocsc(), np.ones(len(table)), noisy)
    return places.single(table.replace(value=value))


def _summed(spine: Any, leaves: Any) -> list[Any]:
    """Return the sums of leaves at every level. Any: arrays of numbers."""
    found = [leaves]
    for number in range(spine.depth - 1, 0, -1):
        found.insert(0, np.asarray(spine.add_up(found[0], number)))
    return found


def _bias(totals: Any, moved: Floats) -> list[tuple[str, int, float]]:
    found, low = [], -1
    for high in (*_CLASSES, None):
        inside = (totals > low) & ((totals <= high) if high is not None else True)
        name = f"above {low:,}" if high is None else f"{low + 1:,} to {high:,}" if high else "0"
        if inside.any():
            found.append((name, int(inside.sum()), float(moved[inside].mean())))
        low = high if high is not None else low
    return found
