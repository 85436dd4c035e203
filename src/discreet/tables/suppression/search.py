"""Search for a cheap safe pattern: certificates by linear programs, then exchanges.

Every demand of every sensitive cell is met by a stored certificate, a deviation whose cells are
all withheld, so that a pattern is safe at every moment. The cheapest certificate is found with
withheld cells (almost) free; the cells it needs beyond them become secondaries. An exchange takes
some secondaries back and meets again the demands whose certificates used them; it stays where the
pattern has become cheaper.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from discreet.audit.problem import TOLERANCE
from discreet.errors import InfeasibleError
from discreet.progress import Progress, silent
from discreet.tables.suppression.task import Task
from discreet.tables.suppression.windows import Whole, Windows

__all__ = ["Search"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Certificate = tuple[Ints, Floats]

#: Size of the windows that replace the whole table once it is too expensive, and the cost of a
#: pivot in them (set-up included), in cells of one linear program.
REACH, NEARBY = 2, 7000
#: Moving a withheld cell costs this share of the median price, so that alternative tables stay
#: sparse; it never pays to withhold another cell for that.
_FREE = 1e-5
#: Moving a withheld cell of a single contributor costs more: that contributor refutes the table.
_KNOWN = 20 * _FREE
#: Most secondaries that one exchange takes back.
_GROUP = 6
#: What cells just taken back may cost when building again, against their price.
_FACTORS = (1.0, 1.5, 3.0)
#: An exchange is abandoned once it costs this much more than it released; up to there, cells that
#: become unnecessary may still make it pay.
_HOPE = 0.3


@dataclasses.dataclass
class _Step:
    """What an exchange has changed, to take it back."""

    opened: list[int]
    closed: list[int]
    before: dict[int, tuple[Certificate, ...]]


class Search:
    """A safe pattern under construction, over all live cells of a table.

    Parameters
    ----------
    guide
        Prices to build by, where other than the objective's.
    deadline
        When to stop improving, on the monotonic clock.
    windows
        Up to which size of window cheaper certificates are looked for; 0: in the whole table.
    budget
        What building may cost before programs over the whole table are given up for windows: a
        pivot costs as much as there are cells in its program.
    """

    def __init__(
        self,
        task: Task,
        guide: Floats | None = None,
        deadline: float | None = None,
        *,
        windows: int = 0,
        budget: float = np.inf,
        progress: Progress = silent,
    ) -> None:
        self.task = task
        self._budget, self._before = budget, 0
        self._deadline = np.inf if deadline is None else deadline
        self._progress = progress
        self.withheld = task.primary.copy()
        self._price = _scaled(task.price if guide is None else guide, task.live)
        self._free = np.full(len(task.value), _FREE)
        if task.knowledge is not None:
            self._free[task.knowledge.owner >= 0] = _KNOWN
        #: What moving each cell costs now, and which cells may not be used at all.
        self.rate = np.where(task.primary, self._free, self._price)
        self.shut = np.zeros(len(task.value), dtype=bool)
        self.model: Windows | Whole = (
            Windows(task, self.rate, self.shut, windows)
            if windows
            else Whole(task, self.rate, self.shut)
        )
        self.certificates: list[tuple[Certificate, ...]] = [()] * len(task.target)
        #: Demands and the contributors to whom a certificate of their own was given.
        self.asked: set[tuple[int, int]] = set()
        #: Demands that certificates kept elsewhere have met.
        self._met = np.zeros(len(task.target), dtype=bool)
        self.users: defaultdict[int, set[int]] = defaultdict(set)

    @functools.cached_property
    def _by_target(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for demand, cell in enumerate(self.task.target.tolist()):
            found.setdefault(cell, []).append(demand)
        return found

    # -- prices ---------------------------------------------------------------------------------

    def _free_cells(self, cells: Ints) -> None:
        self.rate[cells] = self._free[cells]
        self.model.changed(cells)

    def _charge_cells(self, cells: Ints, factor: float = 1.0) -> None:
        self.rate[cells] = self._price[cells] * factor
        self.model.changed(cells)

    def _shut_cells(self, cells: Ints, shut: bool) -> None:
        self.shut[cells] = shut
        self.model.changed(cells)

    # -- certificates ---------------------------------------------------------------------------

    def _assign(self, demand: int, certificates: tuple[Certificate, ...]) -> None:
        for cells, _ in self.certificates[demand]:
            for cell in cells.tolist():
                self.users[cell].discard(demand)
        self.certificates[demand] = certificates
        for cells, _ in certificates:
            for cell in cells.tolist():
                self.users[cell].add(demand)

    def _meet(self, demand: int, step: _Step, pending: set[int]) -> float | None:
        """Meet one demand, and others on the way; return what it costs, none if impossible."""
        task = self.task
        target, amount = int(task.target[demand]), float(task.amount[demand])
        cost = 0.0
        found: list[Certificate] = []
        left: frozenset[int] | None = None
        while left is None or left:
            who = None if left is None else min(left)
            if who is not None:
                self.asked.add((demand, who))
            certificate = self._certify(target, amount, who)
            if certificate is None:
                return None
            cells, moves = certificate
            fresh = cells[~self.withheld[cells]]
            if len(fresh):
                cost += float(task.price[fresh].sum())
                self.withheld[fresh] = True
                step.opened.extend(fresh.tolist())
                self._free_cells(fresh)
            if len(cells):
                found.append(certificate)
            if task.knowledge is None:
                break
            if who is not None and not _reaches(target, amount, certificate):
                # This contributor could exclude part of the amount before; others could not.
                assert left is not None
                left = left - {who}
                continue
            refuted = task.knowledge.refuting(target, cells, moves)
            left = refuted if left is None else (left & refuted) - {who}
        self._keep(demand, tuple(found), step)
        pending.discard(demand)
        self._share(found, step, pending)
        return cost

    def _certify(self, target: int, amount: float, who: int | None) -> Certificate | None:
        """Return the cheapest deviation, in the eyes of one contributor or of nobody special.

        A contributor that could exclude the amount before anything was published is answered by as
        much as it could not exclude.
        """
        if who is None:
            return self.model.cheapest(target, amount)
        assert self.task.knowledge is not None
        assert self.task.prior is not None
        fixed, floors = self.task.knowledge.view(who, target)
        direction = 1 if amount > 0 else -1
        ceiling = self.task.prior.ceiling(who, target, direction)
        nothing = np.zeros(0, np.int64), np.zeros(0)
        if ceiling <= TOLERANCE * abs(amount):
            return nothing
        less = direction * min(abs(amount), ceiling * (1 - TOLERANCE / 2))
        found = self.model.cheapest(target, less, fixed, floors)
        if found is not None:
            return found
        reach = self.task.prior.reach(who, target, direction)
        if reach >= abs(less) * (1 - TOLERANCE):
            return None
        if reach <= TOLERANCE * abs(amount):
            return nothing
        return self.model.cheapest(target, direction * reach * (1 - TOLERANCE / 2), fixed, floors)

    def _keep(self, demand: int, found: tuple[Certificate, ...], step: _Step) -> None:
        step.before.setdefault(demand, self.certificates[demand])
        self._assign(demand, found)

    def _share(self, found: list[Certificate], step: _Step, pending: set[int]) -> None:
        """Let pending demands use a new deviation, or its mirror image, where it moves them enough."""
        task = self.task
        for cells, moves in found:
            mirrored = bool(((moves <= task.down[cells]) & (-moves <= task.up[cells])).all())
            for place in np.flatnonzero(task.primary[cells]).tolist():
                for demand in self._by_target.get(int(cells[place]), ()):
                    if demand not in pending:
                        continue
                    amount, move = float(task.amount[demand]), float(moves[place])
                    sign = 1.0 if amount * move > 0 else -1.0
                    if abs(move) < abs(amount) * (1 - 1e-9) or (sign < 0 and not mirrored):
                        continue
                    shared = (cells, moves if sign > 0 else -moves)
                    if task.knowledge is not None and task.knowledge.refuting(
                        int(cells[place]), *shared
                    ):
                        continue
                    self._keep(demand, (shared,), step)
                    pending.discard(demand)

    def adopt(self, withheld: Bools, met: Bools) -> None:
        """Start from a pattern that meets some of the demands by certificates of its own."""
        fresh = np.flatnonzero(withheld & ~self.withheld)
        self.withheld[fresh] = True
        self._free_cells(fresh)
        self._met |= met

    # -- moves ----------------------------------------------------------------------------------

    def build(self) -> None:
        """Meet every demand, the largest first."""
        task = self.task
        order = np.argsort(-np.abs(task.amount), kind="stable")
        order = order[~self._met[order]]
        pending = set(order.tolist())
        step = _Step([], [], {})
        hopeless = []
        for done, demand in enumerate(order.tolist()):
            if demand in pending and self._meet(demand, step, pending) is None:
                hopeless += [int(task.target[demand])]
            if done % 64 == 0:
                self._progress("protecting", done, len(order))
            if self.spent > self._budget:
                self._narrow()
        self._progress("protecting", len(order), len(order))
        if hopeless:
            names = task.names(dict.fromkeys(hopeless))
            raise InfeasibleError(
                f"no pattern protects {len(set(hopeless))} sensitive cells, such as "
                + "; ".join(names),
                code="no-safe-pattern",
                hint="lower their protection levels, merge categories, or withhold fewer cells "
                "from suppression",
                cells=names,
            )

        self._price = _scaled(task.price, task.live)
        self._charge_cells(np.flatnonzero(task.live & ~self.withheld))

    @property
    def free(self) -> Floats:
        """What moving each cell costs once it is withheld."""
        return self._free

    def _narrow(self) -> None:
        """Look around each target only, from now on: the whole table has become too dear."""
        if isinstance(self.model, Whole):
            self._before += self.model.work
            self.model = Windows(self.task, self.rate, self.shut, REACH)
            self._budget = np.inf

    @property
    def work(self) -> int:
        """Pivots so far."""
        return self._before + self.model.work

    @property
    def pivot(self) -> int:
        """What a pivot costs, in cells of the program that it is made in."""
        return int(self.task.live.sum()) if isinstance(self.model, Whole) else NEARBY

    @property
    def spent(self) -> float:
        """What all work so far has cost, in pivots times cells."""
        whole = self.model.work if isinstance(self.model, Whole) else self._before
        return float(whole * self.task.live.sum() + (self.work - whole) * NEARBY)

    def _spent(self, budget: int) -> bool:
        return self.work > budget or time.monotonic() > self._deadline

    @property
    def secondaries(self) -> Ints:
        """The cells withheld besides the sensitive ones."""
        return np.flatnonzero(self.withheld & ~self.task.primary)

    @property
    def cost(self) -> float:
        """What the secondaries cost."""
        return float(self.task.price[self.secondaries].sum())

    def exchange(
        self,
        removed: Iterable[int],
        *,
        factor: float | None = None,
        order: dict[int, float] | None = None,
    ) -> bool:
        """Take secondaries back and meet again what used them; say whether it became cheaper.

        With a `factor` the removed cells may come back at that multiple of their price, and what
        costs the same stays too; else they may not, and only what is cheaper stays.
        Demands are met the largest first, or by `order`.
        """
        out = np.array(sorted(removed), dtype=np.int64)
        task = self.task
        gain = float(task.price[out].sum())
        demands: set[int] = set().union(*(self.users[cell] for cell in out.tolist()))
        step = _Step([], out.tolist(), {})
        self.withheld[out] = False
        if factor is None:
            self._shut_cells(out, True)
        else:
            self._charge_cells(out, factor)
        rank = {d: -abs(float(task.amount[d])) for d in demands} if order is None else order
        good = self._again(sorted(demands, key=lambda d: (rank[d], d)), step, gain * (1 + _HOPE))
        if factor is None:
            self._shut_cells(out, False)
        idle = self._idle(step) if good else []
        spent = float(task.price[step.opened].sum() - task.price[idle].sum())
        least = 1e-9 * max(gain, 1e-12)
        if not good or spent > (gain - least if factor is None else gain + least):
            self._undo(step)
            return False
        back = out[self.withheld[out]]
        self._charge_cells(out[~self.withheld[out]])
        if len(back):
            self._free_cells(back)
        self._publish(idle)
        return spent < gain - least

    def _again(self, demands: list[int], step: _Step, limit: float) -> bool:
        """Meet demands once more, unless that is impossible or beyond a limit."""
        spent, pending = 0.0, set(demands)
        for demand in demands:
            if demand in pending:
                cost = self._meet(demand, step, pending)
                if cost is None:
                    return False
                spent += cost
                if spent >= limit:
                    return False
        return True

    def _idle(self, step: _Step) -> list[int]:
        """Return the secondaries that no certificate uses any more after a step."""
        touched = {
            c for found in step.before.values() for cells, _ in found for c in cells.tolist()
        }
        return sorted(
            c
            for c in touched
            if self.withheld[c] and not self.task.primary[c] and not self.users[c]
        )

    def _publish(self, cells: list[int]) -> None:
        if cells:
            idle = np.array(cells, dtype=np.int64)
            self.withheld[idle] = False
            self._charge_cells(idle)

    def _undo(self, step: _Step) -> None:
        opened = np.array(step.opened, dtype=np.int64)
        self.withheld[opened] = False
        if len(opened):
            self._charge_cells(opened)
        closed = np.array(step.closed, dtype=np.int64)
        self.withheld[closed] = True
        self._free_cells(closed)
        for demand, before in step.before.items():
            self._assign(demand, before)

    def _sweep(self) -> None:
        """Publish again what no certificate uses any more."""
        self._publish([c for c in self.secondaries.tolist() if not self.users[c]])

    def improve(self, budget: int) -> bool:
        """Try to do without each secondary, the most expensive first; say whether any went."""
        self._sweep()
        order = sorted(self.secondaries.tolist(), key=lambda c: (-self.task.price[c], c))
        better = False
        for done, cell in enumerate(order):
            if self._spent(budget):
                break
            if done % 16 == 0:
                self._progress("improving", done, len(order))
            if self.withheld[cell]:
                better |= self.exchange([cell])
        return better

    def explore(self, budget: int, patience: int) -> None:
        """Ruin and recreate: take back secondaries that work together, and build again there.

        Gives up after so many exchanges in vain since the last that succeeded.
        """
        draw = np.random.default_rng(0)
        left = patience
        while left > 0 and not self._spent(budget) and len(self.secondaries):
            group = self._neighbours(draw)
            order: dict[int, float] | None = None
            if draw.uniform() < 0.5:
                demands = sorted(set().union(*(self.users[cell] for cell in group)))
                order = dict(zip(demands, draw.uniform(size=len(demands)).tolist(), strict=True))
            factor = float(draw.choice(_FACTORS))
            left = patience if self.exchange(group, factor=factor, order=order) else left - 1

    def _neighbours(self, draw: np.random.Generator) -> list[int]:
        """Return a secondary and some that share certificates with it, more likely the more."""
        task = self.task
        seed = int(draw.choice(self.secondaries))
        shared: dict[int, int] = {}
        for demand in sorted(self.users[seed]):
            for cells, _ in self.certificates[demand]:
                for cell in cells[self.withheld[cells] & ~task.primary[cells]].tolist():
                    shared[cell] = shared.get(cell, 0) + 1
        shared.pop(seed, None)
        if not shared:
            return [seed]
        near = sorted(shared)
        weight = np.array([shared[cell] for cell in near], dtype=np.float64)
        most = min(int(draw.integers(1, _GROUP)), len(near))
        picked = draw.choice(near, size=most, replace=False, p=weight / weight.sum())
        return [seed, *(int(cell) for cell in picked)]


def _reaches(target: int, amount: float, certificate: Certificate) -> bool:
    cells, moves = certificate
    return bool((np.abs(moves[cells == target]) >= abs(amount) * (1 - 1e-9)).any())


def _scaled(price: Floats, live: Bools) -> Floats:
    middle = float(np.median(price[live])) if live.any() else 1.0
    return price / middle
