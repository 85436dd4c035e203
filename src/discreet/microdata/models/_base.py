"""What every privacy model is: a promise about each equivalence class."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.data.hierarchy import Hierarchy
from discreet.errors import InfeasibleError
from discreet.microdata.classes import Classes, Domain, Integers, Numbers
from discreet.microdata.frequency_set import FrequencySet
from discreet.registry import Member
from discreet.report import Report

__all__ = ["Booleans", "Group", "Model", "ModelCheck", "most_within", "require_enough"]

Booleans = npt.NDArray[np.bool_]

#: Slack for sums of shares: far above rounding, far below one record in any file.
TOLERANCE = 1e-12


@dataclasses.dataclass(frozen=True)
class ModelCheck(Report):
    """Whether a file keeps a promise, and how far it is from it.

    Examples
    --------
    >>> ModelCheck("k-anonymity", "k at least 5", False, 3.0, 100, 20, 2, 6).holds
    False
    """

    model: str
    #: What is promised, in words.
    promise: str
    holds: bool
    #: The value that the worst class reaches: smallest k or l, largest t, β or δ.
    value: float
    records: int
    classes: int
    violating_classes: int
    violating_records: int
    #: People in the classes, each counted once per class; None where they were not counted.
    people: int | None = None


@dataclasses.dataclass(frozen=True)
class Group:
    """One class written out record by record, as papers define their models on it."""

    #: The confidential value of each of its records, and of each record of the whole file.
    values: tuple[str, ...]
    file: tuple[str, ...]
    #: How many people of the population look like it.
    people: float = 0.0
    tree: Hierarchy | None = None

    @property
    def order(self) -> tuple[str, ...]:
        """The values of the file: as the hierarchy orders its leaves, or by the alphabet."""
        known = sorted(set(self.file)) if self.tree is None else self.tree.leaves
        return tuple(value for value in known if value in self.file)

    def shares(self) -> list[tuple[float, float]]:
        """Return of every value in order its share in the class and in the file."""
        return [
            (self.values.count(v) / len(self.values), self.file.count(v) / len(self.file))
            for v in self.order
        ]


@dataclasses.dataclass(frozen=True)
class Model(Member):
    """Base of every privacy model.

    Every model here is closed under union: the union of classes that keep the promise keeps it
    too. The search for an optimal generalisation rests on that, through `largest`.
    """

    #: Whether classes are compared with the whole file, suppressed records included.
    compares: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The confidential columns the model looks at."""
        return ()

    @property
    def smallest(self) -> int:
        """The size below which no class can keep the promise."""
        return 1

    @property
    @abc.abstractmethod
    def promise(self) -> str:
        """The promise in words, as reports show it."""

    @abc.abstractmethod
    def measure(self, classes: Classes) -> Numbers:
        """Return what each class reaches: its k, l, t, β or δ."""

    @abc.abstractmethod
    def satisfied(self, classes: Classes) -> Booleans:
        """Return which classes keep the promise."""

    @abc.abstractmethod
    def defined(self, group: Group) -> bool:
        """Return whether a class keeps the promise, by its definition written out plainly.

        Nothing but the laws calls it: `satisfied`, which decides on many classes at once, must
        agree with it.
        """

    @abc.abstractmethod
    def worst(self, values: Numbers) -> float:
        """Return the value of the worst class among those measured."""

    def largest(self, classes: Classes) -> Integers:
        """Return how many records of each class can stay, at most, however it is split further.

        Splitting a class and suppressing some of its parts leaves a subset of its records whose
        parts all keep the promise, so by union the subset keeps it. A class that breaks the
        promise therefore loses at least one record; a model that knows better says so.
        """
        return np.where(self.satisfied(classes), classes.sizes, classes.sizes - 1)

    def check_domain(self, domain: Domain) -> None:
        """Raise an InputError if the model does not fit the values of a confidential column."""

    def check(
        self, data: Any, *, quasi: Sequence[str] | None = None, reference: Any = None
    ) -> ModelCheck:
        """Check a dataset, a release or a frame.

        Parameters
        ----------
        data
            What to check. Any: a dataset, a release, or a frame of any library.
        quasi
            The columns an intruder knows; by default those with that role.
        reference
            The file whose distribution of the confidential column the classes are compared with
            (t-closeness, β-likeness, δ-disclosure); by default the file itself.
        """
        table = FrequencySet.of(data, quasi=quasi, models=(self,), reference=reference)
        return self.judge(table.classes())

    def judge(self, classes: Classes) -> ModelCheck:
        """Check classes that were counted already."""
        satisfied = self.satisfied(classes)
        values = self.measure(classes)
        return ModelCheck(
            self.name,
            self.promise,
            bool(satisfied.all()),
            self.worst(values) if len(values) else float("nan"),
            int(classes.sizes.sum()),
            len(classes),
            int((~satisfied).sum()),
            int(classes.sizes[~satisfied].sum()),
            int(classes.people.sum()),
        )


def require_enough(records: int, models: Sequence[Model], *, word: str = "records") -> None:
    """Say so where a file has fewer records, or people, than one class needs."""
    for model in models:
        if model.smallest > records:
            raise InfeasibleError(
                f"{model.name} needs classes of at least {model.smallest:,} {word} and the file "
                f"has {records:,}",
                code="too-few-records",
                hint=_enough(records, model.name, word),
                feasible=records,
            )


def _enough(records: int, name: str, word: str) -> str:
    if not records:
        return "the file is empty"
    if records == 1:
        return f"nobody can be hidden among one of the {word}: add records, or publish counts"
    return f"ask {name} for classes of at most {records:,}, or add records"


def most_within(counts: Numbers, caps: Numbers, share: float) -> Numbers:
    """Return the largest number of records of each class that fits under caps.

    The largest m for which at least `share`·m records can be chosen with no value taking more
    than m·cap of them: Σ min(count, m·cap) ≥ share·m. The left side is the least, over sets A of
    values, of count(A) + m·cap(not A), so m is at most count(A) / (share − cap(not A)) for every
    A, and the sets that matter are the prefixes in the order of count/cap.

    >>> most_within(np.array([[8.0, 2.0]]), np.array([0.5, 0.5]), 1.0)
    array([4.])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(caps > 0, counts / caps, np.where(counts > 0, np.inf, 0.0))
    order = np.argsort(ratio, axis=1)
    taken = np.cumsum(np.take_along_axis(counts, order, axis=1), axis=1)
    capped = np.cumsum(caps[order], axis=1)
    # With A empty nothing is taken and every value is capped.
    nothing = np.zeros((len(counts), 1))
    taken = np.concatenate((nothing, taken), axis=1)
    rest = caps.sum() - np.concatenate((nothing, capped), axis=1)
    need = share - rest
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.where(need > TOLERANCE, taken / need, np.inf)
    return np.asarray(np.minimum(bound.min(axis=1), counts.sum(axis=1)), dtype=np.float64)


def whole(values: Numbers) -> Integers:
    """Round bounds down to whole records, never below the truth through rounding."""
    return np.asarray(np.floor(values + 1e-6), dtype=np.int64)
