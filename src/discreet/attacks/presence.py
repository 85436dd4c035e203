"""The presence attack: everybody else is known."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from discreet.attacks._tables import Counts, Publish, Rates, TableAttack, identity
from discreet.dp.hierarchical.basis import Basis
from discreet.dp.hierarchical.measurement import Measurements
from discreet.dp.hierarchical.tree import Spine
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["Presence", "likelihood", "most_right"]


@dataclasses.dataclass(frozen=True)
class Presence(TableAttack):
    """Tell from a table whether one person is in the records, knowing all the others.

    A fair coin decides whether the person is there; the attacker subtracts what is known and
    guesses. Exact counts always give the answer; noise bounds how often anybody is right.

    Examples
    --------
    >>> Presence(runs=50).run(identity, np.array([3, 0, 7]), 1).found
    1.0
    """

    name: ClassVar[str] = "presence"
    reference: ClassVar[str] = "Wasserman and Zhou (2010), A statistical framework for DP, JASA 105"

    runs: int = parameter(200, help="how often the coin is thrown", low=1)

    def run(
        self,
        publish: Publish,
        others: Counts,
        cell: int,
        score: Callable[[Any], float] | None = None,
    ) -> Rates:
        """Attack a way to publish counts.

        Parameters
        ----------
        publish
            What is attacked: counts in, published figures out.
        others
            Counts of everybody else, which the attacker knows.
        cell
            Where the person would be counted.
        score
            What the attacker computes from the publication: above ½ the person is taken to be there.
            By default the published cell without the others. Any: whatever is published.
        """
        rng = Randomness.secure()
        there = rng.uniform(self.runs) < 0.5
        right = np.zeros(self.runs, dtype=bool)
        for number, is_there in enumerate(there):
            counts = others.copy()
            counts[cell] += int(is_there)
            published = publish(counts)
            found = float(published[cell] - others[cell]) if score is None else score(published)
            right[number] = (found > 0.5) == is_there
        share = float(right.mean())
        return Rates(self.name, self.runs, 0, share, share, share >= 0.95, share, 0.5)

    def control(self) -> Rates:
        """Attack exact counts."""
        return self.run(identity, np.array([4, 0, 2, 9]), 1)


def most_right(epsilon: float, delta: float) -> float:
    """Return how often anybody can be right about presence, at most, under (ε, δ)-privacy.

    >>> most_right(0.0, 0.0), round(most_right(1.0, 0.0), 3)
    (0.5, 0.731)
    """
    if epsilon > 700:
        return 1.0
    return min(1.0, (math.exp(epsilon) + delta) / (math.exp(epsilon) + 1))


def likelihood(
    spine: Spine, basis: Basis, others: Counts, cell: int
) -> Callable[[Measurements], float]:
    """Return the best score there is against noisy counts: their likelihood ratio.

    `others` are the counts of everybody else, leaf by leaf; `cell` is the person's place among them.

    >>> from discreet.dp.hierarchical.budget import allocate
    >>> from discreet.dp.hierarchical.measurement import measure
    >>> spine, basis, others = Spine((np.array([0, 0]),)), Basis((2,)), np.array([3, 0, 5, 2])
    >>> budget = allocate(1e6, [{(): 0.5}, {(0,): 0.5}])
    >>> there = measure(spine, basis, (others + [0, 1, 0, 0]).reshape(2, 2), budget)
    >>> round(likelihood(spine, basis, others, 1)(there), 1)
    1.0
    """
    row, column = divmod(cell, basis.cells)
    known, rows = [others.reshape(-1, basis.cells)], [row]
    for level in range(spine.depth - 1, 0, -1):
        known.insert(0, np.asarray(spine.add_up(known[0], level)))
        rows.insert(0, int(spine.parents[level - 1][rows[0]]))
    alone = np.zeros((1, basis.cells), dtype=np.int64)
    alone[0, column] = 1

    def score(measured: Measurements) -> float:
        weight = total = 0.0
        for one in measured.budget.measures:
            place = rows[one.level]
            mine = int(np.asarray(basis.answers(alone, one.query))[0].argmax())
            expected = basis.answers(known[one.level][[place]], one.query)[0, mine]
            seen = measured.noisy[one.level][one.query][place, mine]
            total += float(seen - expected) / one.scale**2
            weight += 1 / one.scale**2
        return total / weight

    return score
