"""Collecting with local differential privacy: files in, files out, and the error measured."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from discreet.app.cli.members import parse_member
from discreet.data.atomic import atomic_file
from discreet.dp.local import Estimate, LocalMechanism
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.report import Report

__all__ = ["Simulation", "encode_file", "estimate_file", "parse_mechanism", "simulate"]


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


def parse_mechanism(text: str) -> LocalMechanism:
    """Make a mechanism from `name parameter=value …`, as the command line gives it.

    >>> parse_mechanism("k-ary-randomized-response domain=a,b,c epsilon=2").domain
    ('a', 'b', 'c')
    """
    made: LocalMechanism = parse_member(LocalMechanism, text)
    return made


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
        np.savetxt(file, np.atleast_2d(reports.astype(np.int64).T).T, fmt="%d", delimiter=",")
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
    """Estimate from a file of reports."""
    if not Path(reports).exists():
        raise InputError("there is no such file", code="missing-file", file=reports)
    if Path(reports).stat().st_size == 0:
        raise InputError("there are no reports", code="no-reports", file=reports)
    try:
        found = np.loadtxt(reports, dtype=np.int64, delimiter=",", ndmin=2)
    except ValueError:
        raise InputError(
            "the file does not hold reports",
            code="malformed-reports",
            hint="use a file that `discreet collect encode` wrote",
            file=reports,
        ) from None
    return mechanism.estimate(found[:, 0] if found.shape[1] == 1 else found)
