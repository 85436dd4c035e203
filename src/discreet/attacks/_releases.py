"""What attacks on permuted releases share: they see the published rows, and guess every record."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.attacks._base import Attack, Attacked, AttackReport

__all__ = ["Permuted", "Recovered", "ReleaseAttack"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Recovered(AttackReport):
    """What an attack on a release found out about everybody in it."""

    #: Share of the records whose exact value was guessed, and by guessing blindly.
    share: float = 0.0
    blind: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class Permuted:
    """The published rows as an attacker reads them: numbers, with texts in the order of the alphabet."""

    columns: Mapping[str, Floats]
    group: Integers
    values: Floats

    @classmethod
    def of(cls, rows: Any, *, sensitive: str, group: str = "group_id") -> Permuted:
        """Read a frame. Any: of whatever library has columns by name."""
        names = [str(name) for name in getattr(rows, "column_names", None) or rows.columns]
        others = [name for name in names if name not in (sensitive, group)]
        _, place = np.unique(np.asarray(rows[group]), return_inverse=True)
        return cls(
            {name: _numbers(rows[name]) for name in others},
            place.ravel().astype(np.int64),
            _numbers(rows[sensitive]),
        )

    def means(self, values: Floats) -> Floats:
        """Return for each record the mean of its group: all that a permutation leaves of a value."""
        total = np.bincount(self.group, values)
        found: Floats = (total / np.bincount(self.group))[self.group]
        return found

    def ordered(self, score: Floats) -> Floats:
        """Return the values as they fall to the records if each group has the order of a score."""
        guess = np.empty(len(self.values))
        guess[np.lexsort((score, self.group))] = self.values[np.lexsort((self.values, self.group))]
        return guess

    def blind(self) -> Floats:
        """Return the commonest value of each record's group."""
        guess = np.empty(len(self.values))
        for place in range(int(self.group.max()) + 1):
            here = self.group == place
            found, count = np.unique(self.values[here], return_counts=True)
            guess[here] = found[count.argmax()]
        return guess


def _numbers(column: Any) -> Floats:
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        return np.where(np.isnan(numbers), np.nanmin(numbers, initial=0.0) - 1.0, numbers)
    return np.unique(values.astype(str), return_inverse=True)[1].ravel().astype(np.float64)


@dataclasses.dataclass(frozen=True)
class ReleaseAttack(Attack):
    """An attack on a permuted release: a guess for every record, from the published rows alone."""

    attacks: ClassVar[Attacked] = "releases"

    @abc.abstractmethod
    def guesses(self, released: Permuted) -> Floats:
        """Return what the attacker takes for the value of each record."""

    def run(
        self, rows: Any, truth: Sequence[float], *, sensitive: str, group: str = "group_id"
    ) -> Recovered:
        """Attack published rows; the truth, row by row, only says how many guesses are right.

        It succeeds where it finds more than half of what blind guessing leaves. Any: a frame.
        """
        released = Permuted.of(rows, sensitive=sensitive, group=group)
        true = np.asarray(truth, dtype=np.float64)
        right = self.guesses(released) == true
        blind = float((released.blind() == true).mean())
        share = float(right.mean())
        first = float(self.guesses(released)[0])
        done = share - blind > (1 - blind) / 2
        return Recovered(self.name, len(true), 0, first, first, done, share, blind)

    def control(self) -> Recovered:
        """Attack a release in which a tax follows the permuted salary."""
        rows, truth = naive_release()
        return self.run(rows, truth, sensitive="salary")


def naive_release() -> tuple[dict[str, Any], list[float]]:
    """Return 40 people in groups of five neighbouring salaries, with a tax of 30 percent."""
    salary = 20_000 + 700.0 * np.arange(40)
    group = np.arange(40) // 5
    # Inside each group salaries changed hands: everybody has the next one's.
    told = np.concatenate([np.roll(part, 1) for part in salary.reshape(8, 5)])
    rows = {
        "age": 20 + (np.arange(40) * 17) % 40,
        "tax": 0.3 * salary,
        "group_id": group,
        "salary": told,
    }
    return _Columns(rows), salary.tolist()


class _Columns(dict[str, Any]):
    """Columns by name, as a frame has them."""

    @property
    def columns(self) -> list[str]:
        return list(self)
