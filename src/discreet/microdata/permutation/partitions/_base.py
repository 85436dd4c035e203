"""What a partition is: groups of records, each with k distinct values that span at least e."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InfeasibleError, InputError
from discreet.randomness import Randomness
from discreet.registry import Member

__all__ = ["Demand", "Floats", "Integers", "Partition", "Problem"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Demand:
    """What every group must have: k distinct values, a span of at least e, and perhaps a cap.

    With `cap` no value makes up more than one k-th of a group, so that k bounds a probability.
    """

    k: int
    e: float = 0.0
    cap: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 2:
            raise InputError(
                f"k must be a whole number of at least 2, found {self.k!r}",
                code="parameter-range",
                hint="a group with one value hides nothing; write k=2 or more",
                parameter="k",
            )
        if not 0 <= self.e < float("inf"):  # also refuses not-a-number
            raise InputError(
                f"e must be a finite number of at least 0, found {self.e!r}",
                code="parameter-range",
                hint="e is the smallest span of the values in a group",
                parameter="e",
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """The sensitive values as the partitions see them, and the demand.

    Parameters
    ----------
    values
        The distinct values, ascending.
    classes
        For each record the place of its value in `values`.
    demand
        What every group must have.
    quasi
        For each record its place on every quasi-identifier, one column each, as numbers in the
        order of the values; only for partitions that look at them.
    quasi_names
        The names of those columns.
    """

    values: Floats
    classes: npt.NDArray[np.int32]
    demand: Demand
    quasi: Floats | None = None
    quasi_names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        sensitive: Any,
        demand: Demand,
        *,
        quasi: Any = None,
        quasi_names: tuple[str, ...] = (),
    ) -> Problem:
        """Make a problem from one sensitive value per record.

        Any: whatever numpy takes for an array.
        """
        values, classes = np.unique(np.asarray(sensitive), return_inverse=True)
        coordinates = None if quasi is None else np.asarray(quasi, dtype=np.float64)
        if coordinates is not None and coordinates.ndim == 1:
            coordinates = coordinates[:, None]
        return cls(
            values.astype(np.float64),
            classes.astype(np.int32),
            demand,
            coordinates,
            quasi_names,
        )

    @property
    def counts(self) -> Integers:
        """How many records have each value."""
        return np.bincount(self.classes, minlength=len(self.values)).astype(np.int64)

    @property
    def order(self) -> Integers:
        """The records in ascending order of their values."""
        return np.argsort(self.classes, kind="stable").astype(np.int64, copy=False)

    def require_feasible(self) -> None:
        """Say which demand fails if no partition exists: one exists iff the whole table is valid."""
        k, e, records = self.demand.k, self.demand.e, len(self.classes)
        distinct = len(self.values)
        span = float(self.values[-1] - self.values[0]) if distinct else 0.0
        if distinct < k or span < e:
            failed = [
                *([f"k={k}, but only {distinct} distinct values exist"] if distinct < k else []),
                *([f"e={e:g}, but all values lie within {span:g}"] if span < e else []),
            ]
            raise InfeasibleError(
                "no partition can be valid: " + " and ".join(failed),
                code="permutation-infeasible",
                hint=f"at most k={distinct} and e={span:g} would be feasible",
                k=distinct,
                e=span,
            )
        if self.demand.cap:
            most = int(self.counts.max())
            if most * k > records:
                raise InfeasibleError(
                    f"the cap needs no value in more than 1/{k} of the records, "
                    f"but one is in {most / records:.1%} of them",
                    code="permutation-cap-infeasible",
                    hint=f"at most k={records // most} would be feasible with the cap",
                    k=records // most,
                )


@dataclasses.dataclass(frozen=True)
class Partition(Member):
    """Base of every partition."""

    #: Whether it needs `Problem.quasi`.
    looks_at_quasi: ClassVar[bool] = False

    def groups(self, problem: Problem, *, rng: Randomness | None = None) -> Integers:
        """Return the group of each record, numbered from 0 in the order of the partition."""
        problem.require_feasible()
        labels = self.split(problem, rng=rng or Randomness.secure())
        if problem.demand.cap:
            from discreet.microdata.permutation.partitions import _kernels

            order = np.argsort(labels, kind="stable")
            labels = _kernels.merge_to_cap(
                labels, order, problem.classes, len(problem.values), problem.demand.k
            )
        return labels

    @abc.abstractmethod
    def split(self, problem: Problem, *, rng: Randomness) -> Integers:
        """Return the group of each record of a feasible problem, without regard to the cap."""


def labels_from_starts(starts: Integers, order: Integers) -> Integers:
    """Return the group of each record, where groups are runs of `order` that begin at `starts`."""
    sizes = np.diff(np.append(starts, len(order)))
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = np.repeat(np.arange(len(starts)), sizes)
    return labels
