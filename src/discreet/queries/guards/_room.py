"""How far a record's value can move while every answered sum stays the same.

Let A be the sums answered so far and d a change of the values that none of them shows (A d = 0),
no value moving by more than 1. If every value lies at least a margin m inside the bounds that
everybody knows, then the data moved by m·d, either way, give the same answers and keep the bounds.
So whatever the values are, nobody can narrow record i below 2·m·r_i, where r_i is the largest d_i.
That number depends on query sets alone: neither answers nor values are looked at.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from discreet.errors import EngineError

__all__ = ["Room"]

Ids = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Directions tried for many records at once, before each is looked at alone.
DIRECTIONS = 4
#: Records looked at alone in one decision; with more left the question is refused.
ALONE = 500
TOLERANCE = 1e-6


@dataclasses.dataclass(eq=False)
class Plan:
    """The state after one more answer."""

    atom: Ids
    members: Bools


class Room:
    """Answered sums of one attribute over profiles, and the room they leave to each record.

    Parameters
    ----------
    counts
        Number of records of each profile (records that no question can tell apart).
    share
        The r that every record must keep, 0 to 1.
    most_atoms, chunk
        Up to so many atoms the linear programs are exact. Beyond, only some atoms may move, which
        refuses more, and so many single records are looked at in one program.

    Examples
    --------
    >>> room = Room(np.ones(6, np.int64), share=1.0)
    >>> room.accept(room.after(np.array([0, 1])))
    >>> room.accept(room.after(np.array([0, 2])))
    >>> room.after(np.array([1, 2, 3])) is None  # 0 up, 1 and 2 down: 3 cannot make up for both
    True
    >>> Room(np.ones(6, np.int64), share=0.5).after(np.array([1, 2, 3])) is None
    False
    """

    def __init__(
        self, counts: Ids, share: float, *, most_atoms: int = 3000, chunk: int = 1000
    ) -> None:
        self._counts = counts
        self._most_atoms, self._chunk = most_atoms, chunk
        self._share = share - TOLERANCE
        # The total is taken as known, as in the audit of sets below k.
        self._atom = np.zeros(counts.size, np.int64)
        self._members = np.ones((1, 1), bool)

    def after(self, inside: Ids) -> Plan | None:
        """Return the state after the sum over some profiles, or None if a record has too little."""
        plan = self._with(inside)
        weighed = np.bincount(plan.atom, weights=self._counts, minlength=len(plan.members))
        sizes = weighed.astype(np.float64)
        # Two records that no question tells apart can move against each other as far as they like.
        singles = np.flatnonzero(sizes == 1)
        return plan if self._all_move(plan.members, sizes, singles) else None

    def learn(self, inside: Ids) -> None:
        """Take an answer into the history that was given already, whatever room it leaves."""
        self.accept(self._with(inside))

    def _with(self, inside: Ids) -> Plan:
        held = np.zeros(self._counts.size, np.int64)
        held[inside] = 1
        parts, atom = np.unique(2 * self._atom + held, return_inverse=True)
        members = np.hstack([self._members[parts >> 1], (parts & 1).astype(bool)[:, None]])
        return Plan(atom.ravel().astype(np.int64), members)

    def accept(self, plan: Plan | None) -> None:
        """Take an answer into the history."""
        if plan is None:
            raise ValueError("a refused plan is not accepted")
        self._atom, self._members = plan.atom, plan.members

    def _all_move(self, members: Bools, sizes: npt.NDArray[np.float64], singles: Ids) -> bool:
        atoms = np.flatnonzero(sizes > 0)
        if atoms.size <= self._most_atoms:
            return self._move(members, sizes, singles, atoms)
        # What does not move is held at zero, so that a movement found is one of all records.
        others = atoms[sizes[atoms] > 1]
        most = 4 * members.shape[1] + 64
        largest = others[np.argsort(-sizes[others], kind="stable")[:most]]
        return all(
            self._move(members, sizes, chunk, np.concatenate([chunk, largest]))
            for chunk in np.array_split(singles, max(1, -(-singles.size // self._chunk)))
        )

    def _move(
        self, members: Bools, sizes: npt.NDArray[np.float64], singles: Ids, atoms: Ids
    ) -> bool:
        """Whether each single record can move by its share when some atoms may move."""
        if not singles.size:
            return True
        from scipy import sparse

        from discreet.audit.solver import LinearProgram

        places = np.flatnonzero(np.isin(atoms, singles))
        rows = members[atoms].T
        zeros = np.zeros(rows.shape[0])
        program = LinearProgram(
            sparse.csc_matrix(rows, dtype=np.float64),
            rows=(zeros, zeros),
            columns=(-sizes[atoms], sizes[atoms]),
            cost=np.zeros(atoms.size),
        )
        # Any direction will do, but it must be the same each time.
        signs = np.random.default_rng(0)
        left = places
        for _ in range(DIRECTIONS):
            # A corner of the program has all but a few records at an end: most are done at once.
            cost = np.zeros(atoms.size)
            cost[left] = signs.choice([-1.0, 1.0], left.size)
            moved = self._moved(program, cost)
            left = left[np.abs(moved[left]) < self._share]
            if not left.size:
                return True
        if left.size > ALONE:
            return False
        for place in left:
            cost = np.zeros(atoms.size)
            cost[place] = -1.0
            if abs(self._moved(program, cost)[place]) < self._share:
                return False
        return True

    @staticmethod
    def _moved(program: object, cost: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        from discreet.audit.solver import LinearProgram

        assert isinstance(program, LinearProgram)
        program.set_cost(np.arange(cost.size), cost)
        try:
            found = program.solve()
        except EngineError:
            return np.zeros(cost.size)  # a solver that finds no optimum has shown nothing
        return found.x if found.status == "optimal" else np.zeros(cost.size)
