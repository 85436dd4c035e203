"""The membership attack on published tables: who was counted."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from discreet.attacks._tables import Counts, Publish, Rates, TableAttack, identity
from discreet.attacks.reconstruction import segregated_people

__all__ = ["MembershipInTables"]


@dataclasses.dataclass(frozen=True)
class MembershipInTables(TableAttack):
    """Tell from the tables of all places who was counted, knowing what each person is like.

    A person's score is how much more of their own cell is published in their place than in the
    whole country, where places are alike. Somebody is taken to be counted if their score is
    among the upper half of everybody's, so that guessing is right half of the time.

    Examples
    --------
    >>> nothing = MembershipInTables().run(np.zeros_like, *segregated_people(1))
    >>> MembershipInTables().control().found > 0.9, nothing.found
    (True, 0.5)
    """

    name: ClassVar[str] = "membership-in-tables"
    reference: ClassVar[str] = (
        "Homer et al. (2008), Resolving individuals contributing trace amounts of DNA, PLoS Genetics"
    )

    def run(self, publish: Publish, people: Counts, left_out: Counts) -> Rates:
        """Attack a way to publish counts.

        Parameters
        ----------
        publish
            What is attacked: counts (places, cells) in, published counts of that shape out.
        people, left_out
            Counts of the records, and of people left out of them by lot: (places, cells). Those who
            are alone in their cell of both together are asked about.
        """
        published = np.asarray(publish(people), dtype=np.float64)
        alone = people + left_out == 1
        score = (published - _expected(published))[alone]
        there = people[alone] == 1
        # Equal scores are told apart by nothing: each counts as half inside.
        middle = np.median(score)
        said = np.where(score > middle, 1.0, np.where(score < middle, 0.0, 0.5))
        right = float(np.where(there, said, 1 - said).mean())
        found, blind = float(said[there].mean()), float(said[~there].mean())
        return Rates(self.name, len(score), 0, right, right, right >= 0.8, found, blind)

    def control(self) -> Rates:
        """Attack exact counts of small places."""
        return self.run(identity, *segregated_people(1))


def _expected(published: Any) -> Any:
    """Return what each cell would be if all places were alike. Any: an array of numbers."""
    total = max(float(published.sum()), 1.0)
    return published.sum(axis=1, keepdims=True) * published.sum(axis=0, keepdims=True) / total
