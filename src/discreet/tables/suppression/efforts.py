"""How much effort a pattern is worth: fast, balanced, or until nothing cheaper is possible."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from discreet.audit.certificates.collection import Certificates
from discreet.audit.certificates.corners import corners
from discreet.audit.intervals import Audit, audit_table
from discreet.errors import InfeasibleError
from discreet.progress import Progress
from discreet.tables.suppression.optimal import Limits, optimum
from discreet.tables.suppression.search import REACH, Search
from discreet.tables.suppression.task import Task

__all__ = ["Found", "balanced", "fast", "mended", "optimal"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Pivots that "balanced" may spend per live cell, and at least.
_PIVOTS, _LEAST = 20, 3000
#: Improving may take this multiple of that budget; exploring, of all work before it.
_LONG, _AGAIN = 4, 1
#: Exploring ends after this many exchanges without gain, plus one per so many secondaries.
_PATIENT, _PER = 20, 10
#: Live cells up to which "balanced" seeks the optimum within limits; the factor on its pivots where
#: contributors attack; the node limit of one integer program.
_SMALL, _INFORMED, _NODES = 300, 5, 300
#: The same limit where contributors attack, or where more than one live cell in so many is a
#: secondary.
_MIDDLE, _HARD = 500, 10
#: Completing a choice of cells may take this multiple of the pivots for building, plus so many.
_MENDED, _MENDING = 3, 2_000
#: How many times more "optimal" spends before it starts to prove, and how many seconds on that.
_MORE, _PATIENCE = 4, 600.0
#: Improving by "fast": multiple of the pivots for building, and their limit; each for one program
#: over the whole table and for windows, in which a pivot is cheaper.
_FAST, _FAST_PIVOTS = (2.5, 6.0), (60_000, 400_000)
#: The same limits of "balanced" for improving and for exploring.
_IMPROVING, _EXPLORING = (250_000, 1_500_000), (120_000, 750_000)
#: With windows improving may take this multiple of the pivots for building.
_TIMES = 10
#: A protection level that the auditor finds missed is met again with these margins in turn.
_MARGINS = (1e-5, 1e-3, 0.05)
#: Passes in which "balanced" looks for extreme directions of very large tables.
_PASSES = 6


@dataclasses.dataclass(frozen=True)
class Found:
    """A safe pattern with the certificates that prove it, and a bound where one is proven."""

    withheld: Bools
    certificates: Iterable[tuple[npt.NDArray[np.int64], Floats]]
    work: int
    bound: float | None = None
    #: Demands, each with a contributor who needed an alternative table of its own.
    asked: tuple[tuple[int, int], ...] = ()
    #: Where the pattern has been audited already.
    audit: Audit | None = None

    def cost(self, task: Task) -> float:
        """Return what the secondaries cost."""
        return float(task.price[self.withheld & ~task.primary].sum())

    def proven(self, task: Task) -> bool:
        """Whether nothing can be cheaper."""
        return self.bound is not None and self.cost(task) <= self.bound * (1 + 1e-9) + 1e-9


def fast(task: Task, progress: Progress) -> Found:
    """Return a safe pattern soon."""
    live = int(task.live.sum())
    if live > task.scale.large:
        return _cornered(task, 1, progress)
    if live <= task.scale.tiny:
        return balanced(task, None, progress)
    search = _first(task, progress, cost=task.scale.cost[0])
    return _found(search, search.work)


def _first(
    task: Task,
    progress: Progress,
    deadline: float | None = None,
    *,
    improve: bool = True,
    cost: float = np.inf,
) -> Search:
    """Build along the first guide and improve that a little, at some cost at most."""
    windows, cost = _windows(task), _share(task, cost)
    search = Search(
        task, _guides(task)[0], deadline, windows=windows, budget=cost / 2, progress=progress
    )
    search.build()
    if not improve:
        return search
    search.improve(min(_little(search.work, windows), _affordable(search, cost)))
    return search


def _share(task: Task, cost: float) -> float:
    """Return what may be spent: more where each contributor wants a certificate of its own."""
    return cost if task.knowledge is None else 2 * cost


def _affordable(search: Search, cost: float) -> int:
    """Return up to how many pivots a search may go at some cost."""
    left = max(cost - search.spent, 0.0)
    return search.work + int(min(left / search.pivot, 1e12))


def _little(work: int, windows: int) -> int:
    """Return up to how many pivots "fast" improves what took so many to build."""
    return int(work + min(_FAST[windows > 0] * work, _FAST_PIVOTS[windows > 0]))


def _cornered(task: Task, passes: int, progress: Progress) -> Found:
    """Look for corners, with programs only for what finds none.

    Each pass after the first builds anew, and what was used much in the last is cheaper.
    """
    search = Search(task, _guides(task)[0], windows=_windows(task), progress=progress)
    best, least, price = None, np.inf, search.rate
    plain = task.price / float(np.median(task.price[task.live]))
    for _ in range(passes):
        found = corners(
            task.table,
            (task.target, task.amount),
            (task.down, task.up),
            withheld=task.primary,
            live=task.live,
            price=price,
            free=search.free,
            knowledge=task.knowledge,
            progress=progress,
        )
        if found is None:
            break
        cost = float(task.price[found.withheld & ~task.primary].sum())
        if cost < least:
            best, least = found, cost
        used = np.bincount(found.certificates.cells, minlength=len(plain))
        price = plain / (1 + np.log1p(used))
    if best is not None:
        search.adopt(best.withheld, best.met)
    search.build()
    pattern = _found(search, search.work)
    if best is None:
        return pattern
    together = Certificates.joined([best.certificates, Certificates.of(pattern.certificates)])
    return dataclasses.replace(pattern, certificates=together)


def _windows(task: Task) -> int:
    """Return how far to look around a cell: the larger the table, the nearer."""
    live = int(task.live.sum())
    # What contributors know makes linear programs over three attributes several times slower.
    long = task.knowledge is not None and len(task.table.dimensions) > 2
    if live <= (task.scale.whole // 2 if long else task.scale.whole):
        return 0
    return 2 if live <= task.scale.large else 1


def balanced(task: Task, deadline: float | None, progress: Progress) -> Found:
    """Return a cheap safe pattern; of a small table often the cheapest."""
    live = int(task.live.sum())
    if live > task.scale.large:
        return _cornered(task, _PASSES, progress)
    first = _first(task, progress, deadline, improve=live <= _MIDDLE, cost=task.scale.cost[1])
    found = _found(first, first.work)
    hard = task.knowledge is not None or _HARD * len(first.secondaries) > live
    if live <= _SMALL or (live <= _MIDDLE and hard):
        return _improved(task, found, _until(_limits(task, found), deadline), progress)
    return _guided(task, first, deadline, _PIVOTS, progress, cost=task.scale.cost[1])


def optimal(task: Task, deadline: float | None, progress: Progress) -> Found:
    """Return the cheapest pattern, or a cheap one and how far off it may be."""
    small = int(task.live.sum()) <= _MIDDLE
    first = _first(task, progress, deadline, improve=small)
    if small:
        found = _found(first, first.work)
    else:
        found = _guided(task, first, deadline, _MORE * _PIVOTS, progress)
    return _proven(task, found, _until(Limits(), deadline), progress)


def _guided(
    task: Task,
    first: Search,
    deadline: float | None,
    pivots: int,
    progress: Progress,
    *,
    cost: float = np.inf,
) -> Found:
    """Build along several guides, improve each, keep the best and explore around it."""
    cost = _share(task, cost)
    budget = _LEAST + pivots * int(task.live.sum())
    if task.knowledge is not None:
        # Each contributor wants a certificate of its own.
        budget *= 2
    windows = _windows(task)
    best: Search | None = None
    spent, dearest, paid = 0, 0, 0.0
    for guide in _guides(task):
        if best is not None and (spent + dearest > budget // 2 or 2 * paid > cost):
            break
        search = first
        if best is not None:
            search = Search(
                task, guide, deadline, windows=windows, budget=(cost - paid) / 2, progress=progress
            )
            search.build()
        limit = _TIMES * search.work if windows else _LONG * budget
        limit = min(limit, search.work + _IMPROVING[windows > 0])
        # Never less than "fast", where building alone takes most of the budget.
        limit = max(limit, _little(search.work, windows))
        search.improve(min(limit, _affordable(search, cost - paid)))
        spent, paid = spent + search.work, paid + search.spent
        dearest = max(dearest, search.work)
        if best is None or search.cost < best.cost * (1 - 1e-12):
            best = search
    assert best is not None
    left = max(cost - paid, 0.0) / best.pivot
    spent += _explored(best, budget, windows, int(min(left, 1e12)))
    return _found(best, spent)


def _explored(best: Search, budget: int, windows: int, most: int) -> int:
    """Explore around a pattern as long as it pays, and a little longer; return the work."""
    before = best.work
    more = before // 2 if windows else _AGAIN * before + budget
    best.explore(
        before + min(more, most, _EXPLORING[windows > 0]),
        _PATIENT + len(best.secondaries) // _PER,
    )
    return best.work - before


def _limits(task: Task, found: Found) -> Limits:
    """Return how far "balanced" looks for the optimum: the same on every machine."""
    secondaries = int((found.withheld & ~task.primary).sum())
    work = task.scale.proof + task.scale.proof_per_secondary * secondaries
    return Limits(work=work * (_INFORMED if task.knowledge is not None else 1), nodes=_NODES)


def _until(limits: Limits, deadline: float | None) -> Limits:
    if deadline is None:
        return limits if np.isfinite(limits.work) else Limits(seconds=_PATIENCE)
    return dataclasses.replace(limits, seconds=max(deadline - time.monotonic(), 0.0))


def _improved(task: Task, found: Found, limits: Limits, progress: Progress) -> Found:
    """Look for the optimum of a small table, and explore where that ends too early."""
    proven = _proven(task, found, limits, progress)
    if proven.proven(task):
        return proven
    search = _around(task, proven.withheld)
    before = search.cost
    budget = _LEAST + _PIVOTS * int(task.live.sum())
    _explored(search, budget, 0, budget + search.work)
    if search.cost >= before * (1 - 1e-12):
        return proven
    explored = _found(search, proven.work + search.work)
    return dataclasses.replace(explored, bound=proven.bound)


def _around(task: Task, withheld: Bools, deadline: float | None = None) -> Search:
    """Return a search that starts from given cells and meets what they leave open."""
    search = Search(task, deadline=deadline)
    search.adopt(withheld, np.zeros(len(task.target), dtype=bool))
    search.build()
    return search


def _proven(task: Task, found: Found, limits: Limits, progress: Progress) -> Found:
    """Prove a pattern optimal, or find the optimum; else say how far off it may be."""
    end = time.monotonic() + limits.seconds

    def mend(chosen: Bools) -> Bools:
        search = _around(task, chosen, end)
        search.improve(search.work + _MENDED * search.work + _MENDING)
        return search.withheld

    best = optimum(
        task,
        found.withheld,
        found.asked,
        found.certificates,
        limits=limits,
        mend=mend,
        progress=progress,
    )
    found = dataclasses.replace(found, bound=best.bound, work=found.work + best.work)
    if best.withheld is not None:
        better = dataclasses.replace(found, withheld=best.withheld, certificates=[])
        audit = audited(task, better, progress)
        if audit.safe:
            return dataclasses.replace(better, audit=audit)
        # Else safe within the solver's tolerance but not the auditor's: the bound holds all the same.
    return found


def mended(task: Task, found: Found, progress: Progress) -> Found:
    """Return a pattern that the auditor finds safe, from one that may miss some demands.

    What it misses is mostly a matter of rounding: a certificate that is right within the tolerance
    of one program and not within that of another. So these demands are met once more, with a
    growing margin, and others stay as they are. What no margin mends is looked for without any of
    the first pattern; in the end all that may be withheld is.
    """
    audit = audited(task, found, progress)
    for margin in _MARGINS:
        if audit.safe:
            return dataclasses.replace(found, audit=audit)
        missed = np.isin(task.target, audit.cells[~audit._safe])
        found = _wider(task, found, missed, margin, progress)
        audit = audited(task, found, progress)
    if not audit.safe:
        found = _anew(task, progress)
        audit = audited(task, found, progress)
    if not audit.safe:
        found = Found(task.live.copy(), [], found.work)
        audit = audited(task, found, progress)
    if not audit.safe:
        names = [" × ".join(codes) for codes in audit.unsafe_cells[:5]]
        raise InfeasibleError(
            f"no pattern protects {audit.unsafe} sensitive cells, such as " + "; ".join(names),
            code="no-safe-pattern",
            hint="lower their protection levels, merge categories, or withhold fewer cells "
            "from suppression",
            cells=names,
        )
    return dataclasses.replace(found, audit=audit, bound=None)


def _wider(task: Task, found: Found, missed: Bools, margin: float, progress: Progress) -> Found:
    """Meet missed demands with a margin, from the cells that are withheld already."""
    amount = np.where(missed, task.amount * (1 + margin), task.amount)
    if task.table.is_whole:
        amount = np.where(missed, np.sign(amount) * np.ceil(np.abs(amount)), amount)
    room = np.where(amount > 0, task.up[task.target], task.down[task.target])
    amount = np.sign(amount) * np.minimum(np.abs(amount), room)
    search = Search(
        dataclasses.replace(task, amount=amount), windows=_windows(task), progress=progress
    )
    search.adopt(found.withheld, ~missed)
    try:
        search.build()
    except InfeasibleError:
        return found  # not with as much margin
    more = _found(search, found.work + search.work)
    together = Certificates.joined(
        [Certificates.of(found.certificates), Certificates.of(more.certificates)]
    )
    return dataclasses.replace(more, certificates=together)


def _anew(task: Task, progress: Progress) -> Found:
    """Build once more by the plain prices and in windows, which is another way than the first."""
    search = Search(task, windows=REACH, progress=progress)
    search.build()
    return _found(search, search.work)


def _guides(task: Task) -> list[Floats]:
    """Prices to build by: the objective itself, and others that lead elsewhere."""
    size = task.size / max(task.unit, 1e-12)
    damped = np.log1p(size)
    if task.tied or np.ptp(task.price[task.live]) == 0:
        # Among equal prices smaller cells are easier to do without.
        return [task.price * (0.1 + damped), task.price * (0.1 + size), task.price]
    return [np.sqrt(task.price * task.price.mean()), task.price, task.price**0.25]


def _found(search: Search, work: int) -> Found:
    certificates = {id(c): c for found in search.certificates for c in found}
    asked = tuple(sorted(search.asked))
    return Found(search.withheld, list(certificates.values()), work, asked=asked)


def audited(task: Task, found: Found, progress: Progress) -> Audit:
    """Return what the auditor says of a pattern, certificates compared first."""
    return audit_table(
        task.table,
        published=~found.withheld,
        attacker=task.attacker,
        bounds=task.bounds,
        certificates=found.certificates,
        progress=progress,
    )
