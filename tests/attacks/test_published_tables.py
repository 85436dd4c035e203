"""Attacks on published counts: near-certain on exact ones, bounded after top-down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tables.methods.test_top_down import granting, table

import discreet as dc
from discreet.attacks._tables import identity
from discreet.attacks.membership_in_tables import MembershipInTables
from discreet.attacks.presence import Presence, likelihood, most_right
from discreet.attacks.reconstruction import Reconstruction, segregated_people
from discreet.attacks.repeated_releases import RepeatedReleases
from discreet.dp.accountant import Accountant, gaussian_event
from discreet.dp.hierarchical.basis import Basis
from discreet.dp.hierarchical.budget import Budget, allocate
from discreet.dp.hierarchical.estimation import gathered_from, whole_estimate
from discreet.dp.hierarchical.measurement import measure
from discreet.dp.hierarchical.tree import Spine
from discreet.randomness import Randomness
from discreet.tables.methods._shares import read_shares

SPINE = Spine((np.zeros(4, dtype=np.int64),))
BASIS = Basis((2,))
OTHERS = np.array([3, 0, 5, 2, 0, 0, 9, 1])


def budget(rho: float) -> Budget:
    return allocate(rho, [{(): 0.2, (0,): 0.2}, {(): 0.2, (0,): 0.4}])


def bound_of(rho: float) -> float:
    """Return how often anybody may be right about presence, at most."""
    return min(
        most_right(Accountant("zcdp", float(delta)).epsilon({gaussian_event(rho): 1}), float(delta))
        for delta in np.geomspace(1e-6, 0.5, 60)
    )


def told(rho: float, runs: int) -> tuple[float, float]:
    """Return how often the best test of presence is right, and the bound of the promise."""
    spent = budget(rho)
    found = Presence(runs=runs).run(
        lambda counts: measure(SPINE, BASIS, counts.reshape(4, 2), spent),
        OTHERS,
        1,
        likelihood(SPINE, BASIS, OTHERS, 1),
    )
    return found.found, bound_of(rho)


def test_presence_is_certain_on_exact_counts_and_bounded_by_noise() -> None:
    assert Presence(runs=100).run(identity, OTHERS, 1).found == 1.0
    right, bound = told(0.1, 400)
    assert right <= bound + 4 * 0.5 / np.sqrt(400)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.02, 0.1, 1.0])
def test_presence_stays_within_the_bound_over_thousands_of_runs(rho: float) -> None:
    runs = 3000
    right, bound = told(rho, runs)
    assert right <= bound + 4 * 0.5 / np.sqrt(runs)


def release(rho: float, places: int = 400) -> Any:
    """Publish places × cells consistently, over five levels of places."""
    basis = Basis((16, 4))
    shares = read_shares("even", "marginals", "01234", ["age", "race"])
    spine = Spine(
        tuple(
            np.repeat(np.arange(n), w) for n, w in ((1, 4), (4, 5), (20, 5), (100, places // 100))
        )
    )

    def publish(counts: Any) -> Any:
        measured = measure(spine, basis, counts, allocate(rho, shares))
        *_, last = whole_estimate(measured, gathered_from(measured), rng=Randomness.secure())
        return last

    return publish


def found_over(rho: float, places: int, releases: int) -> tuple[float, float, float]:
    """Return what is found of people in the records, of those left out, and one release's error.

    The shares are means over several releases, so that chance hides no difference.
    """
    people, left_out = segregated_people(2, places)
    publish, attack = release(rho, places), Reconstruction()
    every = [attack.run(publish, people, left_out, rows=16) for _ in range(releases)]
    return (
        float(np.mean([one.found for one in every])),
        float(np.mean([one.blind for one in every])),
        every[0].standard_error,
    )


def test_reconstruction_finds_most_people_in_exact_tables_and_guesses_after_noise() -> None:
    people, left_out = segregated_people(2)
    exact = Reconstruction().run(identity, people, left_out, rows=16)
    assert exact.found > 0.6 > 3 * exact.blind
    found, blind, error = found_over(0.1, 100, 3)
    assert found <= blind + 3 * error


@pytest.mark.slow
def test_after_noise_no_more_people_are_found_than_of_those_left_out() -> None:
    found, blind, error = found_over(0.1, 400, 20)
    assert found <= blind + 3 * error
    # One person's record shifts its own cell: by no more than the promise allows.
    assert found - blind <= 2 * bound_of(0.1) - 1


def test_people_left_out_are_like_those_in_the_records() -> None:
    # What is told from places alone finds both alike: the control differs by nothing but the lot.
    people, left_out = segregated_people(5, 3000)
    report = Reconstruction().run(lambda counts: left_out + counts, people, left_out, rows=16)
    assert abs(report.found - report.blind) <= 4 * report.standard_error


def test_membership_is_told_from_exact_tables_and_not_after_noise() -> None:
    people, left_out = segregated_people(2, 100)
    attack = MembershipInTables()
    exact = attack.run(identity, people, left_out)
    assert exact.lower is not None
    assert exact.lower > 0.95
    told_after = attack.run(release(0.1, 100), people, left_out)
    assert told_after.lower is not None
    assert told_after.lower <= bound_of(0.1) + 4 * 0.5 / np.sqrt(told_after.asked)


def test_averaging_is_refused_by_the_ledger(tmp_path: Path) -> None:
    made = table()
    cell = made.cell("n1", "f", "65+")
    method = dc.TopDown(rho=0.2)
    place = granting(tmp_path / "ledger.db", 1.0)

    def publish(_: Any) -> Any:
        return made.protect(method=method, ledger=place).protected.value

    report = RepeatedReleases(times=8).run(publish, made.value.astype(np.int64), cell)
    assert report.refused >= 3
    assert not report.succeeded
