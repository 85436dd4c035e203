"""What every local mechanism offers: encode an answer, estimate from many, say the error."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.randomness import Randomness
from discreet.registry import Member
from discreet.report import Report, Rows

__all__ = ["Estimate", "LocalMechanism", "coin", "odds", "place_of"]

Array = npt.NDArray[Any]
_UNIT = 1 << 62


@dataclasses.dataclass(frozen=True)
class Estimate(Report):
    """What the reports say: an unbiased estimate with its 95 % interval for every quantity."""

    #: Values of the domain, or ("mean",).
    labels: tuple[str, ...]
    estimate: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    #: Standard error by theory, of the randomisation and of the sample.
    standard_error: tuple[float, ...]
    reports: int
    epsilon: float

    def rows(self) -> Rows:
        """One line per quantity."""
        body = zip(
            self.labels, self.estimate, self.lower, self.upper, self.standard_error, strict=True
        )
        return ("value", "estimate", "lower 95 %", "upper 95 %", "standard error"), list(body)


@dataclasses.dataclass(frozen=True)
class LocalMechanism(Member):
    """A way to randomise one's own answer."""

    @property
    @abc.abstractmethod
    def privacy(self) -> float:
        """Return epsilon: how much one report can tell about one answer."""

    @abc.abstractmethod
    def encode(self, answers: Sequence[Any], *, rng: Randomness) -> Array:
        """Randomise answers; one row of the result is one respondent's report."""

    @abc.abstractmethod
    def estimate(self, reports: Array) -> Estimate:
        """Estimate shares or the mean from many reports."""

    def _shares(self, labels: Sequence[str], shares: Array, variance: Array, n: int) -> Estimate:
        """Make the estimate of shares; intervals are normal, cut to where a share can lie."""
        error = np.sqrt(np.maximum(variance, 0.0))
        return Estimate(
            labels=tuple(labels),
            estimate=tuple(float(x) for x in shares),
            lower=tuple(float(x) for x in np.clip(shares - 1.959964 * error, 0, 1)),
            upper=tuple(float(x) for x in np.clip(shares + 1.959964 * error, 0, 1)),
            standard_error=tuple(float(x) for x in error),
            reports=n,
            epsilon=self.privacy,
        )


def coin(probability: float | Array, size: int, rng: Randomness) -> npt.NDArray[np.bool_]:
    """Toss coins that fall true with a probability rounded down to a whole number over 2**62."""
    # Products of a float below 1 with 2**62 are exact, so only the float itself is rounded.
    threshold = np.floor(np.asarray(probability, dtype=np.float64) * _UNIT).astype(np.uint64)
    return (rng.words(size) >> np.uint64(2)) < threshold


def odds(epsilon: float) -> float:
    """Return e**epsilon / (1 + e**epsilon), a hair on the private side of one half.

    >>> round(odds(math.log(3)), 12)
    0.75
    """
    # A few units in the last place cover the rounding of exp and of the division.
    return max(0.5, 1.0 / (1.0 + math.exp(-epsilon)) - 2.0**-50)


def place_of(answers: Sequence[Any], domain: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the place of each answer in the domain; a stranger is an error that does not quote it."""
    index = {value: place for place, value in enumerate(domain)}
    try:
        return np.array([index[str(answer)] for answer in answers], dtype=np.int64)
    except KeyError:
        raise InputError(
            "an answer is not in the domain",
            code="answer-outside-domain",
            hint="declare every possible answer, for example with an 'other'",
        ) from None


def require_reports(reports: Array) -> int:
    """Return how many reports there are; none cannot be estimated from."""
    if len(reports) == 0:
        raise InputError("there are no reports", code="no-reports", hint="collect some first")
    return len(reports)


def bits(answers: Sequence[Any]) -> npt.NDArray[np.bool_]:
    """Return yes/no answers as booleans."""
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    try:
        return np.array([words[str(answer).lower()] for answer in answers], dtype=bool)
    except KeyError:
        raise InputError(
            "an answer is neither yes nor no",
            code="answer-outside-domain",
            hint="write yes/no, true/false or 1/0",
        ) from None
