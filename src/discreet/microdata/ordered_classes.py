"""What columns beside classes tell inside of them: whoever orders a class by them finds its values.

The members of a class are known from a register, and which record is whose is what the class
hides. A column that leaves as it is and rises with a key orders the records, and the order says who
is who. It is no reason to refuse a file, since nearly every column says something: it is told.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.microdata.columns import codes, combined
from discreet.microdata.ordering import Trial, learned, places_of

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset

__all__ = ["Ordered", "ordered_classes"]

Ints = npt.NDArray[np.int64]

#: An order is told if it is right for so many more of the records than blind guessing.
_MORE = 0.1
#: Larger files are not looked at: a verdict takes no time.
MOST_RECORDS = 200_000
#: Records that one column is tried on for one key; fewer where there are many of both.
_RECORDS = (500, 5_000)
_WORK = 400_000


@dataclasses.dataclass(frozen=True)
class Ordered:
    """How often a column, by its order inside the classes, finds the true value of a key.

    Examples
    --------
    >>> Ordered("tax", "pay", 0.481, 0.237).words
    'ordering by tax inside the released classes finds 48% of pay, guessing 24%'
    """

    column: str
    key: str
    found: float
    guessing: float

    @property
    def words(self) -> str:
        """All of it in one sentence."""
        return (
            f"ordering by {self.column} inside the released classes finds {self.found:.0%} of "
            f"{self.key}, guessing {self.guessing:.0%}"
        )


def ordered_classes(
    original: Dataset, released: Dataset, origin: Ints, keys: Sequence[str], others: Sequence[str]
) -> tuple[Ordered, ...]:
    """Return for each key the column that finds most of it, if that is much more than guessing.

    `origin` is for each released record the place of its original; `others` are the columns that
    leave beside the keys.
    """
    if not keys or not others or not len(origin):
        return ()
    after = released.arrow(list(keys))
    label = combined([codes(after.column(name))[0] for name in keys], len(origin))
    unit = original.unit
    before = original.arrow([*keys, *([] if unit is None else [unit])])
    owners = None if unit is None else codes(before.column(unit))[0][origin]
    beside = {name: places_of(released.arrow([name]).column(0)) for name in others}
    many = max(_RECORDS[0], min(_RECORDS[1], _WORK // (len(keys) * len(others))))
    told = []
    for key in keys:
        place = codes(before.column(key))[0][origin]
        rows = _hiding(label, place, many)
        if not len(rows):
            continue
        inside = np.unique(label[rows], return_inverse=True)[1].ravel()
        least = np.full(int(inside.max()) + 1, np.iinfo(np.int64).max)
        np.minimum.at(least, inside, place[rows])
        trials = [
            Trial(rows, inside, own + 1, own.astype(np.float64), is_number=False, owners=owners)
            for own in (place[rows], place[rows] - least[inside])
        ]
        found = {name: _found(trials, values) for name, values in beside.items()}
        best = max(found, key=lambda name: found[name])
        blind = trials[0].baseline
        if found[best] - blind > _MORE and trials[0].is_certain(found[best]):
            told.append(Ordered(best, key, found[best], blind))
    return tuple(sorted(told, key=lambda one: one.guessing - one.found))


def _found(trials: Sequence[Trial], values: npt.NDArray[np.float64]) -> float:
    """Return the success of an order: upwards, downwards, or by what each value meant elsewhere."""
    first, places = trials[0], values[trials[0].rows]
    scores = [places, -places, *(learned(trial, places) for trial in trials)]
    return max(map(first.accuracy, scores))


def _hiding(label: Ints, place: Ints, many: int) -> Ints:
    """Return the records of classes that hide a key: it is known and differs. Some, if many."""
    known = np.flatnonzero(place >= 0)
    pairs = np.unique(np.stack((label[known], place[known])), axis=1)
    several = np.bincount(pairs[0], minlength=int(label.max(initial=-1)) + 1) > 1
    chosen = known[several[label[known]]]
    step = -(-len(chosen) // many)
    return chosen if step < 2 else chosen[label[chosen] % step == 0]
