"""The auditor of sums: tells whether one more answer would isolate fewer than k records.

Records with the same membership in all answered query sets form an *atom*. Answered sums are
rows over atoms. The auditor keeps rows that have a pivot in an atom of at least k records (a
combination of those that vanishes on all large atoms is zero), with the inverse of the square
matrix of the pivots; and, apart, the *words*, combinations that live on small atoms only, among which
one on fewer than k records is looked for. A set below k that is a union of small
atoms is therefore found like any other. The decision uses query sets alone, never a value.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.queries.history.accepting import accept, lacks, sweep, sweep_both
from discreet.queries.history.deciding import KNOWN, UNSAFE, Plan, decide
from discreet.queries.history.sketches import BUCKETS
from discreet.queries.history.state import ATOMS, RANK, WORDS, blank, grown

__all__ = ["Auditor", "Decision", "answer_groups", "warm"]

Ids = npt.NDArray[np.int64]


@dataclasses.dataclass(eq=False)
class Decision:
    """What one more answer would mean; `Auditor.accept` makes it so."""

    safe: bool
    #: Whether the answer follows from those already given.
    known: bool
    #: Places of the profiles inside the query set.
    inside: Ids
    _plan: Plan


class Auditor:
    """Decides on sums of one attribute over records in profiles.

    Parameters
    ----------
    counts
        Number of records of each profile (records that no question can tell apart).
    k
        Sets of fewer records are never isolated.

    Examples
    --------
    >>> auditor = Auditor(np.ones(10, np.int64), k=3)
    >>> first = auditor.decide(np.arange(5))
    >>> auditor.accept(first)
    >>> auditor.decide(np.arange(4)).safe  # the difference would be one record
    False
    >>> auditor.decide(np.arange(8)).safe  # the complement would be two
    False
    """

    def __init__(self, counts: npt.NDArray[np.int64], k: int) -> None:
        self._state = blank(counts, k)

    @property
    def atoms(self) -> int:
        """Number of atoms the history distinguishes."""
        return int(self._state.used[ATOMS])

    @property
    def rank(self) -> int:
        """Number of independent answers, the total included."""
        return int(self._state.used[RANK] + self._state.used[WORDS])

    def bytes(self) -> int:
        """Return the memory the history takes."""
        state = self._state
        atoms, rank, words, columns = (int(number) for number in state.used[:4])
        profiles = state.counts.nbytes + state.secret.nbytes + state.atom.nbytes
        inverse = int(state.inverse.filled[0]) * 256 + rank * (rank // 16 + rank // 4 + 4 * BUCKETS)
        return profiles + atoms * (72 + rank // 8) + inverse + 8 * words * columns

    def decide(self, inside: npt.NDArray[np.integer]) -> Decision:
        """Return whether the sum over the profiles `inside` may be answered."""
        return self._decide(inside, given=False)

    def _decide(self, inside: npt.NDArray[np.integer], *, given: bool) -> Decision:
        places = np.ascontiguousarray(inside, np.int64)
        plan = decide(self._state, places, given)
        return Decision(plan.status != UNSAFE, plan.status == KNOWN, places, plan)

    def learn(self, inside: npt.NDArray[np.integer]) -> bool:
        """Take an answer into the history that was given, whether or not it would be given here.

        Returns whether it tells anything new.
        """
        decision = self._decide(inside, given=True)
        if decision.safe:  # it holds any record
            self.accept(decision)
        return not decision.known

    def accept(self, decision: Decision) -> None:
        """Take an answer into the history; the decision must be the last one made."""
        if not decision.safe:
            raise ValueError("a refused decision is not accepted")
        if decision.known:
            return
        needed = np.zeros(4, np.int64)
        if lacks(self._state, decision._plan, needed):
            self.grow(needed)
        accept(self._state, decision._plan, decision.inside)

    def grow(self, needed: Ids) -> None:
        """Make space for so many atoms, answers, words and atoms of words."""
        self._state = grown(self._state, needed)


def answer_groups(
    auditors: Sequence[Auditor], flat: Ids, ends: Ids, order: Ids
) -> npt.NDArray[np.bool_]:
    """Decide on groups in an order and take those into the history that are safe for all auditors.

    `flat` holds the profiles group by group, `ends` where each group ends. Up to two auditors
    are asked in one compiled step.
    """
    shown = np.zeros(ends.size, bool)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1].astype(np.int64)])[: ends.size]
    given = (np.ascontiguousarray(flat, np.int64), starts, ends.astype(np.int64), order, shown)
    if len(auditors) == 1:
        _one(auditors[0], given)
    elif len(auditors) == 2:
        _both(auditors[0], auditors[1], given)
    else:
        for group in order:
            inside = given[0][starts[group] : ends[group]]
            decisions = [auditor.decide(inside) for auditor in auditors]
            shown[group] = all(decision.safe for decision in decisions)
            if shown[group]:
                for auditor, decision in zip(auditors, decisions, strict=True):
                    auditor.accept(decision)
    return shown


_Given = tuple[Ids, Ids, Ids, Ids, npt.NDArray[np.bool_]]


def _one(auditor: Auditor, given: _Given) -> None:
    done, needed = 0, np.zeros(4, np.int64)
    while True:
        done = sweep(auditor._state, *given, done, needed)
        if done == given[3].size:
            return
        auditor.grow(needed)


def _both(one: Auditor, other: Auditor, given: _Given) -> None:
    done, needed = 0, np.zeros((2, 4), np.int64)
    while True:
        done = sweep_both(one._state, other._state, *given, done, needed)
        if done == given[3].size:
            return
        one.grow(needed[0])
        other.grow(needed[1])


@functools.cache
def warm() -> None:
    """Have everything compiled that decisions need, so that no question waits for it."""
    flat, ends = np.arange(40), np.array([20, 40])
    for number in (1, 2):
        auditors = [Auditor(np.ones(40, np.int64), 3) for _ in range(number)]
        answer_groups(auditors, flat, ends, np.arange(2))
    auditors[0].accept(auditors[0].decide(np.arange(10)))
