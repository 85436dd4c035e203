"""Windows: the part of a large table in which one sensitive cell is likely to find its cover.

A deviation spreads from a cell along each attribute to a sibling and back, up to totals where it
must, and down to parts below totals. So the window of a cell is a cross of few codes per
attribute: its own, the most useful siblings, what lies above, and some parts of what is a total.
Windows grow until a certificate is found.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from discreet.audit.outsider.deviations import DeviationModel
from discreet.data.table import Dimension
from discreet.tables.suppression.task import Task

__all__ = ["Whole", "Windows"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Certificate = tuple[Ints, Floats]

#: Siblings per attribute and parts per total in windows of growing size.
_SIZES = ((3, 1), (8, 2), (16, 3), (60, 6))
#: Beyond this multiple of the median price a larger window is tried for a cheaper alternative table.
_DEAR = 20.0
#: Cells that a window may have.
_MOST = 6000


class Whole:
    """All live cells as one window, kept warm."""

    def __init__(self, task: Task, rate: Floats, shut: Bools) -> None:
        self._rate, self._shut = rate, shut
        cells = np.flatnonzero(task.live)
        self.model = DeviationModel(
            task.equations,
            cells,
            task.down,
            task.up,
            unit=task.unit,
            cost=rate[cells],
            whole=task.table.is_whole,
        )
        self._closed = np.zeros(len(shut), dtype=bool)

    @property
    def work(self) -> int:
        """Pivots so far."""
        return self.model.work

    def changed(self, cells: Ints) -> None:
        """Take in new prices, and which cells are shut."""
        self.model.price(cells, self._rate[cells], self._rate[cells])
        shut, before = self._shut[cells], self._closed[cells]
        if (shut & ~before).any():
            self.model.close(cells[shut & ~before])
        if (before & ~shut).any():
            self.model.open(cells[before & ~shut])
        self._closed[cells] = shut

    def cheapest(
        self,
        target: int,
        amount: float,
        fixed: Ints | None = None,
        floors: tuple[Ints, Floats] | None = None,
    ) -> Certificate | None:
        """Return the cheapest deviation of the target."""
        return self.model.cheapest(target, amount, fixed=fixed, floors=floors)


class Windows:
    """A window around each target, made when it is needed."""

    def __init__(self, task: Task, rate: Floats, shut: Bools, reach: int) -> None:
        self.task = task
        self._rate, self._shut = rate, shut
        table = task.table
        self._families = [_Family.of(dimension) for dimension in table.dimensions]
        sizes = [len(dimension.codes) for dimension in table.dimensions]
        self._radix = np.cumprod([1, *sizes[:0:-1]])[::-1].astype(np.int64)
        self._last: tuple[int, int, DeviationModel] | None = None
        self._whole: DeviationModel | None = None
        self.work = 0
        #: A cost below this withholds no further cell; and the window size up to which cheaper alternative
        #: tables are sought.
        self._worth = 0.5 * float(rate[task.live & ~task.primary].min(initial=1.0))
        self._reach = reach

    def changed(self, cells: Ints) -> None:
        """Take in new prices, and which cells are shut."""
        if self._last is None:
            return
        model = self._last[2]
        inside = np.array([c for c in cells.tolist() if c in model], dtype=np.int64)
        if self._shut[inside].any():
            self._last = None
        elif len(inside):
            model.price(inside, self._rate[inside], self._rate[inside])

    def cheapest(
        self,
        target: int,
        amount: float,
        fixed: Ints | None = None,
        floors: tuple[Ints, Floats] | None = None,
    ) -> Certificate | None:
        """Return the cheapest deviation of the target in the smallest window that has one."""
        first = self._last[1] if self._last is not None and self._last[0] == target else 0
        best, least, before = None, np.inf, 0
        for size in range(first, len(_SIZES)):
            model = self._model(target, size, abs(amount))
            if size > first and len(model.cells) == before:
                continue
            before = len(model.cells)
            work = model.work
            found = model.cheapest(target, amount, fixed=fixed, floors=floors)
            self.work += model.work - work
            if found is None:
                continue
            cost = float(self._rate[found[0]] @ np.abs(found[1])) / abs(amount)
            if cost < least:
                best, least = found, cost
            if least < self._worth or (size + 1 >= self._reach and least < _DEAR):
                break
        if best is None:
            best = self._anywhere(target, amount, fixed, floors)
        return best

    def _anywhere(
        self,
        target: int,
        amount: float,
        fixed: Ints | None,
        floors: tuple[Ints, Floats] | None,
    ) -> Certificate | None:
        """Look in the whole table, which is slow, before giving up."""
        task = self.task
        if self._whole is None:
            cells = np.flatnonzero(task.live)
            self._whole = DeviationModel(
                task.equations,
                cells,
                task.down,
                task.up,
                unit=task.unit,
                cost=self._rate[cells],
                whole=task.table.is_whole,
            )
        model = self._whole
        cells = model.cells
        model.price(cells, self._rate[cells], self._rate[cells])
        shut = cells[self._shut[cells]]
        model.close(shut)
        work = model.work
        found = model.cheapest(target, amount, fixed=fixed, floors=floors)
        self.work += model.work - work
        model.open(shut)
        return found

    def _model(self, target: int, size: int, need: float) -> DeviationModel:
        if self._last is not None and self._last[:2] == (target, size):
            return self._last[2]
        cells = self.cells(target, need, *_SIZES[size])
        task = self.task
        model = DeviationModel(
            task.equations,
            cells,
            task.down,
            task.up,
            unit=task.unit,
            cost=self._rate[cells],
            whole=task.table.is_whole,
        )
        self._last = (target, size, model)
        return model

    def cells(self, target: int, need: float, siblings: int, parts: int) -> Ints:
        """Return the live cells of the window around a cell."""
        codes = self.task.table.codes[target]
        key = int((codes * self._radix).sum())
        while True:
            chosen = [
                self._codes(place, int(code), key, need, siblings, parts)
                for place, code in enumerate(codes)
            ]
            if siblings <= 3 or np.prod([float(len(c)) for c in chosen]) <= _MOST:
                break
            siblings, parts = max(3, siblings * 2 // 3), max(1, parts - 1)
        keys = np.zeros(1, dtype=np.int64)
        for place, some in enumerate(chosen):
            keys = (keys[:, None] + (some * self._radix[place])[None, :]).ravel()
        found = self.task.table.find(keys)
        found = found[found >= 0]
        found = found[self.task.live[found] & ~self._shut[found]]
        return np.union1d(found, [target])

    def _codes(
        self, place: int, code: int, key: int, need: float, siblings: int, parts: int
    ) -> Ints:
        family = self._families[place]
        if len(family.children) <= 2 * siblings:
            return np.arange(len(family.children), dtype=np.int64)
        line = key - code * int(self._radix[place])
        chosen = [code, *self._best(family.siblings(code), line, place, need, siblings)]
        above = family.above[code]
        for level in above:
            # An only child moves with its parent, which then needs siblings of its own.
            beside = self._best(family.siblings(level), line, place, need, max(1, siblings // 2))
            chosen.extend(beside)
        below: list[int] = []
        queue = [c for c in chosen if len(family.children[c])]
        while queue:
            picked = self._best(family.children[queue.pop()], line, place, need, parts)
            below.extend(picked)
            queue.extend(c for c in picked if len(family.children[c]))
        return np.unique(np.array([*chosen, *above, *below], dtype=np.int64))

    def _best(self, codes: Ints, line: int, place: int, need: float, most: int) -> list[int]:
        """Return the codes whose cells on a line are cheapest to move by the need."""
        if not len(codes):
            return []
        cells = self.task.table.find(line + codes * int(self._radix[place]))
        usable = cells >= 0
        usable[usable] &= self.task.live[cells[usable]] & ~self._shut[cells[usable]]
        codes, cells = codes[usable], cells[usable]
        room = np.maximum(self.task.down[cells], 1e-12)
        price = self._rate[cells] * np.maximum(1.0, need / room)
        return [int(c) for c in codes[np.argsort(price, kind="stable")[:most]]]


@dataclasses.dataclass(frozen=True)
class _Family:
    """Who is above, beside and below each code of an attribute, over all of its hierarchies."""

    parents: npt.NDArray[np.int32]
    children: list[Ints]
    above: list[list[int]]

    @classmethod
    def of(cls, dimension: Dimension) -> _Family:
        number = len(dimension.codes)
        below: list[list[int]] = [[] for _ in range(number)]
        for parents in dimension.parents:
            for code, parent in enumerate(parents.tolist()):
                if parent >= 0 and code not in below[parent]:
                    below[parent].append(code)
        above: list[list[int]] = []
        for code in range(number):
            chain: set[int] = set()
            for parents in dimension.parents:
                step = int(parents[code])
                while step >= 0:
                    chain.add(step)
                    step = int(parents[step])
            above.append(sorted(chain))
        children = [np.array(codes, dtype=np.int64) for codes in below]
        return cls(dimension.parents, children, above)

    def siblings(self, code: int) -> Ints:
        """Return the codes that share a parent with one."""
        found = [
            self.children[int(parents[code])] for parents in self.parents if parents[code] >= 0
        ]
        if not found:
            return np.zeros(0, dtype=np.int64)
        beside = np.unique(np.concatenate(found))
        return np.asarray(beside[beside != code])
