"""What an audit of one table asks, and what was found so far."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.certificates.collection import Certificates
from discreet.audit.contributors.insiders import TOLERANCE
from discreet.audit.contributors.prior import Prior
from discreet.audit.knowledge import Contributors

__all__ = ["TOLERANCE", "TUNING", "Decision", "Problem", "Tuning"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tuning:
    """Sizes from which an audit takes another way to the same result."""

    #: From this many open protection levels on, products of feasible directions are tried first.
    corners_from: int = 1000
    #: Sizes of the parts in which a large component is tried before the whole.
    parts: tuple[int, ...] = (400, 2500)
    #: Certificates from which on the comparison with contributors' knowledge is compiled.
    compiled_from: int = 3000
    #: Cells from which on many are pushed at a time, and how many must be decided to go on so.
    pushed_from: int = 50
    pushed_worth: int = 10


TUNING = Tuning()


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """Everything an audit asks: equations, room to move, needs, and who attacks."""

    equations: sparse.csc_matrix
    down: Floats
    up: Floats
    lower_need: Floats
    upper_need: Floats
    wanted: Bools
    knowledge: Contributors | None
    prior: Prior | None
    exact: bool
    tuning: Tuning = TUNING
    #: Whether only tables of whole numbers count.
    whole: bool = False

    def unit(self, cells: Ints) -> float:
        """Return the middle of the needs: what amounts are measured in."""
        if self.whole:
            return 1.0
        needs = np.concatenate([self.lower_need[cells], self.upper_need[cells]])
        needs = needs[needs > 0]
        if needs.size:
            return float(np.median(needs))
        room = self.down[cells]
        room = room[np.isfinite(room) & (room > 0)]
        return float(np.median(room)) if room.size else 1.0


@dataclasses.dataclass(frozen=True, eq=False)
class Decision:
    """How far each wanted cell was shown to fall and rise, and which needs are met."""

    problem: Problem
    fall: Floats
    rise: Floats
    met_down: Bools
    met_up: Bools
    #: Attackers not yet answered per (cell, direction); absent: all of them.
    left: dict[tuple[int, int], frozenset[int]]

    @classmethod
    def blank(cls, problem: Problem) -> Decision:
        """Return a decision in which nothing is known; a need of nothing is met from the start."""
        size = len(problem.down)
        return cls(
            problem,
            np.zeros(size),
            np.zeros(size),
            problem.lower_need <= 0,
            problem.upper_need <= 0,
            {},
        )

    def done(self, cells: Ints) -> bool:
        """Whether every wanted cell among these is decided."""
        if self.problem.exact:
            return False
        wanted = cells[self.problem.wanted[cells]]
        return bool((self.met_down[wanted] & self.met_up[wanted]).all())

    def check(self, certificates: Iterable[tuple[Ints, Floats]], hidden: Ints) -> None:
        """Harvest given deviations after comparing them with equations, bounds and what is shown."""
        problem = self.problem
        withheld = np.zeros(len(problem.down), dtype=bool)
        withheld[hidden] = True
        given = Certificates.of(certificates)
        if not len(given):
            return
        forward = given.valid(
            problem.equations, problem.down, problem.up, withheld, whole=problem.whole
        )
        if problem.knowledge is not None and len(forward) < problem.tuning.compiled_from:
            for cells, moves in forward:
                self.harvest(cells, moves)
            return
        both = Certificates.joined([forward, forward.mirrored(problem.down, problem.up)])
        np.maximum.at(self.rise, both.cells, both.moves)
        np.maximum.at(self.fall, both.cells, -both.moves)
        enough = 1 - TOLERANCE
        for direction, need, met in (
            (1, problem.upper_need, self.met_up),
            (-1, problem.lower_need, self.met_down),
        ):
            open_ = problem.wanted & ~met
            met[both.believed(open_, direction, need * enough, problem.knowledge)] = True

    def harvest(self, cells: Ints, moves: Floats) -> None:
        """Widen every interval that a deviation reaches, and its mirror image where that fits."""
        self._take(cells, moves)
        if ((moves <= self.problem.down[cells]) & (-moves <= self.problem.up[cells])).all():
            self._take(cells, -moves)

    def _take(self, cells: Ints, moves: Floats) -> None:
        problem = self.problem
        self.rise[cells] = np.maximum(self.rise[cells], moves)
        self.fall[cells] = np.maximum(self.fall[cells], -moves)
        enough = 1 - TOLERANCE
        up = problem.wanted[cells] & ~self.met_up[cells]
        up &= moves >= problem.upper_need[cells] * enough
        down = problem.wanted[cells] & ~self.met_down[cells]
        down &= -moves >= problem.lower_need[cells] * enough
        if problem.knowledge is None:
            self.met_up[cells[up]] = True
            self.met_down[cells[down]] = True
            return
        for direction, which, met in ((1, up, self.met_up), (-1, down, self.met_down)):
            for cell in cells[which].tolist():
                refuted = problem.knowledge.refuting(cell, cells, moves)
                before = self.left.get((cell, direction))
                after = refuted if before is None else before & refuted
                self.left[(cell, direction)] = after
                met[cell] = not after
