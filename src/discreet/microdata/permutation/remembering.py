"""Permuted files and what was released before: groups inside joint classes, and the sums they tell.

Whoever knows a victim's class in earlier files looks among the values of those who share it. So the
groups of a new file are made inside the joint classes of earlier ones: then group and joint class are
the same, and k values that span e remain.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.data.facts import ClassFacts, Facts
from discreet.errors import InfeasibleError, RefusedError
from discreet.microdata.columns import is_number
from discreet.microdata.memory import class_sums, earlier_classes, require_sums_safe
from discreet.microdata.permutation.owners import shared_by
from discreet.microdata.permutation.partitions import Demand, Partition, Problem
from discreet.randomness import Randomness

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.ledger.memory import Memory

__all__ = ["Remembered", "grouped_within"]

Integers = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False)
class Remembered:
    """The records of a permuted file, and the group of each; −1 where it was left out."""

    dataset: Dataset
    labels: Integers
    sensitive: str
    keys: tuple[str, ...]
    demand: Demand

    def facts(self, memory: Memory) -> list[Facts]:
        """Return the groups, and the sum of the sensitive numbers in each."""
        members = self.labels[memory.roster.order]
        promise = {"name": "(k, e)-anonymity", "k": self.demand.k, "e": self.demand.e}
        found: list[Facts] = [ClassFacts(self.keys, (self.sensitive,), members, (promise,))]
        rows = self.dataset.arrow([self.sensitive])
        if is_number(rows.column(0).type):
            origin = np.flatnonzero(self.labels >= 0)
            sums = class_sums(
                self.sensitive, self.labels, rows.take(origin), origin, memory, k=self.demand.k
            )
            found.append(sums)
        return found

    def judge(self, memory: Memory) -> None:
        """Refuse groups that earlier files cut into parts with fewer values, and telling sums."""
        earlier = earlier_classes(memory)
        if earlier is not None:
            self._require_joint(earlier)
        require_sums_safe(self.facts(memory), memory)

    def _require_joint(self, earlier: Integers) -> None:
        inside = self.labels >= 0
        column = self.dataset.arrow([self.sensitive]).column(0)
        coded = column.combine_chunks().dictionary_encode()
        values = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)[inside]
        both = np.stack([self.labels[inside], earlier[inside]], axis=1)
        _, joint = np.unique(both, axis=0, return_inverse=True)
        joint = joint.ravel()
        kinds = np.unique(np.stack([joint, values]), axis=1)
        distinct = np.bincount(kinds[0])
        few = int((distinct < self.demand.k).sum())
        narrow = 0
        if self.demand.e > 0:
            amounts = column.cast("float64").to_numpy()[inside]
            low, high = np.full(len(distinct), np.inf), np.full(len(distinct), -np.inf)
            np.minimum.at(low, joint, amounts)
            np.maximum.at(high, joint, amounts)
            narrow = int((high - low < self.demand.e).sum())
        if few or narrow:
            raise RefusedError(
                f"together with earlier files {max(few, narrow):,} joint classes would have fewer "
                f"than {self.demand.k} values or a span below {self.demand.e:g}",
                code="unsafe-together",
                hint="permute with ledger=, which makes groups inside the joint classes",
            )


def grouped_within(
    problem: Problem,
    method: Partition,
    earlier: Integers,
    owners: Integers | None = None,
    *,
    rng: Randomness,
) -> Integers:
    """Return groups that lie inside earlier joint classes, one after another.

    >>> from discreet.microdata.permutation.partitions import Partition
    >>> from discreet.registry import build
    >>> values = Problem(np.arange(4.0), np.array([0, 1, 2, 3], dtype=np.int32), Demand(2))
    >>> within = np.array([0, 1, 0, 1])
    >>> grouped_within(
    ...     values, build(Partition, "sequential"), within, rng=Randomness.seeded(1)
    ... ).tolist()
    [0, 1, 0, 1]
    """
    labels = np.zeros(len(problem.classes), dtype=np.int64)
    start = impossible = 0
    for one in np.unique(earlier):
        here = np.flatnonzero(earlier == one)
        known, places = np.unique(problem.classes[here], return_inverse=True)
        part = dataclasses.replace(
            problem,
            values=problem.values[known],
            classes=places.ravel().astype(np.int32),
            quasi=None if problem.quasi is None else problem.quasi[here],
        )
        try:
            own = method.groups(part, rng=rng)
            if owners is not None:
                own = shared_by(own, owners[here], problem.demand.k)
        except InfeasibleError:
            impossible += 1
            continue
        labels[here] = own + start
        start += int(own.max()) + 1
    if impossible:
        demand = problem.demand
        raise InfeasibleError(
            f"{impossible:,} joint classes of earlier files cannot be grouped: they do not have "
            f"{demand.k} values that span {demand.e:g}",
            code="unsafe-together",
            hint="ask for a smaller k or e, or release with differential privacy",
        )
    return labels
