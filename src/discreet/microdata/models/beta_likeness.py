"""β-likeness: a bound on what a class adds to the belief in each value."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from discreet.microdata.classes import Domain, Numbers
from discreet.microdata.models._base import Group, most_within
from discreet.microdata.models._confidential import DistributionModel
from discreet.registry import parameter


@dataclasses.dataclass(frozen=True)
class BetaLikeness(DistributionModel):
    """In no class is a confidential value relatively more frequent than in the file by over β.

    *basic*: (q−p)/p ≤ β for every value with share p in the file and q in the class; *enhanced*:
    (q−p)/p ≤ min(β, −ln p), which also bounds the frequent values. The measured value of the
    enhanced form is scaled so that β is its limit.

    Examples
    --------
    >>> model = BetaLikeness("illness", 1.0)
    >>> domain = Domain("illness", ("asthma", "flu"), np.array([0.2, 0.8]))
    >>> model.gap(np.array([[0.5, 0.5]]), domain).round(6)
    array([1.5])
    """

    name: ClassVar[str] = "beta-likeness"
    reference: ClassVar[str] = (
        "Cao and Karras: Publishing microdata with a robust privacy guarantee, PVLDB 5(11), 2012"
    )

    beta: float = parameter(1.0, help="largest relative gain of a value", above=0)
    kind: str = parameter("enhanced", help="form of the model", choices=("basic", "enhanced"))

    @property
    def limit(self) -> float:
        """The largest gain allowed."""
        return self.beta

    @property
    def promise(self) -> str:
        """The promise in words."""
        return (
            f"in no class is a value of {self.column} more frequent than in the file by over "
            f"{self.beta:g} times its share ({self.kind})"
        )

    def _gain(self, domain: Domain) -> Numbers:
        if self.kind == "basic":
            return np.full(len(domain), self.beta)
        with np.errstate(divide="ignore"):
            return np.minimum(self.beta, -np.log(domain.shares))

    def gap(self, shares: Numbers, domain: Domain) -> Numbers:
        """Return the largest relative gain in each row."""
        present = domain.shares > 0
        gain = (shares[:, present] - domain.shares[present]) / domain.shares[present]
        allowed = self._gain(domain)[present]
        # A value that is the whole file allows no gain at all, and no class can show one.
        scale = np.divide(self.beta, allowed, out=np.ones_like(allowed), where=allowed > 0)
        found = np.max(np.maximum(gain, 0) * scale, axis=1, initial=0)
        new = (shares[:, ~present] > 0).any(axis=1)
        return np.where(new, np.inf, found)

    def defined(self, group: Group) -> bool:
        """Every value's relative gain is within β, and −ln p in the enhanced form."""
        return all(
            (q - p) / p
            <= (self.beta if self.kind == "basic" else min(self.beta, -math.log(p))) + 1e-9
            for q, p in group.shares()
        )

    def most(self, counts: Numbers, domain: Domain) -> Numbers:
        """Return how many records of each class can stay, at most."""
        caps = domain.shares * (1 + self._gain(domain))
        return most_within(counts, np.where(domain.shares > 0, caps, 0.0) + 1e-12, 1.0)
