"""Which of the safe patterns of a table of counts is published: drawn by the key, not by the values.

The cheapest pattern depends on the values, and so tells of them. For a table of counts the key
therefore proposes patterns: mostly the cheapest, sometimes the cheapest among cells that a coin
allows, and sometimes with a cell more than is necessary. Coins depend on the key and the codes alone.
A proposal that excludes a promised count (`deniability`) is widened until it does not. Every pattern
that excludes none comes from some coins: those that allow and add its very cells. So each table that
it leaves possible could have been the one behind it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.data.table import Status, Table
from discreet.errors import InfeasibleError
from discreet.tables.suppression.deniability import CELLS, Frequencies
from discreet.tables.suppression.pattern import Pattern
from discreet.tables.suppression.ties import drawn
from discreet.tables.suppression.witnesses import Conditions

__all__ = ["Coins", "Search", "choose", "tosses"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

#: Proposals after which all cells that may be are withheld.
_PROPOSALS = 8
#: One proposal in so many allows cells by a coin.
_ROUGH = 8
#: Cells that such a coin does not allow, on average.
_BARRED = 30
#: Rounds in which the cells that exclude counts are protected like sensitive ones.
_ROUNDS = 6


class Search(Protocol):
    """Finds the cheapest pattern of a table."""

    def __call__(
        self, table: Table, /, *, never: Bools, withheld: Bools | None = None, quick: bool = False
    ) -> Pattern:
        """Return the cheapest pattern that publishes some cells and withholds others in any case."""


@dataclasses.dataclass(frozen=True, eq=False)
class Coins:
    """What the key decides of one proposal: cells that are allowed, if not all, and cells added."""

    allowed: Bools | None
    added: Bools


def tosses(table: Table, key: bytes) -> Iterator[Coins]:
    """Yield the coins of one proposal after the other, which depend on no value."""
    for number in range(_PROPOSALS):
        rough, half, more = (
            drawn(table, key, f"{purpose} {number}".encode())
            for purpose in ("rough", "half", "more")
        )
        # On average at most half a cell is added and thirty are barred, however many there are.
        cells = max(int((table.value > 0).sum()), 1)
        allowed = half < max(0.5, 1 - _BARRED / cells)
        yield Coins(allowed if rough[0] < 1 / _ROUGH else None, more < 0.5 / cells)


def choose(
    table: Table,
    attacker: str,
    never: Bools,
    search: Search,
    coins: Iterator[Coins],
    key: bytes,
) -> Pattern:
    """Return the first proposal that tells no count, of any other table the cheapest pattern."""
    counts = Frequencies.of(table, attacker)
    if counts is None or int(np.asarray(table.status == Status.PRIMARY).sum()) > CELLS:
        return search(table, never=never)
    widening = _Widening(counts, never, search, drawn(table, key, b"wider"))
    first: Pattern | None = None
    for one in coins:
        if one.allowed is None:
            pattern = first = first or search(table, never=never)
        else:
            sensitive = np.asarray(table.status == Status.PRIMARY)
            try:
                pattern = search(table, never=never | ~(one.allowed | sensitive))
            except InfeasibleError:
                continue  # the coin allows too few cells
        withheld = widening.widened(pattern.withheld | (one.added & widening.may))
        if withheld is not None:
            deniable = True if counts.judges(withheld) else None
            return dataclasses.replace(pattern.widened(table, withheld), deniable=deniable)
    return dataclasses.replace(first or search(table, never=never), deniable=False)


class _Widening:
    """Adds cells to a pattern until it tells no count."""

    def __init__(self, counts: Frequencies, never: Bools, search: Search, draws: Floats) -> None:
        self._counts, self._never, self._search = counts, never, search
        self._table, self._draws = counts.table, draws
        self.may: Bools = (self._table.value > 0) & ~never

    def widened(self, start: Bools) -> Bools | None:
        """Return a pattern that holds these cells and tells no count; none where none is found."""
        found = self._judged(start)
        if found is None:
            return start
        withheld = start
        for _ in range(_ROUNDS):
            more = self._protected(withheld)
            if (more == withheld).all():
                break
            withheld, found = more, self._judged(more)
            if found is None:
                return self._fewer(start, withheld)
        size = 2
        while (self.may & ~withheld).any():
            withheld = self._grown(withheld, found, size)
            found = self._judged(withheld)
            if found is None:
                return self._fewer(start, withheld)
            size *= 2
        return None

    def _judged(self, withheld: Bools) -> Conditions | None:
        """Return the conditions that exclude the true table; none where they do not."""
        found = self._counts.conditions(withheld)
        return None if found is None or found.met_by(self._table.value) else found

    def _protected(self, withheld: Bools) -> Bools:
        """Return a pattern that protects all withheld cells as if their counts were small."""
        table = self._table
        assert table.status is not None
        assert table.lower is not None
        assert table.upper is not None
        least = np.array([len(one) for one in self._counts.people], dtype=np.float64)
        asked = withheld & ~self._never
        levels = {
            "status": np.where(asked, np.int8(Status.PRIMARY), table.status),
            "lower": np.where(asked, np.maximum(table.value - least, 0), table.lower),
            "upper": np.where(
                asked, np.maximum(self._counts.minimum - table.value, 0), table.upper
            ),
        }
        try:
            found = self._search(
                table.replace(**levels), never=self._never, withheld=withheld, quick=True
            )
        except InfeasibleError:
            return withheld
        return withheld | found.withheld

    def _grown(self, withheld: Bools, found: Conditions, size: int) -> Bools:
        """Return the pattern with more cells, drawn among the neighbours of those at fault first."""
        causes = np.zeros(len(withheld))
        causes[found.hidden[found.causes]] = 1.0
        equations = abs(self._table.equations)
        near = equations.T @ ((equations @ causes) > 0) > 0
        order = np.lexsort((self._draws, ~near))
        order = order[(self.may & ~withheld)[order]]
        more = withheld.copy()
        more[order[:size]] = True
        return more

    def _fewer(self, start: Bools, withheld: Bools) -> Bools:
        """Publish again what is not necessary of what was added, many at a time where that passes."""
        added = np.flatnonzero(withheld & ~start)
        queue = [added[np.argsort(self._draws[added])]]
        while queue:
            cells = queue.pop()
            less = withheld.copy()
            less[cells] = False
            if self._judged(less) is None:
                withheld = less
            elif len(cells) > 1:
                queue += [cells[len(cells) // 2 :], cells[: len(cells) // 2]]
        return withheld
