"""Tables of probabilities for cell-key noise: unbiased, bounded, with a given variance."""

from __future__ import annotations

import functools

import numpy as np

from discreet.data.table import Floats, Ints
from discreet.errors import InputError

__all__ = ["deviations", "transition"]


@functools.cache
def transition(deviation: int, variance: float, smallest: int) -> tuple[tuple[float, ...], ...]:
    """Return for each count the probabilities of −deviation … deviation; the last row for all larger.

    Of all distributions with mean zero and the variance that publish nothing negative and nothing
    from 1 to `smallest` the one of greatest entropy is taken.

    >>> rows = np.array(transition(3, 1.5, 0))
    >>> steps = np.arange(-3, 4)
    >>> bool(np.allclose(rows[1:] @ steps, 0) and np.allclose(rows[1:] @ steps**2, 1.5))
    True
    """
    rows: list[tuple[float, ...]] = [_certain(deviation)]  # zero stays zero
    for count in range(1, deviation + smallest + 1):
        steps = np.arange(-deviation, deviation + 1)
        result = count + steps
        allowed = (result == 0) | (result > smallest)
        rows.append(_entropy(steps, allowed, variance, count))
    return tuple(rows)


def _certain(deviation: int) -> tuple[float, ...]:
    row = np.zeros(2 * deviation + 1)
    row[deviation] = 1.0
    return tuple(row.tolist())


def _entropy(steps: Ints, allowed: Ints, variance: float, count: int) -> tuple[float, ...]:
    from scipy.optimize import minimize  # takes as long to import as all of the tables' modules

    support = steps[allowed].astype(np.float64)
    low, high = support.min(initial=0.0), support.max(initial=0.0)
    largest = -low * high
    inside = 0.0
    if 0 not in support:
        below, above = support[support < 0], support[support > 0]
        if not below.size or not above.size:
            raise _impossible(count, "no step keeps the expectation")
        inside = float(-below.max() * above.min())
    if not inside < variance < largest:
        raise _impossible(count, f"between {inside:g} and {largest:g}", variance)
    squares = support**2 - variance
    features = np.stack([support, squares])

    def dual(weights: Floats) -> tuple[float, Floats]:
        energy = weights @ features
        top = energy.max()
        mass = np.exp(energy - top)
        total = mass.sum()
        return float(top + np.log(total)), np.asarray(features @ (mass / total))

    found = minimize(dual, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-12})
    energy = found.x @ features
    mass = np.exp(energy - energy.max())
    row = np.zeros(len(steps))
    row[allowed] = mass / mass.sum()
    if abs(row @ steps) > 1e-6 or abs(row @ steps**2 - variance) > 1e-6 * max(1.0, variance):
        raise _impossible(count, f"well between {inside:g} and {largest:g}", variance)
    return tuple(row.tolist())


def _impossible(count: int, room: str, variance: float | None = None) -> InputError:
    given = "" if variance is None else f" a variance of {variance:g} is given, feasible is {room};"
    return InputError(
        f"cell-key: a count of {count} cannot be changed without bias:{given or ' ' + room}".rstrip(
            ";"
        ),
        code="parameter-range",
        hint="give a variance inside, or another maximal deviation",
        parameter="variance",
    )


def deviations(
    counts: Ints, uniform: Floats, *, deviation: int, variance: float, smallest: int
) -> Ints:
    """Return the deviation of each cell by its count and its key."""
    rows = np.array(transition(deviation, float(variance), smallest))
    limits = rows.cumsum(axis=1)[:, :-1]
    row = np.minimum(counts, len(rows) - 1)
    step = (uniform[:, None] >= limits[row]).sum(axis=1) - deviation
    return np.where(counts > 0, step, 0).astype(np.int64)
