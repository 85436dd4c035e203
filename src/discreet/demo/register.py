"""A business register: firms in holdings, turnover that a few of them dominate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.demo import codes
from discreet.demo.people import _pick, _text
from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["businesses_arrow"]

#: Turnover per employee in thousands, by section of `codes.ACTIVITIES`.
_PRODUCTIVITY = (90, 210, 130, 320, 140, 180, 420, 120)
_SHARE = (6, 14, 16, 26, 9, 9, 5, 15)


def businesses_arrow(n: int, *, seed: int = 1) -> pa.Table:
    """Return n firms as an Arrow table; the same seed gives the same firms.

    A holding owns one firm, or several, often in the same activity: to protect firms one must
    protect holdings. In small cells one firm makes most of the turnover.

    >>> firms = businesses_arrow(500)
    >>> firms.column_names
    ['firm_id', 'holding', 'activity', 'region', 'size', 'employees', 'turnover', 'weight']
    """
    import pyarrow as pa

    if n < 1:
        raise InputError(f"a register of {n} firms cannot be made", code="bad-size")
    rng = np.random.default_rng(seed)
    sections = list(codes.ACTIVITIES.values())
    section = _pick(rng, n, _SHARE)
    sizes = np.array([len(divisions) for divisions in sections])
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    # Divisions of very different size: the first of a section has most firms.
    division = np.floor(sizes[section] * rng.random(n) ** 1.8).astype(np.int64)
    land = _pick(rng, n, list(codes.LANDS.values()))
    province = _pick(rng, n, [0.4, 0.3, 0.2, 0.1])
    town = _pick(rng, n, [0.45, 0.25, 0.14, 0.09, 0.05, 0.02])
    place = (land * codes.PROVINCES + province) * codes.TOWNS + town
    employees = np.minimum(1 + np.floor(rng.pareto(1.05, n) * 2.2), 60_000).astype(np.int64)
    per_head = np.array(_PRODUCTIVITY)[section] * np.exp(rng.normal(0, 0.55, n))
    turnover = np.round(employees**1.04 * per_head, 1)
    size = np.searchsorted([10, 50, 250], employees, side="right")
    weight = np.array([12.0, 4.0, 1.5, 1.0])[size]
    divisions = [code for group in sections for code in group]
    return pa.table(
        {
            "firm_id": pa.array(np.arange(1, n + 1)),
            "holding": pa.array(_holdings(rng, offsets[section] + division, employees)),
            "activity": _text(offsets[section] + division, divisions),
            "region": _text(place, codes.region().leaves),
            "size": _text(size, codes.SIZES),
            "employees": pa.array(employees),
            "turnover": pa.array(turnover),
            "weight": pa.array(weight),
        }
    )


def _holdings(rng: np.random.Generator, activity: np.ndarray, employees: np.ndarray) -> np.ndarray:
    """Return the holding of each firm: itself, or a larger firm of its own activity."""
    n = len(activity)
    owner = np.arange(n)
    order = np.lexsort((-employees, activity))
    first = np.concatenate([[True], activity[order][1:] != activity[order][:-1]])
    start = np.maximum.accumulate(np.where(first, np.arange(n), 0))
    rank = np.arange(n) - start
    # One firm in eight belongs to one of the ten largest of its activity.
    owned = (rng.random(n) < 0.125) & (rank > 0)
    chief = start + np.floor(np.minimum(rank, 10) * rng.random(n)).astype(np.int64)
    owner[order[owned]] = order[chief[owned]]
    # Chiefs that are owned themselves pass their firms on, until nothing changes.
    while (owner != owner[owner]).any():
        owner = owner[owner]
    return owner + 1
