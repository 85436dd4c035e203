"""k-anonymity."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.microdata.classes import Classes, Integers, Numbers
from discreet.microdata.models._base import Booleans, Group, Model
from discreet.registry import parameter


@dataclasses.dataclass(frozen=True)
class KAnonymity(Model):
    """Every person shares the quasi-identifiers of each record with at least k−1 others.

    With `unit=` declared, people are counted and not their records.
    A missing quasi-identifier is a value of its own: records with it form their own class.

    Examples
    --------
    >>> model = KAnonymity(3)
    >>> model.satisfied(Classes(np.array([2, 3, 7])))
    array([False,  True,  True])
    """

    name: ClassVar[str] = "k-anonymity"
    reference: ClassVar[str] = (
        "Samarati and Sweeney: Protecting privacy when disclosing information: k-anonymity and "
        "its enforcement through generalization and suppression, 1998"
    )

    k: int = parameter(5, help="smallest size of a class", low=1)

    @property
    def smallest(self) -> int:
        """The smallest class allowed."""
        return self.k

    @property
    def promise(self) -> str:
        """The promise in words."""
        return f"every class has at least {self.k} people"

    def measure(self, classes: Classes) -> Numbers:
        """Return the number of people in each class."""
        return classes.people.astype(np.float64)

    def defined(self, group: Group) -> bool:
        """At least k records."""
        return len(group.values) >= self.k

    def worst(self, values: Numbers) -> float:
        """Return the smallest size."""
        return float(values.min())

    def satisfied(self, classes: Classes) -> Booleans:
        """Return which classes are large enough."""
        return classes.people >= self.k

    def largest(self, classes: Classes) -> Integers:
        """Return the size of large classes; the parts of a small one are all small."""
        return np.where(classes.people >= self.k, classes.sizes, 0)
