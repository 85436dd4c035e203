"""Deciding one connected set of withheld cells: is every demand met, and how far can each go."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.exact import exact
from discreet.audit.outsider.deviations import DeviationModel
from discreet.audit.problem import TOLERANCE, Decision, Problem

__all__ = ["decide", "meet"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Parts of a component in which one cell is tried at most.
_TRIES = 3


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
    # Larger protection levels first: their alternative tables often meet smaller ones, too.
    needs = np.maximum(problem.lower_need[wanted], problem.upper_need[wanted])
    order = wanted[np.argsort(-needs, kind="stable")]
    for size in problem.tuning.parts:
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
        whole=problem.whole,
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
        if problem.knowledge is None or problem.prior is None:
            return  # by rounding it falls short of what an outsider must believe
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
        # A contributor is answered only by what it could not exclude before publication.
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
