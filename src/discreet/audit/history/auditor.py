"""The auditor of sums: tells whether one more answer would isolate fewer than k records.

Records with the same membership in all answered query sets form an *atom*. Answered sums are
rows over atoms. The auditor keeps them in echelon form, each row with a pivot in an atom of at
least k records (a combination of those that vanishes on all large atoms is zero); and, apart, the
*codewords*, combinations that are zero but on small atoms, among which one on fewer than k records is
looked for. A set below k that is a union of small
atoms is therefore found like any other. The decision uses query sets alone, never a value.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.audit.history.accepting import accept, lacks, sweep
from discreet.audit.history.deciding import KNOWN, SPACE, UNSAFE, Plan, decide
from discreet.audit.history.state import (
    ATOMS,
    COLUMNS,
    ENTRIES,
    RANK,
    ROWS,
    WORDS,
    blank,
    grown,
)

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

    def copy(self) -> Auditor:
        """Return an auditor with the same history, which goes its own way from here."""
        other = object.__new__(Auditor)
        other._state = copy.deepcopy(self._state)
        return other

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
        state, used = self._state, self._state.used
        profiles = state.counts.nbytes + state.secret.nbytes + state.atom.nbytes
        atoms, rows = 105 * int(used[ATOMS]), 32 * int(used[ROWS])
        return profiles + atoms + rows + 8 * int(used[ENTRIES] + used[WORDS] * used[COLUMNS])

    def decide(self, inside: npt.NDArray[np.integer]) -> Decision:
        """Return whether the sum over the profiles `inside` may be answered."""
        return self._decide(inside, given=False)

    def _decide(self, inside: npt.NDArray[np.integer], *, given: bool) -> Decision:
        places = np.require(inside, np.int64, ["C", "W"])  # one type, compiled once
        while (plan := decide(self._state, places, given)).status == SPACE:
            self.grow(np.zeros(5, np.int64))
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
        needed = np.zeros(5, np.int64)
        if lacks(self._state, decision._plan, needed):
            self.grow(needed)
        accept(self._state, decision._plan, decision.inside)

    def grow(self, needed: Ids) -> None:
        """Make space for so many atoms, rows, words, atoms of words and entries of rows."""
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
    given = (
        np.require(flat, np.int64, ["C", "W"]), starts, ends.astype(np.int64),
        np.require(order, np.int64, ["C", "W"]), shown,
    )  # fmt: skip
    if 1 <= len(auditors) <= 2:
        _swept(auditors[0], auditors[-1], given)
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


def _swept(one: Auditor, other: Auditor, given: _Given) -> None:
    """Decide in one compiled step for one auditor, or for two; make space where it stops."""
    done, needed = 0, np.zeros((2, 5), np.int64)
    while True:
        done = sweep(one._state, other._state, other is not one, *given, done, needed)
        if done == given[3].size:
            return
        one.grow(needed[0])
        if other is not one:
            other.grow(needed[1])


@functools.cache
def warm() -> None:
    """Have everything compiled that decisions need, so that no question waits for it."""
    flat, ends = np.arange(40), np.array([20, 40])
    auditor = Auditor(np.ones(40, np.int64), 3)
    answer_groups([auditor], flat, ends, np.arange(2))
    auditor.accept(auditor.decide(np.arange(10)))
