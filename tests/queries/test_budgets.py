"""Budgets: what is left, what they still hold, periods; what of refusals is recorded; digits."""

import datetime
import math

import pytest

import discreet as dc
from discreet.demo import salaries
from discreet.dp.accountant import Accountant, gaussian_event, normal_event
from discreet.queries.guards import _noisy_answers

BOUNDS = {"salary": (0, 500_000)}


def test_a_preview_says_how_many_more_questions_of_a_kind_fit():
    guard = dc.Perturbation(epsilon=2.0, per_query=0.25, user_epsilon=1.0, bounds=BOUNDS)
    with dc.Gateway(salaries(), guard=guard) as gate:
        counted = "SELECT COUNT(*) FROM people WHERE region = 'TGN'"
        assert gate.explain(counted, user="ana").more == 4
        asked = 0
        for sector in ("IT", "HC", "Fin", "a", "b", "c"):
            more = gate.explain(f"{counted} AND sector = '{sector}'", user="ana").more
            answer = gate.ask(f"{counted} AND sector = '{sector}'", user="ana")
            assert answer.refused == (more == 0)
            asked += not answer.refused
        assert asked == 4
        lines = {line["scope"]: line for line in gate.budget("ana")}
        assert lines["user"]["left"] == 0
        assert lines["user"]["questions_left"] == 0
        assert lines["dataset"]["questions_left"] == 4


@pytest.mark.parametrize("accountant", ["rdp", "pld"])
def test_a_preview_never_promises_too_much(accountant):
    guard = dc.Perturbation(
        epsilon=1.0, per_query=0.5, accountant=accountant, mechanism="gaussian", bounds=BOUNDS
    )
    with dc.Gateway(salaries(), guard=guard) as gate:
        more = gate.explain("SELECT COUNT(*) FROM people", user="ana").more
        answers = [gate.ask(f"SELECT COUNT(*) FROM people WHERE salary > {n}", user="ana") for n in range(more)]  # fmt: skip
    assert not any(answer.refused for answer in answers)


def test_a_users_budget_starts_anew_with_the_period_and_the_datasets_does_not(monkeypatch):
    guard = dc.Perturbation(
        epsilon=0.75, per_query=0.5, user_epsilon=0.5, period="month", bounds=BOUNDS
    )
    now = ["2024-01"]
    monkeypatch.setattr(_noisy_answers, "current_period", lambda period: now[0] if period else "")
    with dc.Gateway(salaries(), guard=guard) as gate:
        assert not gate.ask("SELECT COUNT(*) FROM people", user="ana").refused
        assert gate.ask("SELECT SUM(salary) FROM people", user="ana").code == "budget-exhausted"
        now[0] = "2024-02"
        assert gate.budget("ana")[0]["left"] == 0.5
        # The user could, the dataset cannot.
        assert gate.ask("SELECT SUM(salary) FROM people", user="ana").code == "budget-exhausted"
        assert gate.budget("ana")[1]["left"] == 0.25
        assert gate.ledger.verify().intact


def test_periods_have_names():
    today = datetime.datetime.now(datetime.UTC)
    assert _noisy_answers.current_period("day") == today.strftime("%Y-%m-%d")
    assert _noisy_answers.current_period("week").startswith(today.strftime("%G-W"))


def test_a_guard_without_a_period_keeps_its_name_in_ledgers():
    plain = dc.Perturbation(bounds=BOUNDS)
    assert "period" in plain.settings()
    assert plain.digest != dc.Perturbation(bounds=BOUNDS, period="day").digest


def test_refused_statements_that_were_not_understood_are_in_the_ledger():
    with dc.Gateway(salaries(), guard=dc.Restriction(k=3)) as gate:
        for sql in (
            "SELEKT 1",
            "SELECT salary FROM people",
            "SELECT COUNT(*) FROM people WHERE x = 1",
        ):
            assert gate.ask(sql, user="eve").refused
        entries = list(gate.ledger.entries())
    assert [entry.details["code"] for entry in entries] == [
        "syntax",
        "no-aggregate",
        "unknown-column",
    ]
    assert {entry.user for entry in entries} == {"eve"}
    assert not any(entry.question for entry in entries)  # what somebody typed is not kept


def test_averages_have_the_digits_that_the_noise_leaves():
    guard = dc.Perturbation(epsilon=10.0, per_query=1.0, bounds=BOUNDS)
    with dc.Gateway(salaries(), guard=guard) as gate:
        answer = gate.ask("SELECT AVG(salary) AS pay, COUNT(*) AS n FROM people", user="ana")
    error = answer.error_95["pay"]
    unit = 10.0 ** (math.floor(math.log10(error)) - 1)
    assert answer.table["pay"][0].as_py() % unit == pytest.approx(0, abs=1e-6 * unit)


def test_questions_of_one_statement_are_charged_and_the_rest_is_free():
    # So little noise that the counts never add up to nothing, which has no shares.
    guard = dc.Perturbation(
        epsilon=100.0, per_query=25.0, bounds=BOUNDS, keys={"sector": ("IT", "HC", "Fin")}
    )
    share = (
        "SELECT sector, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY sector"
    )
    with dc.Gateway(salaries(), guard=guard) as gate:
        first = gate.ask(share, user="ana")
        assert first.spent == {"epsilon": 25.0}
        assert first.aggregates == 3  # of the question inside, which is what the engine computed
        assert sum(first.table["share"].to_pylist()) == pytest.approx(1)
        counted = gate.ask("SELECT sector, COUNT(*) AS n FROM people GROUP BY sector", user="ana")
        assert counted.repeated  # it is the question inside
        ranked = gate.ask(
            "SELECT sector, RANK() OVER (ORDER BY COUNT(*)) AS r FROM people GROUP BY 1", user="ana"
        )
        assert ranked.repeated
        assert (ranked.spent, ranked.aggregates) == ({}, 0)
        rolled = gate.explain(
            "SELECT sector, SUM(salary) FROM people GROUP BY ROLLUP(sector)", user="ana"
        )
        assert rolled.cost["epsilon"] == 50.0


# -- PLD of the discrete Gaussian ------------------------------------------------------------------
def exact_delta(scale: float, sensitivity: int, epsilon: float) -> float:
    """Canonne, Kamath and Steinke (2020): the exact δ of one answer with discrete Gaussian noise."""
    reach = int(12 * scale) + sensitivity
    weights = {k: math.exp(-(k * k) / (2 * scale * scale)) for k in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return math.fsum(
        max(0.0, weights[k] - math.exp(epsilon) * weights.get(k - sensitivity, 0.0)) / total
        for k in weights
    )


@pytest.mark.parametrize(
    ("scale", "sensitivity"), [(2.0, 1), (10.0, 3), (499.0, 120), (600.0, 150), (3000.0, 700)]
)
def test_the_pld_of_gaussian_noise_bounds_the_exact_loss_and_beats_renyi(scale, sensitivity):
    rho = sensitivity**2 / (2 * scale**2)
    delta = 1e-6
    told = Accountant("pld", delta).epsilon({normal_event(rho, scale): 1})
    assert exact_delta(scale, sensitivity, told) <= delta * (1 + 1e-9)
    assert exact_delta(scale, sensitivity, told * 0.98 - 1e-3) > delta  # and it is tight
    many = {normal_event(rho, scale): 30}
    assert Accountant("pld", delta).epsilon(many) < Accountant("rdp", delta).epsilon({gaussian_event(rho): 30})  # fmt: skip
    assert Accountant("rdp", delta).epsilon(many) == Accountant("rdp", delta).epsilon({gaussian_event(rho): 30})  # fmt: skip
