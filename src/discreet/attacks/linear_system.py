"""The linear-system attack."""

from __future__ import annotations

import dataclasses
import itertools
from typing import ClassVar

import numpy as np

from discreet.attacks._base import GatewayAttack, Interrogation, Victim
from discreet.registry import parameter

__all__ = ["LinearSystem"]


@dataclasses.dataclass(frozen=True)
class LinearSystem(GatewayAttack):
    """Ask for sums of overlapping large sets, and solve the equations for the victim.

    The people are cut into cells by the victim's condition, the group and the other condition;
    every union of cells is asked for, and the system of those that were answered is solved.

    Examples
    --------
    >>> LinearSystem().control().succeeded
    True
    """

    name: ClassVar[str] = "linear-system"
    reference: ClassVar[str] = (
        "Chin and Ozsoyoglu (1982), Auditing and inference control in statistical databases"
    )

    least: int = parameter(2, help="cells in each question", low=1)

    def conclude(self, interrogation: Interrogation, victim: Victim) -> tuple[float, float] | None:
        """Ask for unions of cells and solve."""
        who, group, other = f"({victim.condition})", f"({victim.group})", f"({victim.other})"
        cells = [
            who,
            *(
                f"(NOT {who} AND {'' if g else 'NOT '}{group} AND {'' if o else 'NOT '}{other})"
                for g, o in itertools.product((True, False), repeat=2)
            ),
        ]
        rows, low, high = [], [], []
        for size in range(self.least, len(cells) + 1):
            for chosen in itertools.combinations(range(len(cells)), size):
                what = " OR ".join(cells[c] for c in chosen)
                ends = interrogation.sum(victim, what)
                if ends is not None:
                    rows.append([float(c in chosen) for c in range(len(cells))])
                    low.append(ends[0])
                    high.append(ends[1])
        return _victim(np.array(rows), np.array(low), np.array(high)) if rows else None


def _victim(
    rows: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    low: np.ndarray[tuple[int], np.dtype[np.float64]],
    high: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> tuple[float, float] | None:
    """Return the range of the first unknown: a value if the equations determine it."""
    from scipy.optimize import linprog

    unknowns = rows.shape[1]
    if (low == high).all():
        first = np.zeros(unknowns)
        first[0] = 1.0
        weights, *_ = np.linalg.lstsq(rows.T, first, rcond=None)
        if not np.allclose(rows.T @ weights, first, atol=1e-8):
            return None
        value = float(weights @ low)
        return value, value
    goal = np.zeros(unknowns)
    goal[0] = 1.0
    limits = [(None, None)] * unknowns
    ends = []
    for sign in (1.0, -1.0):
        found = linprog(
            sign * goal,
            A_ub=np.vstack([rows, -rows]),
            b_ub=np.concatenate([high, -low]),
            bounds=limits,
            method="highs",
        )
        if found.status != 0 or found.fun is None:
            return None
        ends.append(sign * float(found.fun))
    return ends[0], ends[1]
