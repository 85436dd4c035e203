"""Corners: certificates without programs, checked against equations, bounds and knowledge."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.suppression.test_windows import table as nested_table

from discreet.audit.certificates.collection import Certificates
from discreet.audit.certificates.corners import corners
from discreet.audit.intervals import audit_table
from discreet.audit.problem import Decision, Problem, Tuning
from discreet.data.table import Status
from discreet.tables.suppression.engine import suppress
from discreet.tables.suppression.task import Scale, Task

#: No products of directions are looked for, however much is open.
PROGRAMS_ALONE = Tuning(corners_from=10**9)


def found(task):
    size = len(task.value)
    return corners(
        task.table,
        (task.target, task.amount),
        (task.down, task.up),
        withheld=task.primary,
        live=task.live,
        price=np.ones(size),
        free=np.full(size, 1e-5),
        knowledge=task.knowledge,
    )


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), attacker=st.sampled_from(["outsider", "contributors"]))
def test_every_corner_keeps_equations_bounds_and_pattern(seed, attacker):
    task = Task.of(nested_table(seed), attacker=attacker)
    done = found(task)
    assert done is not None
    table, certificates = task.table, done.certificates
    for cells, moves in certificates:
        deviation = np.zeros(len(table))
        np.add.at(deviation, cells, moves)
        assert np.abs(table.equations @ deviation).max() < 1e-9 * max(1.0, np.abs(moves).max())
        assert (moves <= task.up[cells] * (1 + 1e-8)).all()
        assert (-moves <= task.down[cells] * (1 + 1e-8)).all()
        assert done.withheld[cells].all()
    assert done.met.mean() > 0.5


@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_what_corners_meet_the_auditor_finds_met_by_programs_alone(attacker):
    task = Task.of(nested_table(5), attacker=attacker)
    done = found(task)
    audit = audit_table(
        task.table,
        published=~done.withheld,
        attacker=attacker,
        exact=attacker == "outsider",
        tuning=PROGRAMS_ALONE,
    )
    safe = dict(zip(audit.cells.tolist(), audit._safe.tolist(), strict=True))
    both = {}
    for cell, met in zip(task.target.tolist(), done.met.tolist(), strict=True):
        both[cell] = both.get(cell, True) and met
    assert any(both.values())
    assert all(safe[cell] for cell, met in both.items() if met)


@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_large_tables_are_protected_by_corners(attacker):
    given_table = nested_table(8)
    asked = {"effort": "fast", "attacker": attacker, "scale": Scale(whole=0, large=0)}
    first = suppress(given_table, **asked)
    assert first.audit.safe
    alone = {"attacker": attacker, "tuning": PROGRAMS_ALONE}
    assert audit_table(given_table, published=first.status, **alone).safe
    assert (suppress(given_table, **asked).status == first.status).all()


@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_corners_do_not_change_what_an_audit_finds(attacker):
    given_table = nested_table(11)
    hidden = np.asarray(given_table.status == Status.PRIMARY)
    hidden |= (np.arange(len(given_table)) % 5 == 0) & (given_table.value > 0)
    plain = audit_table(given_table, published=~hidden, attacker=attacker)
    tuning = Tuning(corners_from=1)
    quick = audit_table(given_table, published=~hidden, attacker=attacker, tuning=tuning)
    assert 0 < plain.unsafe < plain.sensitive
    assert (plain._safe == quick._safe).all()


def problem(task, wanted, **tuning):
    lower, upper = np.zeros(len(task.value)), np.zeros(len(task.value))
    for cell, amount in zip(task.target, task.amount, strict=True):
        (upper if amount > 0 else lower)[cell] = abs(amount)
    return Problem(
        task.equations, task.down, task.up, lower, upper, wanted, task.knowledge, task.prior, False,
        Tuning(**tuning),
    )  # fmt: skip


def test_false_certificates_prove_nothing():
    task = Task.of(nested_table(5), attacker="outsider")
    done = found(task)
    asked = problem(task, task.primary)
    honest = Decision.blank(asked)
    honest.check(done.certificates, np.flatnonzero(done.withheld))
    assert (honest.met_up & task.primary).sum() > 10
    cells, moves = done.certificates.cells, done.certificates.moves
    out_of_balance = dataclasses.replace(
        done.certificates, moves=moves * np.where(np.arange(len(moves)) % 8 == 3, 1.01, 1.0)
    )
    too_far = dataclasses.replace(done.certificates, moves=moves * 1e9)
    for false, withheld in (
        (out_of_balance, done.withheld),
        (too_far, done.withheld),
        (done.certificates, np.zeros(len(task.value), dtype=bool)),
    ):
        blank, decision = Decision.blank(asked), Decision.blank(asked)
        decision.check(false, np.flatnonzero(withheld))
        kept = decision.met_up & ~blank.met_up
        # Only what an untouched certificate of three or fewer cells still proves.
        lengths = np.diff(false.start)
        untouched = {
            int(c)
            for row, low in enumerate(false.start[:-1])
            if false is out_of_balance and lengths[row] <= 8
            for c in cells[low : low + lengths[row]]
            if (moves == false.moves)[low : low + lengths[row]].all()
        }
        assert set(np.flatnonzero(kept).tolist()) <= untouched


@pytest.mark.parametrize("many", [0, 10**9])
def test_contributors_are_compared_alike_with_few_and_many_certificates(many):
    task = Task.of(nested_table(7), attacker="contributors")
    done = found(task)
    decision = Decision.blank(problem(task, task.primary, compiled_from=many))
    decision.check(done.certificates, np.flatnonzero(done.withheld))
    for cell, amount, met in zip(task.target, task.amount, done.met, strict=True):
        if met:
            assert (decision.met_up if amount > 0 else decision.met_down)[cell]


def test_joined_certificates_keep_their_order():
    first = Certificates.of([(np.array([1, 2]), np.array([1.0, -1.0]))])
    second = Certificates.of([(np.array([3]), np.array([2.0])), (np.array([4]), np.array([5.0]))])
    joined = Certificates.joined([first, second])
    assert [cells.tolist() for cells, _ in joined] == [[1, 2], [3], [4]]
    assert [moves.tolist() for _, moves in joined] == [[1.0, -1.0], [2.0], [5.0]]
