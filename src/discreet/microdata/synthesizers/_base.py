"""What every synthesizer is: a dataset is learned from once, then any number of files is drawn.

`fit` is all that sees the records. A method with a formal promise draws its noise there and
nowhere else, so that every file drawn afterwards costs nothing more.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from discreet.errors import InputError
from discreet.microdata.columns import Places, codes
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import Member

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = [
    "Budget",
    "Fitted",
    "Kind",
    "Synthesizer",
    "owners",
    "released_columns",
    "require_pairs",
]

#: Which rule combines several synthetic files: see `discreet.microdata.combining`.
Kind = Literal["simple", "proper", "fully", "partially", "none"]


#: Pairs of columns that a method may look at: those of a thousand columns.
_MOST_PAIRS = 500_000


class Fitted(abc.ABC):
    """What a synthesizer learned: it draws files without looking at the records again."""

    #: Facts about the fit that may leave, for the evidence.
    notes: dict[str, object]
    #: How many records a file has where nobody says: as the original, or as noise says it has.
    size: int

    @abc.abstractmethod
    def draw(self, n: int, *, rng: Randomness) -> pa.Table:
        """Return n records."""

    def again(self, method: Synthesizer, dataset: Dataset, *, rng: Randomness) -> Fitted:
        """Fit the method that gave this to other records, its settings as they were found for these.

        What a method chooses by the number of records, or by what they are like, would else be
        another thing for half of them.
        """
        return method.fit(dataset, rng=rng)


@dataclasses.dataclass(frozen=True)
class Budget:
    """What a fit costs: the promise to one unit, and the events that a ledger counts."""

    epsilon: float
    delta: float
    rho: float
    events: dict[str, int]


@dataclasses.dataclass(frozen=True)
class Synthesizer(Member):
    """Base of every synthesizer."""

    #: What protects people: a formal promise, measured attacks, or that only statistics are used.
    protection: ClassVar[Literal["dp", "measured", "statistics"]] = "measured"
    #: Whether every released record stands in the place of one original record.
    corresponds: ClassVar[bool] = False
    #: Whether the same `rng` gives the same records; OpenDP draws from a source of its own.
    seedable: ClassVar[bool] = True

    @property
    def inference(self) -> Kind:
        """Which rule combines estimates from several files."""
        return "simple"

    @property
    @abc.abstractmethod
    def keeps(self) -> str:
        """What of the original the records keep, in words."""

    @property
    def promise(self) -> str:
        """What protects people, in one sentence."""
        return (
            "no formal promise: what an intruder gains is measured by attacks, and only those "
            "attacks were tried"
        )

    @property
    def sets(self) -> int | None:
        """How many files the method itself asks for; None leaves it to the caller."""
        return None

    def among(self, files: int) -> Synthesizer:
        """Return the method for each of several files that leave together."""
        del files
        return self

    def untouched(self, dataset: Dataset) -> tuple[str, ...]:
        """Return the columns that leave as they are."""
        return ()

    def budget(self) -> Budget | None:
        """Return what a fit costs, where it has a formal promise."""
        return None

    def check(self, dataset: Dataset) -> None:
        """Raise an InputError if the method does not fit the columns; looks at no value."""
        if not released_columns(dataset):
            raise InputError(
                "every column is an identifier, so nothing is left to synthesise",
                code="nothing-to-release",
                hint="correct the roles",
            )

    def prepare(self, dataset: Dataset) -> None:
        """Raise an InputError if the records themselves do not fit; a private method is charged first."""

    @abc.abstractmethod
    def fit(self, dataset: Dataset, *, rng: Randomness, progress: Progress = silent) -> Fitted:
        """Learn from the records."""


def released_columns(dataset: Dataset) -> tuple[str, ...]:
    """Return the columns that a synthetic file has: all but identifiers."""
    hidden = {*dataset.schema.identifiers, dataset.unit}
    return tuple(name for name in dataset.columns if name not in hidden)


def require_pairs(columns: int, pairs: int) -> None:
    """Raise an InputError where a method would have to look at too many pairs of columns."""
    if pairs > _MOST_PAIRS:
        raise InputError(
            f"{columns:,} columns make {pairs:,} pairs, and each would be looked at: that takes hours",
            code="too-many-columns",
            hint="leave columns out, such as by the role identifier, or synthesise parts of the file; "
            "cart and partially-synthetic look at fewer with predictors={…}",
        )


def owners(dataset: Dataset) -> Places:
    """Return for each record the number of the unit that owns it; its own where no unit is declared."""
    if dataset.unit is None:
        return np.arange(len(dataset))
    places, _ = codes(dataset.arrow([dataset.unit]).column(0))
    # A record without an owner counts as one of its own.
    return np.where(places < 0, places.max(initial=0) + 1 + np.arange(places.size), places)
