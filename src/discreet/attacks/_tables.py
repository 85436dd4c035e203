"""What attacks on published tables of counts share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.attacks._base import Attack, Attacked, AttackReport

__all__ = ["Counts", "Publish", "Rates", "TableAttack", "identity"]

Counts = npt.NDArray[np.int64]
#: What is attacked: counts in, published figures out. Any: of whatever form an attacker's score reads.
Publish = Callable[[Counts], Any]


@dataclasses.dataclass(frozen=True)
class Rates(AttackReport):
    """How often an attack is right about people in the records, and about people who are not."""

    #: Share of right conclusions about people in the records.
    found: float = 0.0
    #: Share of people left out of the records about whom the same is concluded.
    blind: float = 0.0


@dataclasses.dataclass(frozen=True)
class TableAttack(Attack):
    """An attack on published counts."""

    attacks: ClassVar[Attacked] = "tables"


def identity(counts: Counts) -> Counts:
    """Publish counts as they are: the naive form.

    >>> identity(np.array([1, 2])).tolist()
    [1, 2]
    """
    return counts
