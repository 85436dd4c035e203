"""Class sizes: sample uniques, and the prosecutor, journalist and marketer."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.microdata.columns import Places
from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding, RiskMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["ReIdentification"]


@dataclasses.dataclass(frozen=True)
class ReIdentification(RiskMeasure):
    """Risk from the number of people in the classes of records that agree on all keys.

    The prosecutor's risk of a record is one over the size of its class; the marketer's is its mean.
    The journalist's uses the size of the class in the population instead, counted where there is a
    file of it, estimated where there are sampling weights or the population's size.

    Examples
    --------
    >>> import pandas as pd
    >>> pair = Pair.of(pd.DataFrame({"age": [20, 20, 30]}), keys=["age"])
    >>> finding = ReIdentification().measure(pair, rng=Randomness.seeded(1))
    >>> finding.value, finding.facts["sample uniques"], finding.facts["prosecutor, highest"]
    (0.6666666666666666, 1, 1.0)
    """

    name: ClassVar[str] = "re-identification"
    reference: ClassVar[str] = "El Emam, Guide to the De-Identification of Health Data, 2013"
    scenario: ClassVar[str] = (
        "The prosecutor knows that a person is in the file and all of that person's keys, and picks "
        "one of the records that fit. The journalist does not know who is in the file. The marketer "
        "matches everyone and is content with being right on average."
    )

    threshold: float = parameter(0.2, help="risk from which a record counts as at risk", above=0)

    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return the mean prosecutor risk, which is also the marketer's."""
        people = pair.people_in(pair.class_of)
        sizes, place = np.unique(people, return_inverse=True)
        records = np.bincount(place.ravel()[pair.class_of], minlength=sizes.size)
        found = self.of_sizes(sizes, np.bincount(place.ravel(), minlength=sizes.size), records)
        facts = dict(found.facts)
        if pair.people is not None:
            guess = 1.0 / np.maximum(pair.people, 1.0)
            facts |= {
                "journalist, highest": float(guess.max()),
                "journalist, mean": float(guess.mean()),
            }
        return dataclasses.replace(found, facts=facts, records=1.0 / pair.class_size)

    def of_sizes(self, people: Places, classes: Places, records: Places) -> Finding:
        """Return the finding for so many classes, with so many records, of so many people each."""
        risk = 1.0 / people
        total = int(records.sum())
        mean = float((risk * records).sum() / total)
        above = records[risk > self.threshold].sum() / total
        facts = {
            "classes": int(classes.sum()),
            "smallest class": int(people.min()),
            "mean class": float((people * classes).sum() / classes.sum()),
            "sample uniques": int(records[people == 1].sum()),
            "records in classes below 3": int(records[people < 3].sum()),
            "records in classes below 5": int(records[people < 5].sum()),
            "prosecutor, highest": float(risk.max()),
            f"prosecutor, share above {self.threshold:g}": float(above),
            "marketer": mean,
        }
        words = (
            f"{mean:.1%} of records would be named correctly by picking at random in their class; "
            f"{facts['sample uniques']:,} records are alone in theirs"
        )
        return self.finding(mean, words, facts)
