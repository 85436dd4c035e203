"""δ-disclosure privacy: a bound on the change of belief in either direction."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from discreet.microdata.classes import Classes, Domain, Numbers
from discreet.microdata.models._base import Booleans, Group, most_within
from discreet.microdata.models._confidential import DistributionModel
from discreet.registry import parameter


@dataclasses.dataclass(frozen=True)
class DeltaDisclosure(DistributionModel):
    """In every class each confidential value is about as frequent as in the file: |ln(q/p)| < δ.

    Every value of the file must occur in every class, which makes it the strictest of the models.

    Examples
    --------
    >>> model = DeltaDisclosure("illness", 1.0)
    >>> domain = Domain("illness", ("asthma", "flu"), np.array([0.2, 0.8]))
    >>> model.gap(np.array([[0.2, 0.8], [0.0, 1.0]]), domain)
    array([ 0., inf])
    """

    name: ClassVar[str] = "delta-disclosure"
    reference: ClassVar[str] = (
        "Brickell and Shmatikov: The cost of privacy: destruction of data-mining utility in "
        "anonymized data publishing, KDD 2008"
    )

    delta: float = parameter(1.0, help="bound on |ln(q/p)|", above=0)

    @property
    def limit(self) -> float:
        """The bound, which must not be reached."""
        return self.delta

    @property
    def promise(self) -> str:
        """The promise in words."""
        return f"in every class |ln(q/p)| < {self.delta:g} for every value of {self.column}"

    def gap(self, shares: Numbers, domain: Domain) -> Numbers:
        """Return the largest |ln(q/p)| in each row."""
        present = domain.shares > 0
        with np.errstate(divide="ignore"):
            change = np.abs(np.log(shares[:, present] / domain.shares[present]))
        new = (shares[:, ~present] > 0).any(axis=1)
        return np.where(new, np.inf, change.max(axis=1, initial=0))

    def satisfied(self, classes: Classes) -> Booleans:
        """Return which classes stay strictly below the bound."""
        return self.measure(classes) < self.delta

    def defined(self, group: Group) -> bool:
        """Every value occurs, and |ln(q/p)| < δ."""
        return all(q > 0 and abs(math.log(q / p)) < self.delta for q, p in group.shares())

    def most(self, counts: Numbers, domain: Domain) -> Numbers:
        """Return how many records of each class can stay, at most."""
        caps = domain.shares * math.exp(min(self.delta, 700.0))
        kept = most_within(counts, caps + 1e-12, 1.0)
        # A value that occurs nowhere in the class can occur in none of its parts.
        missing = ((counts == 0) & (domain.shares > 0)).any(axis=1)
        return np.where(missing, 0.0, kept)
