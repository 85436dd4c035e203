"""Exact ends in the eyes of contributors, each of whom knows a little more than an outsider.

No cell goes further than one equation allows with what one contributor knows of it; mostly it goes
that far, and then it is enough to show for everybody a table in which it does. One that moves few
cells further than somebody knows leaves few who doubt it, and these are asked all at once. Where
there is no such table for all of them, what stops the cell tells how far it goes at most for each:
less far for one of them, and then nobody needs to see it go further; or else they are asked apart.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from discreet.audit.contributors.informed import InformedModel
from discreet.audit.contributors.prior import Prior
from discreet.audit.contributors.views import Views
from discreet.audit.outsider.extremes import ExtremeModel

__all__ = ["NEAR", "TOLERANCE", "Insiders"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: A protection level counts as met up to this relative gap, since published values are rounded.
TOLERANCE = 1e-6
#: An interval end counts as final within this relative distance of its upper bound.
NEAR = 1e-8
#: Alternative tables that are kept for the checks of contributors, the most numbers stored for
#: them, and how many are tried for one interval end.
_KEPT, _ROOM, _LOOKED = 2000, 20_000_000, 50
#: A cell counts as unbounded beyond this multiple of the table's total.
_BEYOND = 100.0


@dataclasses.dataclass
class _Asked:
    """One end that is asked for, and what is known of it so far."""

    place: int
    side: int
    need: float
    #: How far it goes at most for an outsider and for each contributor.
    outsider: float
    each: Floats
    #: The contributors to check: not those who own the cell, nor those who knew as much before.
    counting: Bools
    #: Contributors whose interval end is known and below the protection level.
    judged: Bools
    enough: bool = True
    #: What stopped the cell: how far it goes at most, and how much less for each contributor.
    stops: list[tuple[float, Floats]] = dataclasses.field(default_factory=list)

    @property
    def short(self) -> Bools:
        """Those who see it go less far than needed, of whom it is open whether they count."""
        return np.asarray(self.counting & ~self.judged & (self.each < self.need))

    @property
    def best(self) -> float:
        """How far the cell goes at most for the best informed of those that count for sure."""
        return min(self.outsider, float(self.each[self.counting & ~self.short].min(initial=np.inf)))

    @property
    def level(self) -> float:
        """How far a cell must go for somebody to need no further question."""
        return max(self.best, self.need) if self.enough else self.best

    def bound(self, outsider: float, each: Floats) -> None:
        """Take in what stopped the cell: how far it goes at most."""
        self.outsider = min(self.outsider, outsider)
        self.enough &= self.outsider >= self.need
        self.each = np.minimum(self.each, each)
        if np.isfinite(outsider):
            self.stops.append((outsider, outsider - each))

    def together(self, left: Bools) -> Bools:
        """Return as many of those left as nothing that stopped the cell so far stops together."""
        if not self.stops:
            return left.copy()
        members = np.flatnonzero(left[:-1])
        less = np.stack([cut[members] for _, cut in self.stops])
        room = np.array([outsider for outsider, _ in self.stops]) - self.level
        weight = (less / np.maximum(room, 1e-12)[:, None]).sum(axis=0)
        chosen = np.zeros(len(left), dtype=bool)
        for at in np.argsort(weight, kind="stable").tolist():
            if (less[:, at] <= room).all():
                room -= less[:, at]
                chosen[members[at]] = True
        if len(members) and not chosen.any():
            chosen[members[np.argmin(weight)]] = True
        chosen[-1] = left[-1]
        return chosen


class Insiders:
    """The contributors to one component, asked for end after end.

    Parameters
    ----------
    cells
        The cells of the component, in order; they are told by their place among them.
    """

    def __init__(
        self,
        cells: Ints,
        model: ExtremeModel,
        views: Views,
        prior: Prior,
    ) -> None:
        self._cells, self._model, self._views, self._prior = cells, model, views, prior
        #: Moves beyond this count as unbounded.
        finite = np.concatenate([model.lower, model.upper])
        finite = np.abs(finite[np.isfinite(finite)])
        self._endless = _BEYOND * max(float(finite.sum()), 1.0) * model.unit
        self._informed = InformedModel(model, *views.together())
        number = model.shared.number
        self._found = np.zeros((min(_KEPT, _ROOM // max(number, 1)) + 1, number))
        self._count = 0

    def keep(self, x: Floats) -> None:
        """Keep a deviation for contributors to judge."""
        if len(x):
            self._found[self._count % len(self._found)] = x
            self._count += 1

    def end(self, place: int, side: int, need: float) -> tuple[float, bool]:
        """Return how far a cell goes in the eyes of the best informed, and whether that is enough.

        Contributors do not count who see it go less far than needed, but knew as much before.
        """
        need *= 1 - TOLERANCE
        if not self._model.shared.sign[place]:
            return 0.0, need <= 0
        strangers, (outsider, each) = self._views.strangers(place), self._views.at_most(place, side)
        nobody = np.zeros(len(strangers), dtype=bool)
        asked = _Asked(place, side, need, outsider, each, strangers, nobody, outsider >= need)
        if asked.level > 0:
            left = self._doubting(asked)
            if left.any():
                self._informed.aim(place, side)
                self._settle(asked, left)
        return max(asked.best, 0.0), asked.enough

    def _nearly(self, end: float) -> float:
        """Return how far is as good as an end."""
        return end - NEAR * max(end, self._model.unit) if np.isfinite(end) else end

    def _doubting(self, asked: _Asked) -> Bools:
        """Return those who can refute every deviation found that goes far enough.

        The last place stands for the outsider, who can refute none.
        """
        views, shared = self._views, self._model.shared
        left = np.append(asked.counting, True)
        kept = self._found[: min(self._count, len(self._found)), shared.column[asked.place]]
        reach = asked.side * shared.sign[asked.place] * self._model.unit * kept
        for which in np.flatnonzero(reach >= self._nearly(asked.level))[: -_LOOKED - 1 : -1]:
            left &= np.append(views.refuting(asked.place, self._found[which]), False)
            if not left.any():
                break
        left[:-1] |= asked.short
        return left

    def _settle(self, asked: _Asked, left: Bools) -> None:
        """Show everybody left that the cell goes as far, or find out for whom it does not."""
        group = np.zeros(len(left), dtype=bool)
        while left.any():
            short = np.flatnonzero(left[:-1] & asked.short)
            if short.size:
                self._judge(asked, left, int(short[0]))
                continue
            group &= left
            x = self._moved(asked, asked.level, group)
            if x is not None:
                left &= ~group & np.append(self._views.refuting(asked.place, x), False)
                group = asked.together(left)
                continue
            level = self._nearly(asked.level)
            asked.bound(*self._bounds(asked))
            if asked.level < level or (left[:-1] & asked.short).any():
                continue
            if group[:-1].sum() > 1:
                fewer = asked.together(left)
                if fewer.sum() >= group.sum():
                    # Rounding can hide the binding constraint; then half of the contributors are asked at a time.
                    fewer = group & (np.cumsum(group) <= group.sum() // 2)
                group = fewer
            else:
                self._apart(asked, left, group)
                group = asked.together(left)

    def _moved(self, asked: _Asked, far: float, group: Bools) -> Floats | None:
        """Look for a deviation that goes as far and that nobody of a group can refute."""
        limits = self._views.limits(asked.place, group[:-1])
        x = self._informed.moved(min(far, self._endless), *limits)
        if x is not None:
            self.keep(x)
        return x

    def _bounds(self, asked: _Asked) -> tuple[float, Floats]:
        """Return how far the cell goes at most for an outsider and for each, by what stopped it."""
        slopes = self._informed.slopes()
        if slopes is None:
            return np.inf, np.full(len(self._views.who), np.inf)
        return self._views.bounds(asked.place, asked.side, slopes)

    def _apart(self, asked: _Asked, left: Bools, group: Bools) -> None:
        """Ask one alone, from the start, where rounding hid what stops the cell."""
        limits = self._views.limits(asked.place, group[:-1])
        end = self._model.alone(asked.place, asked.side, limits)
        if end >= self._nearly(asked.level):
            left &= ~group
            left[-1] = False
        elif group[:-1].any():
            asked.each[group[:-1]] = end
        else:
            asked.bound(end, asked.each)

    def _judge(self, asked: _Asked, left: Bools, who: int) -> None:
        """Ask how far a cell goes for a contributor who sees it go less far than needed.

        It does not count where it knew as much before publication.
        """
        alone = np.zeros(len(left), dtype=bool)
        alone[who], left[who] = True, False
        cell, number = int(self._cells[asked.place]), int(self._views.who[who])
        ceiling = self._prior.ceiling(number, cell, asked.side)
        if ceiling < asked.need and self._reaches(asked, ceiling, alone):
            asked.counting[who] = False
            return
        end = self._alone(asked, alone)
        before = self._prior.reach(number, cell, asked.side)
        if before < asked.need and end >= _as_much(before):
            asked.counting[who] = False
        else:
            asked.each[who], asked.judged[who], asked.enough = end, True, False

    def _reaches(self, asked: _Asked, before: float, alone: Bools) -> bool:
        much = _as_much(before)
        return much <= 0 or self._moved(asked, much, alone) is not None

    def _alone(self, asked: _Asked, alone: Bools) -> float:
        """Return how far a cell goes for one contributor."""
        who = int(np.flatnonzero(alone)[0])
        end = float(asked.each[who])
        while end > 0 and self._moved(asked, end, alone) is None:
            less = float(self._bounds(asked)[1][who])
            if less >= self._nearly(end):
                limits = self._views.limits(asked.place, alone[:-1])
                return self._model.alone(asked.place, asked.side, limits)
            end = less
        return max(end, 0.0)


def _as_much(before: float) -> float:
    """Return how far counts as much as could not be excluded before."""
    return before * (1 - 2 * TOLERANCE) - 1e-9
