"""k-map: k-anonymity with respect to the population."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from discreet.errors import InputError
from discreet.microdata.classes import Classes, Integers, Numbers
from discreet.microdata.models._base import Booleans, Group, Model
from discreet.registry import parameter


@dataclasses.dataclass(frozen=True)
class KMap(Model):
    """Every released record looks like at least k people of the population.

    The population is a file with the same quasi-identifiers, or is estimated by the sum of the
    sampling weights where the dataset has a weight column.

    Examples
    --------
    >>> model = KMap(10)
    >>> model.satisfied(Classes(np.array([1, 2]), population=np.array([12.0, 9.0])))
    array([ True, False])
    """

    name: ClassVar[str] = "k-map"
    reference: ClassVar[str] = "Sweeney: Computational disclosure control, PhD thesis, MIT, 2001"

    k: int = parameter(5, help="smallest number of people of the population", low=1)
    # Any: a dataset, a frame or a path; the policy file can only give the path.
    population: Any = parameter(
        None, help="file of the population; by default sampling weights", file="read"
    )

    @property
    def promise(self) -> str:
        """The promise in words."""
        return f"every record looks like at least {self.k} people of the population"

    def measure(self, classes: Classes) -> Numbers:
        """Return the number of people in each class."""
        if classes.population is None:
            raise InputError(
                "k-map needs to know the population",
                code="missing-population",
                hint="write KMap(k, population=…) or read the data with weight=…",
            )
        return classes.population

    def defined(self, group: Group) -> bool:
        """At least k people."""
        return group.people >= self.k

    def worst(self, values: Numbers) -> float:
        """Return the smallest number of people."""
        return float(values.min())

    def satisfied(self, classes: Classes) -> Booleans:
        """Return which classes have enough people."""
        return self.measure(classes) >= self.k - 1e-9

    def largest(self, classes: Classes) -> Integers:
        """Return the size of large classes; the parts of a small one are all small."""
        return np.where(self.satisfied(classes), classes.sizes, 0)

    def settings(self) -> dict[str, Any]:
        """Return name and parameters; of the population only where it is, not what is in it."""
        shown = Path(self.population).name if isinstance(self.population, str) else None
        given = "given" if self.population is not None else "weights"
        return {"name": self.name, "k": self.k, "population": shown or given}
