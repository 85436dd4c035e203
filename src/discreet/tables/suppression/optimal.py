"""The cheapest pattern, with proof: Benders' decomposition after Fischetti and Salazar.

Cuts are first collected on the relaxed master, then on whole-number choices until one protects
everything: no pattern can be cheaper than that. Choices that protect not quite everything are
mended on the way, so that something cheap is at hand wherever the search has to end.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from discreet.audit.decide import meet
from discreet.audit.outsider.deviations import components
from discreet.audit.problem import Decision, Problem
from discreet.progress import Progress, silent
from discreet.tables.suppression.benders import Attacks, Cut, Master
from discreet.tables.suppression.harvest import Harvest, Key
from discreet.tables.suppression.task import Task
from discreet.tables.suppression.ties import HALF

__all__ = ["Limits", "Optimum", "optimum"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Completes a choice of cells to a safe pattern.
Mend = Callable[[Bools], Bools | None]
#: Live cells up to which the cheapest pattern is proven to the last tie.
_FEW = 60
#: Contributors that are checked at a time, of those who may refute a choice.
_SUSPECTS = 3


@dataclasses.dataclass(frozen=True)
class Limits:
    """Where to end before all is proven: after some seconds, pivots, or nodes of one master."""

    seconds: float = np.inf
    work: float = np.inf
    nodes: int | None = None


@dataclasses.dataclass(frozen=True)
class Optimum:
    """The cheapest choice of secondaries found, and what no choice can undercut."""

    #: None where nothing cheaper than the given pattern was found.
    withheld: Bools | None
    bound: float
    work: int = 0


def optimum(
    task: Task,
    withheld: Bools,
    suspects: Iterable[tuple[int, int]] = (),
    certificates: Iterable[tuple[Ints, Floats]] = (),
    *,
    limits: Limits,
    mend: Mend | None = None,
    progress: Progress = silent,
) -> Optimum:
    """Search for a pattern cheaper than a given safe one until there is none, or a limit is met.

    `suspects` are demands and contributors that are likely to matter; others are found on the way.
    `certificates` are deviations that may answer some demands.
    """
    return _Proof(task, withheld, suspects, certificates, limits, mend, progress).run()


class _Proof:
    """The state of the search: cuts, whom to ask, and the cheapest safe pattern known."""

    def __init__(
        self,
        task: Task,
        withheld: Bools,
        suspects: Iterable[tuple[int, int]],
        certificates: Iterable[tuple[Ints, Floats]],
        limits: Limits,
        mend: Mend | None,
        progress: Progress,
    ) -> None:
        self.task = task
        self._limits, self._mend, self._progress = limits, mend, progress
        self._deadline = time.monotonic() + limits.seconds
        self.attacks = Attacks(task)
        self.master = Master(task, self.attacks.cells)
        self._bridgeless()
        self.known = withheld[self.attacks.cells].astype(np.float64)
        self.value = float(self.master.price @ self.known)
        self.bound = 0.0
        self._better = False
        # The largest first: their alternative tables often meet smaller demands, too.
        self._asked: list[Key] = [
            (d, None) for d in np.argsort(-np.abs(task.amount), kind="stable").tolist()
        ]
        self._asked.extend(suspects)
        self._harvest = Harvest(task)
        self._certificates = list(certificates)
        self._problem = _problem(task)
        self._grid = _grid(self.master.price[self.master.free])
        # Of many cells ties are left as they fall; of few each tie is broken by the key.
        loose = task.tied and len(self.attacks.cells) > _FEW
        self._step = HALF if loose else self._grid

    @property
    def work(self) -> int:
        return self.attacks.work + self.master.work

    def _ended(self) -> bool:
        return self.work > self._limits.work or time.monotonic() > self._deadline

    def _proven(self) -> bool:
        return self.bound >= self.value - self._step + 1e-9 * self.value

    def _raise(self, bound: float) -> None:
        grid = self._grid
        rounded = bound if grid <= 0 else float(np.ceil(bound / grid - 1e-6) * grid)
        self.bound = max(self.bound, min(rounded, self.value))

    def run(self) -> Optimum:
        self._relax()
        while not self._proven() and not self._ended():
            left = self._deadline - time.monotonic()
            x, low, proven = self.master.whole(self.known, left, self._limits.nodes)
            self._raise(low)
            if x is None or self._proven():
                break
            cost = float(self.master.price @ x)
            if not proven and cost >= self.value * (1 - 1e-9):
                break
            self._progress("proving the optimum", int(self.bound), int(self.value))
            if not self._separate(x):
                self._take(x)
                if proven:
                    self._raise(cost)
                    return self._outcome(done=True)
                continue
            self._repair(x)
            self._relax()
        return self._outcome(done=self._proven())

    def _outcome(self, *, done: bool) -> Optimum:
        bound = self.value if done else min(self.bound, self.value)
        if not self._better:
            return Optimum(None, bound, self.work)
        return Optimum(self._pattern(self.known), bound, self.work)

    def _pattern(self, x: Floats) -> Bools:
        chosen = np.zeros(len(self.task.value), dtype=bool)
        chosen[self.attacks.cells[x > 0.5]] = True
        return chosen

    def _take(self, x: Floats) -> None:
        """Keep a safe choice that is cheaper than the best known."""
        cost = float(self.master.price @ x)
        if cost < self.value * (1 - 1e-12):
            self.known, self.value, self._better = x.copy(), cost, True

    def _repair(self, x: Floats) -> None:
        """Make a safe pattern of a choice that is not."""
        if self._mend is not None:
            mended = self._mend(self._pattern(x))
            if mended is not None:
                self._take(mended[self.attacks.cells].astype(np.float64))

    def _relax(self) -> None:
        """Collect cuts on fractional choices until none is violated by much."""
        stalled, best = 0, self.bound
        open_: list[Key] = []
        while stalled < 4 and not self._ended():
            x, cost = self.master.relaxed()
            stalled = stalled + 1 if cost < best + 1e-4 * max(self.value, 1e-12) else 0
            best = max(best, cost)
            self._raise(cost)
            self._progress("bounding the optimum", int(self.bound), int(self.value))
            if self._proven():
                return
            # Demands violated in the last round are checked first, the others once these are met.
            open_ = self._violated(open_, x) or self._violated(self._asked, x)
            if not open_:
                return

    def _violated(self, some: list[Key], x: Floats) -> list[Key]:
        """Add the cuts that a fractional choice violates; return whose they are."""
        found: list[Key] = []
        if not some:
            return found
        answered = self._harvest.answers(self._spread(x))
        for demand, who in some:
            if demand in answered and who not in answered[demand]:
                continue
            answer = self.attacks.ask(demand, who, x)
            cut = answer.cut
            if cut is not None and cut.coefficients @ x[cut.columns] < cut.least - 1e-4:
                if self.master.add(cut):
                    found.append((demand, who))
            elif answer.cells is not None and answer.moves is not None:
                for met, doubting in self._harvest.add(answer.cells, answer.moves).items():
                    answered[met] = answered[met] & doubting if met in answered else doubting
        return found

    def _spread(self, x: Floats) -> Floats:
        """Return a choice with an entry for every cell of the table."""
        whole = np.zeros(len(self.task.value))
        whole[self.attacks.cells] = x
        return whole

    def _separate(self, x: Floats) -> int:
        """Add a cut for every demand that a whole choice leaves open; return how many there were."""
        chosen = self._pattern(x)
        decision = Decision.blank(self._problem)
        kept = [c for c in self._certificates if chosen[c[0]].all()]
        decision.check([*kept, *self._harvest.certificates(chosen)], np.flatnonzero(chosen))
        if self.task.knowledge is not None:
            return self._informed(x, chosen, decision)
        open_demands = 0
        for demand in np.flatnonzero(~self._met(decision)).tolist():
            answer = self.attacks.ask(demand, None, x)
            if answer.cut is not None:
                self.master.add(answer.cut)
                open_demands += 1
            elif answer.cells is not None and answer.moves is not None:
                self._harvest.add(answer.cells, answer.moves)
        if not open_demands and self._problem.whole:
            self._decide(chosen, decision)
            open_demands = self._excluded(x, decision)
        return open_demands

    def _decide(self, chosen: Bools, decision: Decision) -> None:
        """Let the auditor decide what is still open of a whole choice."""
        groups, _ = components(self.task.table.equations, np.flatnonzero(chosen))
        for cells in groups:
            if self._problem.wanted[cells].any() and not decision.done(cells):
                meet(self._problem, cells, decision)

    def _excluded(self, x: Floats, decision: Decision) -> int:
        """Exclude a choice that the auditor finds unsafe though no capacity cut says why.

        What is safe stays safe with more cells withheld, so that at least one more is needed.
        """
        if self._met(decision).all():
            return 0
        others = np.flatnonzero((x < 0.5) & self.master.free)
        self.master.add(Cut(others, np.ones(len(others)), 1.0))
        return 1

    def _informed(self, x: Floats, chosen: Bools, decision: Decision) -> int:
        """Add cuts for what some contributor can refute, by way of the auditor."""
        self._decide(chosen, decision)
        open_demands = 0
        known = set(self._asked)
        for demand in np.flatnonzero(~self._met(decision)).tolist():
            side = 1 if self.task.amount[demand] > 0 else -1
            left = decision.left.get((int(self.task.target[demand]), side))
            for who in [None] if left is None else sorted(left)[:_SUSPECTS]:
                cut = self.attacks.ask(demand, who, x).cut
                if cut is not None:
                    self.master.add(cut)
                    open_demands += 1
                    if (demand, who) not in known:
                        self._asked.append((demand, who))
        return open_demands or self._excluded(x, decision)

    def _met(self, decision: Decision) -> Bools:
        up, down = decision.met_up[self.task.target], decision.met_down[self.task.target]
        return np.where(self.task.amount > 0, up, down)

    def _bridgeless(self) -> None:
        """Add that no secondary is alone in an equation: there it would protect nothing."""
        rows = self.task.table.equations.tocsr()
        for row in range(rows.shape[0]):
            members = self.attacks.place[rows.indices[rows.indptr[row] : rows.indptr[row + 1]]]
            members = members[members >= 0]
            if not self.master.free[members].all():
                continue
            for cell in members:
                signs = np.where(members == cell, -1.0, 1.0)
                self.master.add(Cut(members, signs, 0.0))


def _grid(price: Floats) -> float:
    """Return what costs differ by at least: one where prices are whole numbers, else nothing."""
    if not len(price) or not np.allclose(price, np.round(price), atol=1e-9):
        return 0.0
    return float(np.gcd.reduce(np.round(price).astype(np.int64)))


def _problem(task: Task) -> Problem:
    """Return what the auditor is asked about choices."""
    size = len(task.value)
    upper, lower = np.zeros(size), np.zeros(size)
    rising = task.amount > 0
    upper[task.target[rising]] = task.amount[rising]
    lower[task.target[~rising]] = -task.amount[~rising]
    return Problem(
        task.equations,
        task.down,
        task.up,
        lower,
        upper,
        task.primary,
        task.knowledge,
        task.prior,
        exact=False,
        whole=task.table.is_whole,
    )
