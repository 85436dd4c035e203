"""How far a consistent table is from what it counts, simulated on the published table itself.

The published table is taken for the truth and protected again: whatever comes out follows from what
everybody can read, so that it costs no privacy and tells nothing more.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from discreet.data.table import Floats
from discreet.dp.hierarchical.budget import allocate
from discreet.dp.noise import add_gaussian
from discreet.progress import silent
from discreet.randomness import Randomness
from discreet.tables.methods._tree_estimate import TreeEstimate
from discreet.tables.methods.top_down import TopDown

__all__ = ["Simulation", "simulate"]

#: More draws than these keep nobody waiting for a page.
_DRAWS = 150_000
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
    """Protect the published table again, by this method and from the leaves up; None if it is large."""
    places, task = estimate.places, method.task_of(estimate.places)
    draws = sum(
        places.spine.sizes[one.level] * len(_answer(places.basis, one.query))
        for one in task.budget.measures
    )
    if draws > _DRAWS or estimate.whole is None:
        return None
    truth = list(estimate.whole)
    alone = allocate(method.loss, [{(): 1.0}], records=method.records).measures[0].scale
    found: dict[str, list[Floats]] = {}
    moved = np.zeros(len(truth[-1]))
    # What is published is protected again, so that nothing hangs on these draws.
    rng = Randomness.seeded(1)
    for _ in range(repeats):
        again = method.estimate(task.measure(truth[-1], silent), places, rng=rng)
        assert again.whole is not None
        moved += (again.whole[-1] - truth[-1]).sum(axis=1)
        noisy = add_gaussian(truth[-1], scale=alone)
        forms = {
            method.name: list(again.whole),
            "bottom-up, signed": _summed(places.spine, noisy),
            "bottom-up, cut at zero": _summed(places.spine, np.maximum(noisy, 0)),
        }
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


def _answer(basis: Any, query: tuple[int, ...]) -> Any:
    # Any: an array of numbers.
    return basis.answers(np.zeros((1, basis.cells)), query)[0]


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
