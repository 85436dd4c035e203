"""People who own several records: a group must have records of k of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.errors import InfeasibleError

__all__ = ["people_in", "shared_by"]


def shared_by(
    labels: npt.NDArray[np.int64], owners: npt.NDArray[np.int64], k: int
) -> npt.NDArray[np.int64]:
    """Merge neighbouring groups until k people own records in each.

    A merged group has no fewer values, no narrower range and no larger share of one value.

    >>> shared_by(np.array([0, 0, 1, 1, 2, 2]), np.array([7, 7, 8, 9, 7, 8]), 2).tolist()
    [0, 0, 0, 0, 1, 1]
    """
    while (few := people_in(labels, owners) < k).any():
        if len(few) == 1:
            people = len(np.unique(owners))
            raise InfeasibleError(
                f"no group can have records of {k} people: the file has {people}",
                code="too-few-records",
                hint=f"at most k={people} would be feasible",
                feasible=people,
            )
        begins = ~np.concatenate(([False], few[:-1]))
        begins[-1] &= not few[-1]
        labels = (np.cumsum(begins) - 1)[labels]
    return labels


def people_in(
    labels: npt.NDArray[np.int64], owners: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return how many people own records in each group."""
    return np.bincount(np.unique(np.stack((labels, owners)), axis=1)[0])
