"""Population uniqueness: how many sample uniques are unique in the population."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding, RiskMeasure
from discreet.randomness import Randomness

__all__ = ["PopulationUniqueness", "pitman", "slide_negative_binomial", "zayatz"]

Numbers = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class PopulationUniqueness(RiskMeasure):
    """Share of the population that is unique on the keys, estimated from the sample.

    Three models of how large classes are: Pitman's, Zayatz's, and the slide negative binomial
    (SNB). The value is the one that Dankar's rule picks: Zayatz below a sampling fraction of 10 %
    unless SNB is lower, Pitman above. Their spread says how little such estimates know.

    Examples
    --------
    >>> import pandas as pd
    >>> ages = pd.DataFrame({"age": [1, 2, 3, 4, 4, 5, 5, 5, 6, 6, 6, 6]})
    >>> pair = Pair.of(ages, keys=["age"], population=24)
    >>> finding = PopulationUniqueness().measure(pair, rng=Randomness.seeded(1))
    >>> 0 <= finding.value <= 1, sorted(finding.facts)[:3]
    (True, ['Pitman', 'SNB', 'Zayatz'])
    """

    name: ClassVar[str] = "population-uniqueness"
    reference: ClassVar[str] = (
        "Hoshino, JOS 2001; Zayatz 1991; Chen and Keller-McNulty, JOS 1998; Dankar et al. 2012"
    )
    needs: ClassVar[str] = "sampling weights or the size of the population"
    scenario: ClassVar[str] = (
        "The intruder finds a record that nobody else in the file shares, and would like to know "
        "whether anybody else in the population does."
    )

    def applies(self, pair: Pair) -> bool:
        """Needs weights or a population size."""
        return super().applies(pair) and pair.weights is not None

    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return the share of the population estimated to be unique."""
        assert pair.weights is not None
        counts = np.bincount(pair.people_in(pair.class_of)).astype(np.float64)
        sampled = float((np.arange(counts.size) * counts).sum())
        people = max(float(pair.weights.sum()), sampled)
        fraction = sampled / people
        estimates = {
            "Pitman": pitman(counts, people),
            "Zayatz": zayatz(counts, people),
            "SNB": slide_negative_binomial(counts, people),
        }
        rare = min(estimates["Zayatz"], estimates["SNB"] or estimates["Zayatz"])
        uniques = rare if fraction <= 0.1 else estimates["Pitman"]
        value = min(max(uniques / people, 0.0), 1.0)
        facts = {name: min(found / people, 1.0) for name, found in estimates.items()}
        facts |= {
            "sampling fraction": fraction,
            "sample uniques": counts[1] if counts.size > 1 else 0,
        }
        return self.finding(
            value, f"{value:.2%} of the population is estimated to be unique", facts
        )


def zayatz(counts: Numbers, people: float) -> float:
    """Return the estimated number of population uniques: classes as in the sample.

    `counts[i]` is the number of sample classes of size i.
    """
    if counts.size < 2 or counts[1] == 0:
        return 0.0
    sizes = np.arange(counts.size)
    share = min(float((sizes * counts).sum()) / people, 1.0)
    # Odds that a population class of size i shows one record in the sample.
    shows = sizes * share * (1 - share) ** np.maximum(sizes - 1, 0)
    odds = counts[1] * shows[1] / float((counts * shows).sum())
    return float(counts[1] * odds / share)


def pitman(counts: Numbers, people: float) -> float:
    """Return the expected number of population uniques under Pitman's model, by likelihood."""
    from scipy.optimize import minimize
    from scipy.special import gammaln

    sizes = np.flatnonzero(counts)
    sizes = sizes[sizes > 0]
    classes, n = float(counts[sizes].sum()), float((counts[sizes] * sizes).sum())
    if classes == n or counts.size < 2 or counts[1] == 0:
        return people if classes == n and n > 0 else 0.0

    def unlikely(at: Numbers) -> float:
        alpha = 1 / (1 + np.exp(-at[0]))
        theta = np.exp(at[1]) - alpha + 1e-9
        steps = np.arange(1, int(classes))
        grow = np.log(theta + steps * alpha).sum()
        spread = gammaln(theta + n) - gammaln(theta + 1)
        inside = (counts[sizes] * (gammaln(sizes - alpha) - gammaln(1 - alpha))).sum()
        return float(-(grow - spread + inside))

    found = minimize(unlikely, np.array([-1.0, np.log(classes)]), method="Nelder-Mead")
    alpha = 1 / (1 + np.exp(-found.x[0]))
    theta = np.exp(found.x[1]) - alpha + 1e-9
    return float(np.exp(gammaln(theta + 1) - gammaln(theta + alpha)) * people**alpha)


def slide_negative_binomial(counts: Numbers, people: float) -> float:
    """Return the estimated number of population uniques if sizes are 1 + negative binomial.

    Number of classes and the two parameters make the expected population, sample uniques and
    sample pairs what they are. Returns 0 where no such model fits.
    """
    from scipy.optimize import least_squares

    n = float((np.arange(counts.size) * counts).sum())
    ones, twos = (float(counts[i]) if counts.size > i else 0.0 for i in (1, 2))
    if ones == 0 or twos == 0 or n >= people:
        return ones if n >= people else 0.0
    share = n / people
    s = 1 - share

    def expected(at: Numbers) -> tuple[float, float, float, float]:
        classes, alpha, beta = np.exp(at[0]), np.exp(at[1]), 1 / (1 + np.exp(-at[2]))
        base = ((1 - beta) / (1 - beta * s)) ** alpha
        slope = alpha * beta / (1 - beta * s)
        first = base * (1 + s * slope)
        second = base * slope * (2 + s * (alpha + 1) * beta / (1 - beta * s))
        mean = 1 + alpha * beta / (1 - beta)
        return (
            classes * mean,
            classes * share * first,
            classes * share**2 * second / 2,
            classes * (1 - beta) ** alpha,
        )

    def misfit(at: Numbers) -> list[float]:
        found = expected(at)
        return [np.log(f / w) for f, w in zip(found[:3], (people, ones, twos), strict=True)]

    start = np.array([np.log(max(people / 3, 2.0)), 0.0, 0.0])
    found = least_squares(misfit, start, bounds=([0, -12, -30], [np.log(people), 12, 30]))
    return expected(found.x)[3] if found.cost < 1e-6 else 0.0
