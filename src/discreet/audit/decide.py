"""Deciding one connected set of withheld cells: is every demand met, and how far can each go."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.certificates import Certificates
from discreet.audit.deviations import DeviationModel
from discreet.audit.exact import TOLERANCE, exact
from discreet.audit.knowledge import Contributors
from discreet.audit.prior import Prior

__all__ = ["TOLERANCE", "Decision", "Problem", "decide", "meet"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Sizes of the parts of a large component that are looked at before the whole.
_NEAR = (400, 2500)
#: Certificates from which on it pays to compile the comparison with contributors' knowledge.
_MANY = 3000
#: In how many parts a cell is tried.
_TRIES = 3


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

    def unit(self, cells: Ints) -> float:
        """Return the middle of the needs: what amounts are measured in."""
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
        forward = given.valid(problem.equations, problem.down, problem.up, withheld)
        if problem.knowledge is not None and len(forward) < _MANY:
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


def decide(problem: Problem, cells: Ints, decision: Decision) -> Decision:
    """Decide the wanted cells of one component, writing into `decision`."""
    wanted = cells[problem.wanted[cells]]
    if problem.exact:
        exact(problem, cells, wanted, decision)
        return decision
    meet(problem, cells, decision)
    _shortfalls(problem, cells, wanted, decision)
    return decision


def meet(problem: Problem, cells: Ints, decision: Decision) -> None:
    """Find out which needs of a component are met, but not how far those go that are not."""
    wanted = cells[problem.wanted[cells]]
    # Larger needs first: their deviations carry many smaller ones along.
    needs = np.maximum(problem.lower_need[wanted], problem.upper_need[wanted])
    order = wanted[np.argsort(-needs, kind="stable")]
    for size in _NEAR:
        if len(cells) > 4 * size:
            _nearby(problem, cells, order, decision, size)
    order = order[~(decision.met_down[order] & decision.met_up[order])]
    if len(order):
        model = _model(problem, cells)
        for cell in order.tolist():
            _both(problem, model, decision, cell, whole=True)


def _model(problem: Problem, cells: Ints) -> DeviationModel:
    return DeviationModel(
        problem.equations,
        cells,
        problem.down,
        problem.up,
        unit=problem.unit(cells),
        cost=_prices(problem, cells),
    )


def _nearby(problem: Problem, cells: Ints, order: Ints, decision: Decision, size: int) -> None:
    """Meet needs within small parts of a large component; what is met there is met.

    Each part is made around a cell that is still open, and asked for all of its open cells.
    """
    block = problem.equations[:, cells].tocsr()
    columns = block.tocsc()
    place = np.full(len(problem.down), -1, dtype=np.int64)
    place[cells] = np.arange(len(cells))
    tried = np.zeros(len(cells), dtype=np.int8)
    for cell in order.tolist():
        if (decision.met_down[cell] and decision.met_up[cell]) or tried[place[cell]] >= _TRIES:
            continue
        part = cells[_around(block, columns, int(place[cell]), size)]
        model = _model(problem, part)
        inside = part[problem.wanted[part] & (tried[place[part]] < _TRIES)]
        for near in [cell, *(c for c in inside.tolist() if c != cell)]:
            tried[place[near]] += 1
            _both(problem, model, decision, near, whole=False)
        tried[place[cell]] = _TRIES


def _around(
    block: sparse.csr_matrix, columns: sparse.csc_matrix, start: int, size: int
) -> list[int]:
    """Return about so many cells around one, equation by equation, shorter ones first."""
    found, queue, rows = {start}, [start], set()
    for cell in queue:
        touched = columns.indices[columns.indptr[cell] : columns.indptr[cell + 1]]
        lengths = block.indptr[touched + 1] - block.indptr[touched]
        for row in touched[np.argsort(lengths, kind="stable")].tolist():
            if row in rows:
                continue
            rows.add(row)
            for other in block.indices[block.indptr[row] : block.indptr[row + 1]].tolist():
                if other not in found:
                    found.add(other)
                    queue.append(other)
            if len(found) >= size:
                return sorted(found)
    return sorted(found)


def _both(
    problem: Problem, model: DeviationModel, decision: Decision, cell: int, *, whole: bool
) -> None:
    for direction, need, met in (
        (1, problem.upper_need[cell], decision.met_up),
        (-1, problem.lower_need[cell], decision.met_down),
    ):
        if not met[cell]:
            _meet(problem, model, decision, cell, direction, float(need), whole=whole)


def _prices(problem: Problem, cells: Ints) -> Floats:
    """Deviations that nobody can refute are sought first; for outsiders anything will do."""
    if problem.knowledge is None:
        return np.zeros(len(cells))
    known = np.isin(cells, problem.knowledge.cell[problem.knowledge.sole])
    return np.where(known, 1.0, 0.01)


def _meet(
    problem: Problem,
    model: DeviationModel,
    decision: Decision,
    cell: int,
    direction: int,
    need: float,
    *,
    whole: bool,
) -> None:
    """Look for a deviation that every attacker must believe, one attacker after the other."""
    met = decision.met_up if direction > 0 else decision.met_down
    amount = direction * need
    if (cell, direction) not in decision.left:
        found = model.cheapest(cell, amount)
        if found is None:
            return
        decision.harvest(*found)
    while not met[cell]:
        assert problem.knowledge is not None
        assert problem.prior is not None
        left = decision.left[(cell, direction)]
        who = min(left)
        ceiling = problem.prior.ceiling(who, cell, direction)
        fixed, floors = problem.knowledge.view(who, cell)
        if ceiling >= need:
            found = model.cheapest(cell, amount, fixed=fixed, floors=floors)
            if found is not None:
                decision.harvest(*found)
                if who in decision.left[(cell, direction)]:
                    return  # it does not believe what was found for it
                continue
        # Less is asked where it could exclude as much before publication.
        for reach in (ceiling, None):
            if reach is None:
                reach = problem.prior.reach(who, cell, direction) if whole else np.inf
            if reach >= need * (1 - TOLERANCE):
                continue
            less = direction * reach * (1 - TOLERANCE)
            if reach <= TOLERANCE * need or (
                model.cheapest(cell, less, fixed=fixed, floors=floors) is not None
            ):
                break
        else:
            return
        decision.left[(cell, direction)] = left - {who}
        met[cell] = len(left) == 1


def _shortfalls(problem: Problem, cells: Ints, wanted: Ints, decision: Decision) -> None:
    """Say of unsafe cells exactly how far they can go."""
    unsafe = wanted[~(decision.met_down[wanted] & decision.met_up[wanted])]
    if unsafe.size:
        exact(problem, cells, unsafe, decision)
