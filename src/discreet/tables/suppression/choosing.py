"""Which of the safe patterns of a small table is published: drawn by the key, not by the values.

The cheapest pattern depends on the values, and so tells of them. For a small table of counts the key
therefore proposes patterns: mostly the cheapest, sometimes one among cells that a coin prefers, and
sometimes with a cell more than is necessary. Coins depend on the key and the codes alone. The first
proposal is taken that excludes no promised count (`deniability`). Every pattern of that kind comes
from some coins, so that each table it leaves possible could have been the one behind it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from discreet.data.table import Table
from discreet.tables.suppression.deniability import Small
from discreet.tables.suppression.pattern import Pattern
from discreet.tables.suppression.ties import drawn

__all__ = ["Coins", "choose", "tosses"]

Bools = npt.NDArray[np.bool_]

#: Proposals after which all cells that may be are withheld.
_PROPOSALS = 40
#: One proposal in so many prefers cells by a coin.
_ROUGH = 8


@dataclasses.dataclass(frozen=True, eq=False)
class Coins:
    """What the key decides of one proposal: cells that are preferred, if any, and cells added."""

    preferred: Bools | None
    added: Bools


def tosses(table: Table, key: bytes) -> Iterator[Coins]:
    """Yield the coins of one proposal after the other, which depend on no value."""
    for number in range(_PROPOSALS):
        rough, half, more = (
            drawn(table, key, f"{purpose} {number}".encode())
            for purpose in ("rough", "half", "more")
        )
        # On average at most half a cell is added, however many there are.
        added = more < 0.5 / max(int((table.value > 0).sum()), 1)
        yield Coins(half < 0.5 if rough[0] < 1 / _ROUGH else None, added)


def choose(
    table: Table,
    attacker: str,
    never: Bools,
    search: Callable[[Bools | None], Pattern],
    coins: Iterator[Coins],
) -> Pattern:
    """Return the first proposal that tells no count, of any other table the cheapest pattern.

    `search` returns the cheapest pattern, where cells are given of those among them if it can.
    """
    small = Small.of(table, attacker)
    first = search(None)
    if small is None or small.denies(first.withheld) is None:
        return first
    may = (table.value > 0) & ~never
    for one in coins:
        pattern = first if one.preferred is None else search(one.preferred)
        pattern = pattern.widened(table, pattern.withheld | (one.added & may))
        if small.denies(pattern.withheld) is not False:
            return pattern
    everything = first.widened(table, first.withheld | may)
    return everything if small.denies(everything.withheld) is not False else first
