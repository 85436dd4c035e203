"""A joint table as one party is asked for it: what was agreed, what is wanted, what it holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.joint.demand import Demand

__all__ = ["Asked"]

Numbers = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False)
class Asked:
    """What a party needs for a joint table, beside its links."""

    policy: JointPolicy
    demand: Demand
    #: An owner's summary of its cells; none at a node without records.
    inputs: Numbers | None
    #: Summarizes, for the totals of a level, those of an owner's cells that are withheld.
    withheld: Callable[[int, Sequence[tuple[str, ...]]], Numbers]
