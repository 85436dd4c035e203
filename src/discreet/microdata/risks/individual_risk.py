"""Individual risk: Benedetti and Franconi's probability of re-identification, with weights."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding, RiskMeasure
from discreet.randomness import Randomness

__all__ = ["IndividualRisk", "benedetti_franconi"]

Numbers = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class IndividualRisk(RiskMeasure):
    """Probability that a record is re-identified, given what the weights say of the population.

    For a class with f records whose weights add up to F, the number of people in the population
    class follows a negative binomial distribution, and the risk is the mean of one over it. The
    global risk is the expected number of re-identified records.

    Examples
    --------
    >>> import pandas as pd
    >>> pair = Pair.of(pd.DataFrame({"age": [20, 20, 30]}), keys=["age"], population=300)
    >>> finding = IndividualRisk().measure(pair, rng=Randomness.seeded(1))
    >>> round(float(finding.records[2]), 4), round(finding.facts["expected re-identifications"], 4)
    (0.0465, 0.0658)
    """

    name: ClassVar[str] = "individual-risk"
    reference: ClassVar[str] = "Benedetti and Franconi, NTTS 1998; Franconi and Polettini, PSD 2004"
    needs: ClassVar[str] = "sampling weights or the size of the population"
    scenario: ClassVar[str] = (
        "The intruder has a list of the whole population with the keys, and looks in it for the "
        "people who fit a released record."
    )

    def applies(self, pair: Pair) -> bool:
        """Needs weights or a population size."""
        return super().applies(pair) and pair.weights is not None

    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return the mean risk; the global risk is among the facts."""
        assert pair.weights is not None
        count = pair.people_in(pair.class_of).astype(np.float64)
        people = np.maximum(np.bincount(pair.class_of, pair.weights), count)
        by_class = benedetti_franconi(count, people)
        records = by_class[pair.class_of]
        total = float(records.sum())
        facts = {
            "expected re-identifications": total,
            "highest": float(records.max()),
            "records above 0.1": int((records > 0.1).sum()),
        }
        words = f"{total:,.1f} of {pair.size:,} records are expected to be re-identified"
        return self.finding(float(records.mean()), words, facts, records)


def benedetti_franconi(count: Numbers, people: Numbers) -> Numbers:
    """Return the risk of classes by their sizes in the sample and, estimated, in the population.

    >>> benedetti_franconi(np.array([1.0, 2.0]), np.array([1.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    from scipy.special import hyp2f1

    pairs, place = np.unique(np.stack([count, people]), axis=1, return_inverse=True)
    f, share = pairs[0], pairs[0] / pairs[1]
    # p^f / f · 2F1(f, f; f+1; 1-p), by Euler's transformation p/f · 2F1(1, 1; f+1; 1-p): no power
    # of a small share is formed.
    risk: Numbers = share / f * hyp2f1(1.0, 1.0, f + 1.0, 1.0 - share)
    return risk[place.ravel()]
