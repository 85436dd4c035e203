"""The programs behind controlled tabular adjustment: which way each cell goes, and how far."""

from __future__ import annotations

import dataclasses
import functools
import time

import numpy as np
from scipy import sparse

from discreet.audit.solver import Solution, solve_integer
from discreet.data.table import Bools, Floats, Ints, Table
from discreet.errors import InfeasibleError
from discreet.progress import Progress, silent
from discreet.tables.methods._projection import project

__all__ = ["Adjusted", "Adjustment"]

#: Sensitive cells whose direction is chosen anew in one step of improvement.
_GROUP = 40
#: Good tables are looked for among those where no cell moves further than so many times the
#: greatest level: with bounds that tight the program finds them far sooner.
_TIGHT = 10.0
#: Equations with up to this many sensitive cells bound the moves of their other cells.
_COMBINED = 16


@dataclasses.dataclass(frozen=True, eq=False)
class Adjusted:
    """The change of each cell, what it costs, and what is known of the optimum."""

    change: Floats
    objective: float
    bound: float
    optimal: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Adjustment:
    """One adjustment problem; the change of each cell is a rise less a fall."""

    table: Table
    equations: sparse.csc_matrix
    sensitive: Ints
    lower: Floats
    upper: Floats
    weight: Floats
    room: tuple[Floats, Floats]
    integer: bool
    time_limit: float
    #: Up to this many sensitive cells one integer program is tried first.
    exact_up_to: int = 400

    def solve(self, *, squared: bool = False, progress: Progress = silent) -> Adjusted:
        """Return the best table found in time."""
        start = time.monotonic()
        if not self.sensitive.size:
            return Adjusted(np.zeros(len(self.table)), 0.0, 0.0, True)
        self._require_room()
        found = self._start(start, progress)
        if not found.optimal:
            found = self._improve(found, start, progress)
        return self._squared(found) if squared else found

    def _program(
        self,
        up: Ints,
        down: Ints,
        open_: Ints,
        limit: float,
        gap: float,
        best: Adjusted | None = None,
        *,
        tight: bool = False,
    ) -> Solution:
        """Minimise the weighted change with some directions fixed and those of `open_` free.

        Columns: rise and fall of every cell, then one direction per open cell (1: up). With a table
        to beat, only closer ones are looked for; with `tight`, only those without far moves.
        """
        size, number = len(self.table), len(open_)
        reach = self._reach(best) if number else np.full(size, np.inf)
        if tight:
            greatest = np.maximum(self.lower, self.upper)[self.sensitive].max()
            reach = np.minimum(reach, _TIGHT * max(float(greatest), 1e-9))
        fall, rise = (np.minimum(side, reach) for side in self.room)
        lower = np.zeros(2 * size + number)
        upper = np.concatenate([rise, fall, np.ones(number)])
        lower[up], upper[size + up] = self.upper[up], 0.0
        lower[size + down], upper[down] = self.lower[down], 0.0
        if (lower > upper + 1e-9).any():
            return Solution("infeasible")
        # rise ≥ upper·z and fall ≥ lower·(1−z); the other direction is shut by a bound that the
        # change of an open cell needs at most: its room, or what a closest table can move.
        most = [side[open_] for side in (rise, fall)]
        combined, least = self._combined if number else (sparse.csr_matrix((0, size)), np.zeros(0))
        links = sparse.vstack(
            [
                self._link(open_, 0, -self.upper[open_]),
                self._link(open_, size, self.lower[open_]),
                self._link(open_, 0, -most[0]),
                self._link(open_, size, most[1]),
                sparse.hstack([combined, combined, sparse.csr_matrix((len(least), number))]),
            ]
        )
        balance = sparse.hstack(
            [
                self.equations,
                -self.equations,
                sparse.csc_matrix((self.equations.shape[0], number)),
            ]
        )
        zero = np.zeros(self.equations.shape[0])
        none = np.full(number, np.inf)
        whole = np.zeros(2 * size + number, dtype=bool)
        whole[2 * size :] = True
        # Which ways cells go is chosen on real changes; whole ones are found with the ways fixed.
        if self.integer and not number:
            whole[:] = True
        return solve_integer(
            sparse.csc_matrix(sparse.vstack([balance, links])),
            rows=(
                np.concatenate([zero, np.zeros(number), self.lower[open_], -none, -none, least]),
                np.concatenate(
                    [zero, none, none, np.zeros(number), most[1], np.full(len(least), np.inf)]
                ),
            ),
            columns=(lower, upper),
            cost=np.concatenate([self.weight, self.weight, np.zeros(number)]),
            integer=whole,
            time_limit=max(limit, 0.05),
            gap=gap,
            start=None if best is None else self._as_start(best, open_),
        )

    def _as_start(self, best: Adjusted, open_: Ints) -> Floats:
        change = best.change
        ways = (change[open_] > 0).astype(np.float64)
        return np.concatenate([np.maximum(change, 0), np.maximum(-change, 0), ways])

    def _link(self, cells: Ints, offset: int, factor: Floats) -> sparse.coo_matrix:
        """Return rows with the change of each cell plus a multiple of its direction."""
        number, size = len(cells), len(self.table)
        place = np.concatenate([offset + cells, 2 * size + np.arange(number)])
        entries = np.concatenate([np.ones(number), factor])
        return sparse.coo_matrix(
            (entries, (np.tile(np.arange(number), 2), place)), shape=(number, 2 * size + number)
        )

    def _reach(self, best: Adjusted | None) -> Floats:
        """Return how far cells move at most in a table closer than the best."""
        if best is None:
            # In a closest table no cell moves further than all sensitive cells are asked to.
            total = float(np.maximum(self.lower, self.upper)[self.sensitive].sum())
            return np.full(len(self.table), max(total, 1.0) * 2)
        # The others move by one of their levels each; what is left of the objective is for the cell.
        least = np.zeros(len(self.table))
        levels = np.minimum(self.lower, self.upper)
        least[self.sensitive] = (self.weight * levels)[self.sensitive]
        spare = max(best.objective - float(least.sum()), 0.0)
        return np.asarray((spare + least) / self.weight * (1 + 1e-9) + 1e-9)

    @functools.cached_property
    def _combined(self) -> tuple[sparse.csr_matrix, Floats]:
        """Return sums of cells that together move by at least so much.

        Whichever ways the sensitive cells of an equation go, what they do not cancel among
        themselves the other cells must take up. The program's relaxation, in which a cell may go
        half up and half down, does not see that.
        """
        sensitive = np.zeros(len(self.table), dtype=bool)
        sensitive[self.sensitive] = True
        rows = self.equations.tocsr()
        kept, least = [], []
        number = abs(rows) @ sensitive.astype(np.float64)
        for row in np.flatnonzero((number > 0) & (number <= _COMBINED)).tolist():
            part = slice(rows.indptr[row], rows.indptr[row + 1])
            cells, sign = rows.indices[part], rows.data[part]
            inside = sensitive[cells]
            lower, upper = self.lower[cells[inside]], self.upper[cells[inside]]
            needed = _least_movement(lower, upper, sign[inside])
            if needed > np.minimum(lower, upper).sum() * (1 + 1e-9):
                kept.append(row)
                least.append(needed * (1 - 1e-9))
        return abs(rows[kept]), np.array(least)

    def _adjusted(self, found: Solution, *, bound: float) -> Adjusted:
        size = len(self.table)
        change = found.x[:size] - found.x[size : 2 * size]
        # An integer program keeps its rows to a tolerance only; with the directions fixed the levels
        # are bounds of columns, which hold.
        up = change[self.sensitive] > 0
        none = np.zeros(0, dtype=np.int64)
        again = self._program(self.sensitive[up], self.sensitive[~up], none, 60.0, 1e-6)
        if again.x.size:
            change = again.x[:size] - again.x[size : 2 * size]
        if self.integer:
            change = np.round(change)
        # Each sensitive cell moves by one of its levels at least.
        levels = np.minimum(self.lower, self.upper)[self.sensitive]
        least = float(self.weight[self.sensitive] @ levels)
        return self._judged(change, max(bound, least))

    def _judged(self, change: Floats, bound: float) -> Adjusted:
        """Return a table with what is known of the optimum."""
        objective = float(self.weight @ np.abs(change))
        if self.integer and (self.weight == 1).all():
            bound = float(np.ceil(bound - 1e-6))
        # The solver keeps bounds and tables to six digits or so.
        optimal = objective <= bound * (1 + 1e-5) + 1e-9
        return Adjusted(change, objective, min(bound, objective), optimal)

    def _start(self, start: float, progress: Progress) -> Adjusted:
        """Return the optimum where it is found in most of the time, else a good table."""
        none = np.zeros(0, dtype=np.int64)
        progress("adjusting", 0, 2)
        best = self._first()
        if len(self.sensitive) <= self.exact_up_to:
            half, third = self.time_limit / 2, self.time_limit / 3
            found = self._program(none, none, self.sensitive, half, 0.0, best, tight=True)
            if found.x.size:
                better = self._adjusted(found, bound=0.0)
                if best is None or better.objective < best.objective:
                    best = better
            found = self._program(none, none, self.sensitive, third, 0.0, best)
            if found.status == "infeasible" and best is None:
                raise self._infeasible()
            bound = found.bound if np.isfinite(found.bound) else 0.0
            if found.status == "infeasible" and best is not None:
                bound = best.objective  # nothing is closer
            if found.x.size:
                better = self._adjusted(found, bound=bound)
                if best is None or better.objective < best.objective:
                    return better
            if best is not None:
                return self._judged(best.change, max(bound, best.bound))
        if best is not None:
            return best
        left = self.time_limit - (time.monotonic() - start)
        found = self._program(none, none, self.sensitive, max(left, self.time_limit / 2), 0.5)
        if found.x.size:
            return self._adjusted(found, bound=found.bound)
        raise self._infeasible()

    def _first(self) -> Adjusted | None:
        """Return a table that goes ways chosen by size, or all up; None if neither is possible."""
        none = np.zeros(0, dtype=np.int64)
        up = self._directions()
        for _ in range(2):
            found = self._program(self.sensitive[up], self.sensitive[~up], none, 60.0, 0.01)
            if found.x.size:
                return self._adjusted(found, bound=0.0)
            up = np.ones(len(up), dtype=bool)  # everything up is feasible wherever totals are free
        return None

    def _directions(self) -> Bools:
        """Return a first choice of directions: alternating in size within the sums they share."""
        cells = self.sensitive
        column = self.equations.tocsc()
        balance = np.zeros(self.equations.shape[0])
        up = np.ones(len(cells), dtype=bool)
        can_fall = self.room[0][cells] >= self.lower[cells]
        can_rise = self.room[1][cells] >= self.upper[cells]
        order = np.argsort(-np.maximum(self.lower, self.upper)[cells], kind="stable")
        for sweep in range(4):
            moved = 0
            for at in order:
                cell = cells[at]
                rows = column.indices[column.indptr[cell] : column.indptr[cell + 1]]
                sign = column.data[column.indptr[cell] : column.indptr[cell + 1]]
                if sweep:
                    balance[rows] -= sign * (self.upper[cell] if up[at] else -self.lower[cell])
                rise = np.abs(balance[rows] + sign * self.upper[cell]).sum()
                fall = np.abs(balance[rows] - sign * self.lower[cell]).sum()
                goes_up = bool(can_rise[at] and (rise <= fall or not can_fall[at]))
                moved += goes_up != up[at]
                up[at] = goes_up
                balance[rows] += sign * (self.upper[cell] if goes_up else -self.lower[cell])
            if sweep and not moved:
                break
        return up

    def _improve(self, best: Adjusted, start: float, progress: Progress) -> Adjusted:
        """Set one group of directions free at a time, as long as that pays and time is left."""
        groups = self._groups()
        stale = turn = 0
        while stale < len(groups):
            left = self.time_limit - (time.monotonic() - start)
            if left <= 0:
                break
            progress("improving the adjustment", stale, len(groups))
            group = groups[turn % len(groups)]
            turn += 1
            rest = np.setdiff1d(self.sensitive, group)
            up = rest[best.change[rest] > 0]
            down = rest[best.change[rest] <= 0]
            part = min(left, self.time_limit / 6)
            found = self._program(up, down, group, part, 1e-4, best, tight=True)
            better = best
            if found.x.size and found.objective < best.objective * (1 - 1e-7) - 1e-9:
                better = self._adjusted(found, bound=best.bound)
            if better.objective < best.objective * (1 - 1e-7):
                best, stale = better, 0
            else:
                stale += 1
        return best

    def _groups(self) -> list[Ints]:
        """Return groups of sensitive cells that share sums, each cell in two of them."""
        cells = self.sensitive
        if len(cells) <= _GROUP:
            return [cells]
        codes = self.table.codes[cells]
        groups: list[Ints] = []
        for column in range(codes.shape[1]):
            others = [codes[:, other] for other in range(codes.shape[1]) if other != column]
            order = cells[np.lexsort((*others, codes[:, column]))]
            groups += np.array_split(order, int(np.ceil(len(order) / _GROUP)))
        return groups

    def _squared(self, found: Adjusted) -> Adjusted:
        """Return the closest table in squares that goes the same ways."""
        fall, rise = (side.copy() for side in self.room)
        lower, upper = -fall, rise
        cells = self.sensitive
        up = found.change[cells] > 0
        lower[cells[up]] = self.upper[cells[up]]
        upper[cells[~up]] = -self.lower[cells[~up]]
        change = project(self.equations, self.weight, lower, upper, start=found.change)
        if self.integer:
            change = self._rounded(change, lower, upper)
        objective = float(self.weight @ change**2)
        before = float(self.weight @ found.change**2)
        if before < objective:
            return dataclasses.replace(found, objective=before, bound=0.0, optimal=False)
        return Adjusted(change, objective, 0.0, optimal=False)

    def _rounded(self, change: Floats, lower: Floats, upper: Floats) -> Floats:
        """Return the change in whole numbers, each next to the real one where that adds up."""
        for extra in (0.0, 1.0, 3.0):
            low = np.maximum(np.floor(change + 1e-7) - extra, np.ceil(lower - 1e-9))
            high = np.minimum(np.ceil(change - 1e-7) + extra, np.floor(upper + 1e-9))
            high = np.maximum(high, low)
            # The slope of the square at the middle of the step to the next whole number.
            cost = self.weight * (low + high - 2 * change)
            found = solve_integer(
                self.equations,
                rows=(np.zeros(self.equations.shape[0]), np.zeros(self.equations.shape[0])),
                columns=(low, high),
                cost=cost,
                integer=np.ones(len(change), dtype=bool),
                time_limit=self.time_limit / 3,
                gap=0.01,
            )
            if found.x.size:
                return np.asarray(np.round(found.x))
        raise self._infeasible()

    def _require_room(self) -> None:
        cells = self.sensitive
        fall, rise = self.room
        stuck = cells[(fall[cells] < self.lower[cells]) & (rise[cells] < self.upper[cells])]
        if stuck.size:
            raise self._infeasible(stuck)

    def _infeasible(self, cells: Ints | None = None) -> InfeasibleError:
        named = self.sensitive if cells is None else cells
        names = [" × ".join(self.table.labels(int(cell))) for cell in named[:5]]
        found = "cannot move by their protection levels" if cells is not None else "cannot all move"
        return InfeasibleError(
            f"{len(named)} sensitive cells {found} while the totals add up: " + "; ".join(names),
            code="adjustment-infeasible",
            hint='let totals move with totals="free", or publish fewer details',
            cells=names,
        )


def _least_movement(lower: Floats, upper: Floats, sign: Floats) -> float:
    """Return how far the cells of an equation move together at least, over all ways they may go.

    >>> _least_movement(np.array([3.0, 3.0]), np.array([3.0, 3.0]), np.array([1.0, 1.0]))
    6.0
    >>> _least_movement(np.array([3.0, 1.0]), np.array([3.0, 1.0]), np.array([1.0, 1.0]))
    6.0
    """
    moved, left = np.zeros(1), np.zeros(1)
    for fall, rise, way in zip(lower, upper, sign, strict=True):
        moved = np.concatenate([moved + fall, moved + rise])
        left = np.concatenate([left - way * fall, left + way * rise])
    return float((moved + np.abs(left)).min())
