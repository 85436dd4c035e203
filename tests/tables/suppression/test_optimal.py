"""Proofs that end where they are told to, and deviations that answer without a program."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from discreet.audit.intervals import audit_table
from discreet.progress import silent
from discreet.tables.suppression import efforts
from discreet.tables.suppression.engine import suppress
from discreet.tables.suppression.harvest import Harvest
from discreet.tables.suppression.optimal import Limits, optimum
from discreet.tables.suppression.task import Scale, Task

BENCHMARK = runpy.run_path(
    str(Path(__file__).resolve().parents[3] / "benchmarks" / "tables_generated.py")
)


@pytest.fixture(scope="module")
def table():
    return BENCHMARK["generate"]((9, 8), "nested", seed=0)


@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_limits_of_work_leave_a_bound_below_and_a_pattern_above(table, attacker):
    task = Task.of(table, objective="value", attacker=attacker)
    start = efforts.fast(task, silent)
    best = optimum(task, start.withheld, start.asked, start.certificates, limits=Limits())
    assert best.withheld is not None
    cheapest = float(task.price[best.withheld & ~task.primary].sum())
    assert best.bound == pytest.approx(cheapest)
    for work in (1, 500, 2000):
        limits = Limits(work=work, nodes=5)
        some = optimum(task, start.withheld, start.asked, start.certificates, limits=limits)
        assert some.bound <= cheapest * (1 + 1e-9)
        assert some.work < best.work or some.bound == pytest.approx(best.bound)


@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
@pytest.mark.parametrize("objective", ["count", "value"])
def test_balanced_comes_to_the_optimum_of_a_small_table(table, attacker, objective):
    balanced = suppress(table, objective=objective, attacker=attacker)
    optimal = suppress(table, objective=objective, attacker=attacker, effort="optimal")
    assert optimal.optimal
    assert balanced.cost == pytest.approx(optimal.cost)
    again = suppress(table, objective=objective, attacker=attacker)
    assert again.status.tolist() == balanced.status.tolist()


def test_a_proof_broken_off_is_explored_and_safe(table):
    short = Scale(proof=1, proof_per_secondary=1)
    pattern = suppress(table, objective="value", attacker="outsider", scale=short)
    quick = suppress(table, objective="value", attacker="outsider", effort="fast")
    assert pattern.cost <= quick.cost
    assert audit_table(table, published=pattern.status, exact=True).safe


def test_kept_deviations_answer_where_a_choice_has_room_for_them(table):
    task = Task.of(table, objective="count", attacker="outsider")
    search = efforts._first(task, silent)
    kept = Harvest(task)
    demand = 0
    cells, moves = search.certificates[demand][0]
    moves = moves * abs(task.amount[demand]) / np.abs(moves).max()
    kept.add(cells, moves)
    everything = task.live.astype(np.float64)
    answered = kept.answers(everything)
    moved = np.abs(moves) >= np.abs(moves).max() * (1 - 1e-6)
    reached = set(cells[moved & task.primary[cells]].tolist())
    assert {int(task.target[d]) for d in answered} <= reached
    for cell in cells[~task.primary[cells]].tolist():
        without = everything.copy()
        without[cell] = 0.0
        assert not kept.answers(without)
    half = np.where(task.primary, 1.0, 0.5 * everything)
    assert not kept.answers(half) or task.primary[cells].all()


def test_large_tables_are_built_several_times_by_balanced(table):
    for objective in ("count", "value"):
        asked = {"objective": objective, "attacker": "outsider", "scale": Scale(large=0)}
        once = suppress(table, **asked, effort="fast")
        often = suppress(table, **asked, effort="balanced")
        assert often.audit.safe
        assert often.cost <= once.cost * 1.05
