"""What every local mechanism offers: encode an answer, estimate from many, say the error."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.dp.caution import caution
from discreet.dp.local._chances import UNIT
from discreet.errors import InputError
from discreet.randomness import Randomness
from discreet.registry import Member
from discreet.report import Report, Rows

__all__ = ["Estimate", "LocalMechanism", "binomial_interval", "place_of"]

Array = npt.NDArray[Any]


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
    #: A warning in words where epsilon is large.
    caution: str = ""

    def rows(self) -> Rows:
        """One line per quantity."""
        body = zip(
            self.labels, self.estimate, self.lower, self.upper, self.standard_error, strict=True
        )
        return ("value", "estimate", "lower 95 %", "upper 95 %", "standard error"), list(body)


@dataclasses.dataclass(frozen=True)
class LocalMechanism(Member):
    """A way to randomise one's own answer."""

    #: Parameters that are drawn for each collection where they are left out, and told with it.
    drawn: ClassVar[tuple[str, ...]] = ()

    @property
    @abc.abstractmethod
    def privacy(self) -> float:
        """Return epsilon: how much one report can tell about one answer."""

    @property
    def caution(self) -> str:
        """What somebody who chooses these settings has to know; empty where epsilon is small."""
        return caution(self.privacy)

    @abc.abstractmethod
    def encode(self, answers: Sequence[Any], *, rng: Randomness) -> Array:
        """Randomise answers; one row of the result is one respondent's report."""

    @abc.abstractmethod
    def estimate(self, reports: Array) -> Estimate:
        """Estimate shares or the mean from many reports."""

    def check(self, reports: Array) -> Array:
        """Return reports that this mechanism can have made; anything else is an InputError.

        A report that no respondent could send shifts every estimate, so it is never skipped.
        """
        given = np.asarray(reports)
        if given.size == 0:
            raise InputError("there are no reports", code="no-reports", hint="collect some first")
        if given.dtype != np.bool_ and not np.issubdtype(given.dtype, np.integer):
            raise malformed("reports are whole numbers")
        columns = self._columns()
        if given.ndim > 2 or given[0].size != columns:
            raise malformed(f"a report of {self.name} has {columns} numbers")
        given = given.view(np.uint8) if given.dtype == np.bool_ else given
        return given.reshape(len(given), columns) if columns > 1 else given.ravel()

    def _columns(self) -> int:
        """Return how many numbers a report has."""
        return 1

    def _shares(
        self,
        labels: Sequence[str],
        ones: Array,
        of: Array,
        chances: tuple[int, int | Fraction],
        reports: int,
    ) -> Estimate:
        """Estimate shares from how often something was reported, out of how many reports.

        `chances`: of the report, over 2**62, where the answer is that one and where it is not.
        The interval is the exact one of Clopper and Pearson for the chance of the report, so that
        it keeps its coverage near 0 and 1.
        """
        p, q = (float(chance / UNIT) for chance in chances)
        of = np.broadcast_to(of, ones.shape)
        # Of a bucket nobody was asked about nothing is known.
        seen = np.where(of > 0, ones / np.maximum(of, 1), (p + q) / 2)
        shares = (seen - q) / (p - q)
        likely = q + (p - q) * np.clip(shares, 0, 1)
        error = np.sqrt(likely * (1 - likely) / np.maximum(of, 1)) / (p - q)
        ends = [np.clip((end - q) / (p - q), 0, 1) for end in binomial_interval(ones, of)]
        return self._estimate(labels, shares, ends, error, reports)

    def _estimate(
        self,
        labels: Sequence[str],
        estimate: Array,
        ends: Sequence[Array],
        error: Array,
        reports: int,
    ) -> Estimate:
        return Estimate(
            labels=tuple(labels),
            estimate=tuple(float(x) for x in estimate),
            lower=tuple(float(x) for x in ends[0]),
            upper=tuple(float(x) for x in ends[1]),
            standard_error=tuple(float(x) for x in error),
            reports=reports,
            epsilon=self.privacy,
            caution=self.caution,
        )


def binomial_interval(
    ones: Array, of: Array, *, level: float = 0.95
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the exact interval of Clopper and Pearson for the chance of a one.

    >>> low, high = binomial_interval(np.array([0]), np.array([100]))
    >>> float(low[0]), round(float(high[0]), 4)
    (0.0, 0.0362)
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    zeros = of - ones
    low = betaincinv(np.maximum(ones, 1), zeros + 1, tail)
    high = betaincinv(ones + 1, np.maximum(zeros, 1), 1 - tail)
    return np.where(ones == 0, 0.0, low), np.where(zeros == 0, 1.0, high)


def malformed(expected: str) -> InputError:
    """Return the error for reports that the mechanism cannot have made; it quotes none."""
    return InputError(
        f"these are not reports of the mechanism: {expected}",
        code="malformed-reports",
        hint="estimate with the settings that the answers were encoded with",
    )


def require_bits(reports: Array) -> Array:
    """Return reports that hold only 0 and 1."""
    if ((reports < 0) | (reports > 1)).any():
        raise malformed("each bit is 0 or 1")
    return reports


def require_places(reports: Array, size: int) -> Array:
    """Return reports that hold only numbers from 0 up to size − 1."""
    if ((reports < 0) | (reports >= size)).any():
        raise malformed(f"places run from 0 to {size - 1}")
    return reports


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
