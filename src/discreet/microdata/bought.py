"""What a private file lost, bought: the distance of its tables from the records', with noise.

Let e be the counts of a table in the synthetic file, scaled to the published number of records.
One record more or less changes one true count by one, so it changes the sum of |count − e| by one at
most, and so the mean of such sums over many tables; a whole part keeps that.
"""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np

from discreet.dp.accountant import Accountant, gaussian_event
from discreet.dp.graphical.domain import Clique
from discreet.dp.spending import Spending, concentrated_budget
from discreet.microdata.synthesizers._base import Budget
from discreet.microdata.synthesizers._tables import Tables
from discreet.randomness import Randomness

__all__ = ["Bought", "bought_distances", "with_report"]

#: Tables of two columns looked at, at most; drawn by lot where there are more.
_TABLES = 300


@dataclasses.dataclass(frozen=True)
class Bought:
    """Mean total variation of tables of one and of two columns, and twice the noise's deviation."""

    epsilon: float
    columns: float
    pairs: float | None
    within: float

    def words(self) -> str:
        """Return it as part of a sentence."""
        size, value = (1, self.columns) if self.pairs is None else (2, self.pairs)
        said = "column" if size == 1 else "columns"
        return (
            f"tables of {size} {said} differ by {value:.3f} ± {self.within:.3f} on average, which "
            f"was bought with ε = {self.epsilon:g} of it"
        )


def with_report(spent: Budget, epsilon: float) -> tuple[Budget, float]:
    """Return a budget that holds a report as well, and the ρ of the report."""
    rho = concentrated_budget(float(epsilon), spent.delta)
    events = dict(spent.events)
    events[gaussian_event(rho)] = events.get(gaussian_event(rho), 0) + 1
    both = Accountant("zcdp", spent.delta).epsilon(events)
    return Budget(both, spent.delta, spent.rho + rho, events), rho


def bought_distances(
    true: Tables, made: Tables, *, records: int, epsilon: float, rho: float, rng: Randomness
) -> Bought:
    """Return the mean distances of tables, measured at a cost of ρ.

    Parameters
    ----------
    true, made
        Tables of the original records and of the synthetic file, over the same public codes.
    records
        The published number of original records, which the model estimated with noise.
    """
    spending = Spending(rho)
    width = len(true.codings)
    singles: list[Clique] = [(place,) for place in range(width)]
    pairs: list[Clique] = list(itertools.combinations(range(width), 2))
    if len(pairs) > _TABLES:
        pairs = [pairs[place] for place in np.sort(rng.sample(len(pairs), _TABLES))]
    wanted = [tables for tables in (singles, pairs) if tables]
    share = rho / len(wanted)
    found, within = [], 0.0
    for tables in wanted:
        noisy, deviation = spending.noisy(
            np.array([math.floor(_gap(true, made, tables, records))]), share
        )
        found.append(float(np.clip(noisy[0] / (2 * records), 0, 1)))
        within = max(within, 2 * deviation / (2 * records))
    return Bought(epsilon, found[0], found[1] if len(found) > 1 else None, within)


def _gap(true: Tables, made: Tables, tables: list[Clique], records: int) -> float:
    """Return the mean over tables of the sum of differences between counts."""
    total = 0.0
    for clique in tables:
        drawn = made.counts(clique)
        expected = drawn * (records / max(int(drawn.sum()), 1))
        total += float(np.abs(true.counts(clique) - expected).sum())
    return total / len(tables)
