"""l-diversity, in its three forms."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import ClassVar

import numpy as np

from discreet.errors import InputError
from discreet.microdata.classes import UNITS, Classes, Domain, Integers, Numbers
from discreet.microdata.models._base import TOLERANCE, Booleans, Group, most_within, whole
from discreet.microdata.models._confidential import ConfidentialModel
from discreet.registry import parameter


@dataclasses.dataclass(frozen=True)
class LDiversity(ConfidentialModel):
    """Every class holds at least l well-represented values of a confidential column.

    *distinct*: l different values; *entropy*: the entropy of the values is at least log l;
    *recursive*: the most frequent value occurs less than c times as often as the l-th most
    frequent and all rarer ones together. A missing value is a value of its own. With `unit=`
    declared a value counts once per person, and l values take at least l people.

    Examples
    --------
    >>> from discreet.microdata.classes import Cells
    >>> domain = Domain("illness", ("asthma", "flu"), np.array([0.4, 0.6]))
    >>> cells = Cells(domain, np.array([0, 1, 1]), np.array([1, 0, 1]), np.array([2, 2, 1]))
    >>> LDiversity("illness", 2).satisfied(Classes(np.array([2, 3]), {"illness": cells}))
    array([False,  True])
    """

    name: ClassVar[str] = "l-diversity"
    reference: ClassVar[str] = (
        "Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam: l-diversity: privacy beyond "
        "k-anonymity, ACM TKDD 1(1), 2007"
    )

    l: float = parameter(2, help="number of well-represented values", low=1)  # noqa: E741
    kind: str = parameter(
        "distinct", help="form of the model", choices=("distinct", "entropy", "recursive")
    )
    c: float = parameter(3.0, help="factor of the recursive form", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind != "entropy" and self.l != int(self.l):
            raise InputError(
                f"l-diversity: l must be a whole number in the {self.kind} form, found {self.l}",
                code="parameter-range",
                hint="only kind='entropy' takes a fraction",
                parameter="l",
            )

    @property
    def smallest(self) -> int:
        """A class with fewer records than l cannot hold l values."""
        return math.ceil(self.l - TOLERANCE)

    @property
    def promise(self) -> str:
        """The promise in words."""
        form = f"({self.c:g},{self.l:g})-diverse" if self.kind == "recursive" else f"{self.l:g}"
        kinds = {
            "distinct": f"at least {form} different values",
            "entropy": f"an effective number of at least {form} values (exponential of entropy)",
            "recursive": f"{form} values",
        }
        return f"every class holds {kinds[self.kind]} of {self.column}"

    def check_domain(self, domain: Domain) -> None:
        """Raise an InputError if the column has fewer than l values in the whole file."""
        if len(domain) < self.l:
            raise InputError(
                f"column {self.column!r} has {len(domain)} different values, so no class can hold "
                f"{self.l:g}",
                code="too-few-values",
                hint=f"ask for l of at most {len(domain)}",
                column=self.column,
                feasible=len(domain),
            )

    def measure(self, classes: Classes) -> Numbers:
        """Return the l that each class reaches; in the recursive form the smallest c, less is better."""
        people = classes.people
        if self.kind == "distinct":
            values = np.minimum(classes.distinct(self.column), people)
            return np.minimum(values, self._others(classes) + 1).astype(np.float64)
        found = np.zeros(len(classes))
        for block, counts in classes.histograms(self.column):
            if self.kind == "recursive":
                found[block] = self._ratio(counts, people[block])
            else:
                found[block] = np.minimum(_effective(counts), _at_most(counts, people[block]))
        if self.kind == "entropy":
            return np.minimum(found, people)
        return np.where(people < self.l, np.inf, found)

    def _others(self, classes: Classes) -> Integers:
        """Return how many people of each class lack its commonest value.

        With one record a person l values leave at least l − 1 such people. Who owns several records
        may have all the values, and everybody else one and the same.
        """
        if UNITS not in classes.cells:
            return classes.people
        cells, most = classes.cells[self.column], np.zeros(len(classes), dtype=np.int64)
        np.maximum.at(most, cells.place, cells.count)
        return classes.people - most

    def _ratio(self, counts: Numbers, people: Integers) -> Numbers:
        ordered = -np.sort(-counts, axis=1)
        first = int(self.l) - 1
        # People with several values are no more people: the others are those without the first ones.
        others = np.maximum(people - ordered[:, :first].sum(axis=1), 0.0)
        tail = np.minimum(ordered[:, first:].sum(axis=1), others)
        with np.errstate(divide="ignore"):
            return np.asarray(ordered[:, 0] / tail)

    def defined(self, group: Group) -> bool:
        """As the three forms of the model are printed."""
        counts = sorted((group.values.count(v) for v in set(group.values)), reverse=True)
        if self.kind == "distinct":
            return len(counts) >= self.l
        if self.kind == "recursive":
            return counts[0] < self.c * sum(counts[int(self.l) - 1 :])
        shares = [count / len(group.values) for count in counts]
        return -math.fsum(q * math.log(q) for q in shares) >= math.log(self.l) - 1e-9

    def worst(self, values: Numbers) -> float:
        """Return the smallest l, or the largest ratio in the recursive form."""
        return float(values.max() if self.kind == "recursive" else values.min())

    def satisfied(self, classes: Classes) -> Booleans:
        """Return which classes are diverse enough."""
        reached = self.measure(classes)
        if self.kind == "recursive":
            return reached < self.c
        return reached >= self.l * (1 - 1e-12)

    def largest(self, classes: Classes) -> Integers:
        """Return how many records of each class can stay, at most."""
        if self.kind == "distinct":
            # Parts may leave a value out that a person has in another part: only these two hold.
            most = np.minimum(classes.distinct(self.column), classes.people)
            return np.where(most >= self.l * (1 - 1e-12), classes.sizes, 0)
        found = np.zeros(len(classes))
        for block, counts in classes.histograms(self.column):
            if self.kind == "entropy":
                top = _largest_share(counts.shape[1], float(self.l))
                found[block] = most_within(counts, np.full(counts.shape[1], top), 1.0)
            else:
                found[block] = self._capped(counts)
        return whole(found)

    def _capped(self, counts: Numbers) -> Numbers:
        """Return how many records stay when every value is cut to the largest allowed height.

        What stays has some greatest count M, so it lies below the counts cut at M; cutting at M
        only helps the tail. M over the tail of the cut counts grows with M, so the largest M for
        which the promise can hold is found by halving the interval.
        """
        ordered = -np.sort(-counts, axis=1)
        low, high = np.zeros(len(counts)), ordered[:, 0].copy()
        place = int(self.l) - 1
        for _ in range(64):
            middle = np.where(high - low > 1, np.ceil((low + high) / 2), high)
            tail = np.minimum(ordered[:, place:], middle[:, None]).sum(axis=1)
            fits = middle < self.c * tail
            low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
            if (low >= high).all():
                break
        return np.asarray(np.minimum(ordered, low[:, None]).sum(axis=1), dtype=np.float64)


def _effective(counts: Numbers) -> Numbers:
    shares = counts / counts.sum(axis=1, keepdims=True)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(np.exp(-(shares * logs).sum(axis=1)), dtype=np.float64)


def _at_most(counts: Numbers, people: Integers) -> Numbers:
    """Return the effective number of values that fits the share of people with the commonest one.

    Entropy is greatest where the other values are equally common. A value that everybody has leaves 1.
    """
    share = np.minimum(counts.max(axis=1, initial=0.0) / np.maximum(people, 1), 1.0)
    rest, others = 1.0 - share, np.maximum((counts > 0).sum(axis=1) - 1, 1)
    own = -share * np.log(share, out=np.zeros_like(share), where=share > 0)
    apart = np.log(rest, out=np.zeros_like(rest), where=rest > 0) - np.log(others)
    return np.asarray(np.exp(own - rest * apart), dtype=np.float64)


@functools.lru_cache(maxsize=256)
def _largest_share(values: int, l: float) -> float:  # noqa: E741
    """Return the largest share of one value among so many for which entropy can reach log l.

    With one value at share p, entropy is greatest when the others are equal.
    """
    if l <= 1 or values < 2:
        return 1.0
    low, high = 1.0 / values, 1.0
    for _ in range(60):
        p = (low + high) / 2
        rest = (1 - p) / (values - 1)
        entropy = -p * math.log(p) - ((1 - p) * math.log(rest) if rest > 0 else 0.0)
        low, high = (p, high) if entropy >= math.log(l) else (low, p)
    return min(1.0, high + 1e-9)
