"""Models about one confidential column."""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar

import numpy as np

from discreet.microdata.classes import Classes, Domain, Integers, Numbers
from discreet.microdata.models._base import Booleans, Model, whole
from discreet.registry import parameter

__all__ = ["ConfidentialModel", "DistributionModel"]


@dataclasses.dataclass(frozen=True)
class ConfidentialModel(Model):
    """A promise about the values of one confidential column in each class."""

    column: str = parameter(help="the confidential column")

    @property
    def columns(self) -> tuple[str, ...]:
        """The confidential column."""
        return (self.column,)


@dataclasses.dataclass(frozen=True)
class DistributionModel(ConfidentialModel):
    """A promise that each class looks like the whole file: what it reaches must stay small."""

    compares: ClassVar[bool] = True

    @property
    @abc.abstractmethod
    def limit(self) -> float:
        """The largest value a class may reach."""

    @abc.abstractmethod
    def gap(self, shares: Numbers, domain: Domain) -> Numbers:
        """Return how far each row of shares is from the file's."""

    @abc.abstractmethod
    def most(self, counts: Numbers, domain: Domain) -> Numbers:
        """Return how many records of each class can stay, at most, however it is split."""

    def measure(self, classes: Classes) -> Numbers:
        """Return the distance of each class from the file."""
        domain = classes.cells[self.column].domain
        found = np.zeros(len(classes))
        for block, counts in classes.histograms(self.column):
            shares = counts / counts.sum(axis=1, keepdims=True)
            found[block] = self.gap(shares, domain)
        return found

    def satisfied(self, classes: Classes) -> Booleans:
        """Return which classes are near enough."""
        return self.measure(classes) <= self.limit + 1e-12

    def worst(self, values: Numbers) -> float:
        """Return the largest distance."""
        return float(values.max())

    def largest(self, classes: Classes) -> Integers:
        """Return how many records of each class can stay, at most."""
        domain = classes.cells[self.column].domain
        found = np.zeros(len(classes))
        for block, counts in classes.histograms(self.column):
            found[block] = self.most(counts, domain)
        return whole(found)
