"""Collecting with local differential privacy: files in, files out, and the error measured."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data.atomic import atomic_file
from discreet.dp.local import Estimate, LocalMechanism
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.report import Report

__all__ = ["Simulation", "encode_file", "estimate_file", "simulate"]


@dataclasses.dataclass(frozen=True)
class Simulation(Report):
    """Repeated collections of the same answers: what was estimated, and how far off."""

    mechanism: str
    epsilon: float
    respondents: int
    rounds: int
    truth: float
    mean_estimate: float
    #: Standard deviation of the estimates over the rounds, and what theory says.
    measured_error: float
    stated_error: float
    #: Share of rounds whose 95 % interval held the truth.
    coverage: float
    #: A warning in words where epsilon is large.
    caution: str = ""


def simulate(
    mechanism: LocalMechanism,
    respondents: int,
    share: float,
    rounds: int,
    *,
    progress: Progress = silent,
) -> Simulation:
    """Collect the same answers many times and compare the error with the theory."""
    answers, truth = _answers(mechanism, respondents, share)
    rng = Randomness.secure()
    estimates, stated, covered = [], [], 0
    for number in range(rounds):
        progress("collections", number, rounds)
        found = mechanism.estimate(mechanism.encode(answers, rng=rng))
        estimates.append(found.estimate[0])
        stated.append(found.standard_error[0])
        covered += found.lower[0] <= truth <= found.upper[0]
    return Simulation(
        mechanism=mechanism.name,
        epsilon=mechanism.privacy,
        respondents=respondents,
        rounds=rounds,
        truth=truth,
        mean_estimate=float(np.mean(estimates)),
        measured_error=float(np.std(estimates, ddof=1)),
        stated_error=float(np.mean(stated)),
        coverage=covered / rounds,
        caution=mechanism.caution,
    )


def _answers(mechanism: LocalMechanism, respondents: int, share: float) -> tuple[list[Any], float]:
    first = round(respondents * share)
    domain = getattr(mechanism, "domain", None)
    if domain is not None:
        rest = [domain[1 + i % (len(domain) - 1)] for i in range(respondents - first)]
        return [domain[0]] * first + rest, first / respondents
    maximum = getattr(mechanism, "maximum", None)
    if maximum is not None:
        return [maximum] * first + [0.0] * (respondents - first), maximum * first / respondents
    return ["yes"] * first + ["no"] * (respondents - first), first / respondents


def encode_file(mechanism: LocalMechanism, answers: str | Path, output: str | Path) -> int:
    """Randomise a file with one answer per line; return how many reports were written."""
    try:
        lines = Path(answers).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise InputError("there is no such file", code="missing-file", file=answers) from None
    except UnicodeDecodeError:
        raise InputError(
            "the file is not UTF-8 text", code="wrong-encoding", file=answers
        ) from None
    given = [line.strip() for line in lines if line.strip()]
    numbers: list[Any] = given
    if hasattr(mechanism, "maximum"):
        numbers = _floats(given, answers)
    reports = mechanism.encode(numbers, rng=Randomness.secure())
    # Reports leave in an order of their own: the line number must not point back at the answer.
    reports = reports[Randomness.secure().permutation(len(reports))]
    with atomic_file(output) as file:
        np.savetxt(
            file,
            np.atleast_2d(reports.astype(np.int64).T).T,
            fmt="%d",
            delimiter=",",
            header=json.dumps(mechanism.settings()),
        )
    return len(reports)


def _floats(lines: list[str], file: str | Path) -> list[float]:
    numbers = []
    for place, line in enumerate(lines, start=1):
        try:
            numbers.append(float(line))
        except ValueError:
            raise InputError(
                "an answer is not a number", code="not-a-number", file=file, line=place
            ) from None
    return numbers


def estimate_file(mechanism: LocalMechanism, reports: str | Path) -> Estimate:
    """Estimate from a file of reports, which must be reports of this mechanism.

    The first line of a file that `encode_file` wrote tells the settings: others are refused, and
    what the mechanism drew for the collection (the salt of its hash functions) is taken from it.
    """
    try:
        lines = Path(reports).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise InputError("there is no such file", code="missing-file", file=reports) from None
    except UnicodeDecodeError:
        raise _malformed("the file is not text", reports) from None
    if not any(line.strip() for line in lines):
        raise InputError("there are no reports", code="no-reports", file=reports)
    for line in lines:
        if line.startswith("#"):
            mechanism = _as_told(mechanism, line[1:], reports)
    rows = [line for line in lines if line.strip() and not line.startswith("#")]
    try:
        found = np.loadtxt(rows, dtype=np.int64, delimiter=",", ndmin=2)
    except ValueError:
        raise _malformed("the file does not hold rows of whole numbers", reports) from None
    try:
        return mechanism.estimate(found)
    except InputError as error:
        raise _malformed(error.message, reports, code=error.code) from None


def _as_told(mechanism: LocalMechanism, line: str, file: str | Path) -> LocalMechanism:
    """Return the mechanism with what was drawn for the collection; refuse other settings."""
    try:
        told = dict(json.loads(line))
    except (ValueError, TypeError):
        raise _malformed("a line that begins with # does not hold settings", file) from None
    drawn = {name: told[name] for name in mechanism.drawn if name in told}
    try:
        collected = dataclasses.replace(mechanism, **drawn)
    except InputError as error:
        raise _malformed(error.message, file) from None
    given = collected.settings()
    wrong = sorted(name for name in {*told, *given} if told.get(name) != given.get(name))
    if wrong:
        raise _malformed(
            f"the reports were made with other settings of {', '.join(wrong)} than given", file
        )
    return collected


def _malformed(message: str, file: str | Path, *, code: str = "malformed-reports") -> InputError:
    return InputError(
        message,
        code=code,
        hint="use a file that `discreet collect encode` wrote with the same mechanism",
        file=file,
    )
