"""What attackers can do against a permuted release: insiders, and learning from the release.

Both are measured on the true values when a release is made; the figures are part of its evidence.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt

from discreet.microdata.ordering import Ordering
from discreet.microdata.permutation.groups import Groups
from discreet.randomness import Randomness
from discreet.report import Report, Rows

__all__ = ["DeFinetti", "Insiders", "PermutationRisk", "definetti", "insiders", "sampled"]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: More records than this are sampled, by whole groups.
_RECORDS = 20_000
_BINS = 64
#: Share of the attackers who find no more than the reported risk says.
_CONFIDENCE = 0.95
_ROUNDS = 12
#: Records that the common distribution of a code counts for in every bin.
_PRIOR = 20.0
#: Records that a bin should hold, so that there is something to learn from.
_PER_BIN = 50


@dataclasses.dataclass(frozen=True)
class Insiders(Report):
    """What is left of a group's values once some of its members know and share their own."""

    #: Insiders per group, 1 … k−1.
    insiders: tuple[int, ...]
    #: Least number of distinct values left to the others, over all groups and choices of insiders.
    distinct: tuple[int, ...]
    #: Least range left to the others.
    span: tuple[float, ...]
    #: Share of all records whose value is then known, if every group had such insiders.
    exposed: tuple[float, ...]

    def rows(self) -> Rows:
        """One line per number of insiders."""
        header = ("insiders", "distinct values left", "range left", "records exposed")
        return header, list(zip(self.insiders, self.distinct, self.span, self.exposed, strict=True))


@dataclasses.dataclass(frozen=True)
class DeFinetti(Report):
    """What a learning attack gains: how often it names the value (bin) of a record.

    `baseline` guesses the commonest value of the group, which the release itself shows.
    """

    records: int
    accuracy: float
    baseline: float
    #: Mean distance of the guess from the truth, and of the group's mean from the truth.
    error: float | None
    baseline_error: float | None

    @property
    def advantage(self) -> float:
        """How much more often the attack is right than the baseline."""
        return self.accuracy - self.baseline


@dataclasses.dataclass(frozen=True)
class PermutationRisk(Report):
    """The risk of a permuted release."""

    #: Largest share of one value in a group: the chance of a blind guess.
    worst_share: float
    insiders: Insiders
    definetti: DeFinetti | None
    #: What ordering the groups by released columns gives away.
    ordering: Ordering | None = None

    @property
    def exact(self) -> float:
        """Share of the people whose exact value nineteen of twenty attackers do not exceed.

        Equal scores are ordered by lot, so that the number of values found varies. Inside each group
        its variance is at most its mean, and groups are drawn one by one; a Poisson number of that
        mean varies at least as much, and this is its upper bound at 95 %.
        """
        if self.ordering is None:
            return 0.0
        from scipy.special import pdtrik

        records = max(self.ordering.records, 1)
        mean = max(self.ordering.accuracy, self.ordering.baseline) * records
        return min(1.0, math.ceil(pdtrik(_CONFIDENCE, mean)) / records) if mean else 0.0

    def rows(self) -> Rows:
        """One line per figure."""
        last = len(self.insiders.insiders) - 1
        body: list[tuple[str, object]] = [
            ("largest share of one value in a group", self.worst_share)
        ]
        if last >= 0:
            count = self.insiders.insiders[last]
            body += [
                (f"distinct values left after {count} insiders", self.insiders.distinct[last]),
                (f"records exposed by {count} insiders per group", self.insiders.exposed[last]),
            ]
        if self.ordering is not None and self.ordering.found:
            body += [
                (f"exact values found by {self.ordering.strongest}", self.ordering.accuracy),
                ("exact values found by guessing", self.ordering.baseline),
                ("exact values found by 19 of 20 attackers, at most", self.exact),
            ]
        if self.definetti is not None:
            body += [
                ("learning attack is right", self.definetti.accuracy),
                ("guessing the commonest value is right", self.definetti.baseline),
            ]
        return ("", ""), body


def insiders(groups: Groups, k: int) -> Insiders:
    """Return what the worst k−1 members of each group can take away.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.microdata.permutation.amounts import Amounts
    >>> amounts = Amounts.of(pa.array([1, 5, 9, 1]), name="pay")
    >>> print(insiders(Groups.of(amounts, np.zeros(4, dtype=np.int64)), 3))
    insiders  distinct values left  range left  records exposed
           1                     2           4                0
           2                     1           0              0.5
    """
    from discreet.microdata.permutation import _risk_passes

    numbers = tuple(range(1, min(k, 21)))
    classes = groups.amounts.classes[groups.ranked]
    distinct, span, exposed = _risk_passes.insiders(
        classes, groups.starts, groups.amounts.distinct, len(numbers)
    )
    return Insiders(
        numbers,
        tuple(int(x) for x in distinct),
        tuple(float(x) for x in span) if groups.amounts.is_number else tuple(0.0 for _ in numbers),
        tuple(float(x) / len(classes) for x in exposed),
    )


def definetti(groups: Groups, quasi: Integers, chosen: Integers) -> DeFinetti:
    """Learn how quasi-identifiers and values go together from the groups alone, and guess.

    Naive Bayes as Kifer used it, fitted by expectation–maximisation: who has which of the group's
    values is unknown; each round weighs the possibilities by what the rows of all groups say about
    values and quasi-identifiers, keeping in each group as many of each value as it has.

    Parameters
    ----------
    groups
        The partition, with the true values.
    quasi
        One column of small codes per released column, one row per record, in the records' order.
    chosen
        The groups to look at.
    """
    rows = np.concatenate([groups.order[groups.starts[g] : groups.starts[g + 1]] for g in chosen])
    label = np.repeat(np.arange(len(chosen)), groups.sizes[chosen])
    classes = groups.amounts.classes[rows]
    values = groups.amounts.distinct[classes]
    bins, bin_count = _binned(values)
    mass = np.zeros((len(chosen), bin_count))
    np.add.at(mass, (label, bins), 1.0)
    belief = _learn(label, quasi[rows], mass)
    right = belief.argmax(axis=1) == bins
    baseline = mass[label].argmax(axis=1) == bins
    error = base_error = None
    if groups.amounts.is_number:
        # Within a group, a bin stands for the mean of its values there.
        total = np.zeros_like(mass)
        np.add.at(total, (label, bins), values)
        centre = np.divide(total, mass, out=np.zeros_like(total), where=mass > 0)
        guess = (belief * centre[label]).sum(axis=1)
        mean = (total.sum(axis=1) / mass.sum(axis=1))[label]
        error = float(np.abs(guess - values).mean())
        base_error = float(np.abs(mean - values).mean())
    return DeFinetti(len(rows), float(right.mean()), float(baseline.mean()), error, base_error)


def sampled(groups: Groups, rng: Randomness) -> Integers:
    """Return the groups that attacks are tried on: all, or some where there are many records."""
    order = rng.permutation(len(groups))
    within = np.cumsum(groups.sizes[order]) <= _RECORDS
    within[0] = True
    return np.sort(order[within])


def _binned(values: Floats) -> tuple[Integers, int]:
    distinct, place = np.unique(values, return_inverse=True)
    most = max(min(_BINS, len(values) // _PER_BIN), 2)
    if len(distinct) <= most:
        return place, len(distinct)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, most + 1)[1:-1]))
    return np.searchsorted(edges, values, side="right"), len(edges) + 1


def _learn(label: Integers, quasi: Integers, mass: Floats) -> Floats:
    """Return for each record how likely each bin is, given its group's bins and its codes."""
    size = mass.sum(axis=1)
    belief = (mass / size[:, None])[label]
    for _ in range(_ROUNDS):
        weight = np.ones_like(belief)
        for column in quasi.T:
            seen = np.zeros((int(column.max()) + 1, belief.shape[1]))
            np.add.at(seen, column, belief)
            # Where a bin has few records, codes are as likely there as anywhere: no false certainty.
            common = seen.sum(axis=1, keepdims=True) / seen.sum()
            likely = (seen + _PRIOR * common) / (seen.sum(axis=0) + _PRIOR)
            weight *= likely[column]
            weight /= np.maximum(weight.max(axis=1, keepdims=True), 1e-300)
        belief = weight * (mass > 0)[label]
        for _ in range(4):  # as many of each bin as the group has, and one bin per record
            belief /= np.maximum(belief.sum(axis=1, keepdims=True), 1e-300)
            held = np.zeros_like(mass)
            np.add.at(held, label, belief)
            belief *= np.divide(mass, held, out=np.zeros_like(mass), where=held > 0)[label]
        belief /= np.maximum(belief.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(belief)
