"""Laws of partitions: every group has k distinct values that span e, and the cap holds where asked."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

import discreet as dc
from discreet.microdata.permutation.partitions._base import Demand, Integers, Partition, Problem
from discreet.randomness import Randomness
from tests.laws.parameters import examples

DEMANDS = (Demand(2), Demand(3, 5.0), Demand(4, 10.0, cap=True))


def problems(seed: int) -> list[Problem]:
    rng = np.random.default_rng(seed)
    found = []
    for demand in DEMANDS:
        values = rng.integers(0, 40, 120).astype(float)
        quasi = rng.normal(0, 1, (120, 2))
        found.append(Problem.of(values, demand, quasi=quasi, quasi_names=("a", "b")))
    return found


def grouped(partition: Any, problem: Problem) -> list[np.ndarray]:
    labels = partition.groups(problem, rng=Randomness.seeded(1))
    assert labels.shape == problem.classes.shape, f"{partition} loses records"
    assert set(labels) == set(range(int(labels.max()) + 1)), f"{partition} leaves a group empty"
    return [problem.values[problem.classes[labels == g]] for g in range(int(labels.max()) + 1)]


def every_group_is_valid(member: type[Partition]) -> None:
    for partition in examples(member):
        for seed in range(4):
            for problem in problems(seed):
                demand = problem.demand
                for values in grouped(partition, problem):
                    distinct, counts = np.unique(values, return_counts=True)
                    what = f"{partition}, {demand}, seed {seed}: {values}"
                    assert len(distinct) >= demand.k, what
                    assert distinct[-1] - distinct[0] >= demand.e, what
                    assert not demand.cap or counts.max() * demand.k <= len(values), what


def it_splits_where_it_can(member: type[Partition]) -> None:
    for partition in examples(member):
        for problem in problems(9):
            assert len(grouped(partition, problem)) > 1, f"{partition} makes one group of all"


def what_cannot_be_is_refused(member: type[Partition]) -> None:
    for partition in examples(member):
        few = Problem.of(
            np.array([1.0, 1.0, 2.0]), Demand(3), quasi=np.zeros((3, 1)), quasi_names=("a",)
        )
        try:
            partition.groups(few, rng=Randomness.seeded(1))
        except dc.InfeasibleError as error:
            assert error.facts["k"] == 2
        else:
            raise AssertionError(f"{partition} makes groups that cannot be valid")


def the_problem_is_not_touched(member: type[Partition]) -> None:
    for partition in examples(member):
        for problem in problems(10):
            before = problem.values.copy(), problem.classes.copy(), problem.quasi.copy()
            one, two = (partition.groups(problem, rng=Randomness.seeded(2)) for _ in "ab")
            assert np.array_equal(one, two), f"{partition} draws from another source"
            after = problem.values, problem.classes, problem.quasi
            assert all(map(np.array_equal, before, after)), f"{partition} changed its input"


LAWS = (
    every_group_is_valid,
    it_splits_where_it_can,
    what_cannot_be_is_refused,
    the_problem_is_not_touched,
)


@dataclasses.dataclass(frozen=True)
class Runs(Partition):
    """Cuts the sorted records into runs of k, whatever their values."""

    name: ClassVar[str] = "runs"

    def split(self, problem: Problem, *, rng: Randomness) -> Integers:
        labels = np.empty(len(problem.classes), np.int64)
        last = len(labels) // problem.demand.k - 1
        labels[problem.order] = np.minimum(np.arange(len(labels)) // problem.demand.k, last)
        return labels


@dataclasses.dataclass(frozen=True)
class Whole(Partition):
    """Makes one group of all."""

    name: ClassVar[str] = "whole"

    def split(self, problem: Problem, *, rng: Randomness) -> Integers:
        return np.zeros(len(problem.classes), np.int64)


@dataclasses.dataclass(frozen=True)
class Bold(Whole):
    """Does not ask whether a partition exists."""

    name: ClassVar[str] = "bold"

    def groups(self, problem: Problem, *, rng: Randomness | None = None) -> Integers:
        return self.split(problem, rng=rng or Randomness.secure())


@dataclasses.dataclass(frozen=True)
class OwnDraws(Whole):
    """Draws from a source of its own."""

    name: ClassVar[str] = "own-draws"

    def split(self, problem: Problem, *, rng: Randomness) -> Integers:
        return Randomness.secure().integers(0, 2, len(problem.classes))


BROKEN = {
    Runs: every_group_is_valid,
    Whole: it_splits_where_it_can,
    Bold: what_cannot_be_is_refused,
    OwnDraws: the_problem_is_not_touched,
}
