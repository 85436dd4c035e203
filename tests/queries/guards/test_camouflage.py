"""Camouflage: the truth always inside, and no combination of answers below the bound."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

import discreet as dc
from discreet.errors import InputError
from discreet.queries.guards._hull import hidden_vectors, least_variance


def people(salary, **columns):
    table = pa.table({"c": list(range(len(salary))), "salary": salary, **columns})
    return dc.read(table, roles={"c": "quasi", "salary": "confidential"}, name="people")


def truths(values):
    values = np.asarray(values, float)
    return {
        "SUM(salary)": values.sum(),
        "AVG(salary)": values.mean(),
        "MIN(salary)": values.min(),
        "MAX(salary)": values.max(),
        "MEDIAN(salary)": np.median(values),
        "QUANTILE(salary, 0.9)": np.quantile(values, 0.9),
        "VAR_POP(salary)": values.var(),
        "STDDEV_POP(salary)": values.std(),
        "SUM(3 * salary - 7)": (3 * values - 7).sum(),
    }


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=12),
    st.integers(2, 5),
    st.floats(0.05, 2.0),
    st.data(),
)
def test_truth_is_always_inside(salary, vectors, bound, data):
    inside = sorted(data.draw(st.sets(st.integers(0, len(salary) - 1), min_size=1)))
    chosen = [salary[n] for n in inside]
    what = ", ".join(str(n) for n in inside)
    with dc.Gateway(people(salary), guard=dc.Camouflage(bound=bound, vectors=vectors)) as gate:
        for measure, truth in truths(chosen).items():
            low, high = gate.ask(f"SELECT {measure} FROM people WHERE c IN ({what})").value()
            slack = 1e-6 * max(1.0, abs(truth))
            assert low - slack <= truth <= high + slack
        threshold = data.draw(st.integers(-(10**6), 10**6))
        counted = gate.ask(f"SELECT COUNT(*) FROM people WHERE salary > {threshold}").value()
        assert counted[0] <= sum(value > threshold for value in salary) <= counted[1]
        counted = gate.ask(f"SELECT COUNT(*) FROM people WHERE {threshold} >= salary").value()
        assert counted[0] <= sum(value <= threshold for value in salary) <= counted[1]


def narrowed(gate, rng, n, questions):
    """Ask adaptive random sums and return what a linear program concludes for each record."""
    rows, low, high = [], [], []
    for number in range(questions):
        if number % 3 == 0:
            inside = rng.choice(n, size=int(rng.integers(1, 3)), replace=False)
        else:
            inside = np.flatnonzero(rng.random(n) < rng.choice([0.3, 0.5, 0.8]))
        if not inside.size:
            continue
        what = ", ".join(map(str, inside))
        ends = gate.ask(f"SELECT SUM(salary) FROM people WHERE c IN ({what})").value()
        rows.append(np.isin(np.arange(n), inside).astype(float))
        low.append(ends[0])
        high.append(ends[1])
    upper = np.vstack([rows, -np.array(rows)])
    limit = np.concatenate([high, -np.array(low)])
    found = []
    for record in range(n):
        goal = np.eye(n)[record]
        ends = [
            sign * linprog(sign * goal, upper, limit, bounds=[(None, None)] * n).fun
            for sign in (1.0, -1.0)
        ]
        found.append(ends[1] - ends[0])
    return np.array(found)


def test_linear_program_over_all_answers_stays_above_the_bound():
    rng = np.random.default_rng(1)
    salary = rng.integers(10_000, 500_000, 12)
    with dc.Gateway(people(salary), guard=dc.Camouflage(bound=0.3)) as gate:
        widths = narrowed(gate, rng, 12, 250)
    assert (widths >= 0.3 * salary * (1 - 1e-6)).all()


@pytest.mark.slow
def test_ten_thousand_adaptive_questions_stay_above_the_bound():
    rng = np.random.default_rng(2)
    salary = rng.integers(10_000, 500_000, 15)
    with dc.Gateway(people(salary), guard=dc.Camouflage(bound=0.3)) as gate:
        widths = narrowed(gate, rng, 15, 10_000)
    assert (widths >= 0.3 * salary * (1 - 1e-6)).all()


def test_respondents_may_ask_for_more():
    salary = [100, 200, 300, 400]
    data = people(salary, wish=[None, 1.5, 0.1, 0.0])
    with dc.Gateway(data, guard=dc.Camouflage(bound=0.3, per_record="wish")) as gate:
        widths = []
        for record in range(4):
            low, high = gate.ask(f"SELECT SUM(salary) FROM people WHERE c = {record}").value()
            widths.append(high - low)
    assert widths[1] >= 300
    assert widths[0] >= 30
    assert widths[2] >= 90
    assert widths[3] >= 120
    data = people(salary, wish=[-1.0, 0.0, 0.0, 0.0])
    with (
        dc.Gateway(data, guard=dc.Camouflage(bound=0.3, per_record="wish")) as gate,
        pytest.raises(InputError, match="negative"),
    ):
        gate.ask("SELECT SUM(salary) FROM people")


def test_intervals_are_the_same_after_a_restart(tmp_path):
    # Two hulls would narrow each other: the key is kept with the ledger.
    found = []
    for user in ("ana", "bob"):
        with dc.Gateway(
            people([10, 20, 30]), guard=dc.Camouflage(bound=0.3), ledger=tmp_path / "l.db"
        ) as gate:
            found.append(gate.ask("SELECT SUM(salary) FROM people WHERE c = 1", user=user).value())
    assert found[0] == found[1]


def test_another_ledger_has_another_hull():
    found = set()
    for _ in range(2):
        with dc.Gateway(people([10, 20, 30]), guard=dc.Camouflage(bound=0.3)) as gate:
            found.add(gate.ask("SELECT SUM(salary) FROM people WHERE c = 1").value())
    assert len(found) == 2


def test_missing_values_stay_missing():
    with dc.Gateway(people([10, None, 30]), guard=dc.Camouflage(bound=0.3)) as gate:
        low, high = gate.ask("SELECT AVG(salary) FROM people").value()
        assert low <= 20 <= high
        assert gate.ask("SELECT COUNT(salary) FROM people").value() == 2
        assert gate.ask("SELECT SUM(salary) FROM people WHERE c = 1").value() == (None, None)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT SUM(salary * salary) FROM people", "not-linear"),
        ("SELECT SUM(ABS(salary)) FROM people", "not-linear"),
        ("SELECT MAX(2 * salary) FROM people", "not-a-column"),
        ("SELECT salary, COUNT(*) FROM people GROUP BY salary", "confidential-key"),
        ("SELECT SUM(salary) FROM people WHERE salary > 3", "confidential-condition"),
        ("SELECT COUNT(*) FROM people WHERE salary = 3", "confidential-condition"),
        ("SELECT COUNT(*) FROM people WHERE salary > c", "confidential-condition"),
        ("SELECT COUNT(*) FROM people WHERE salary > 3 OR c = 1", "confidential-condition"),
    ],
)
def test_what_has_no_range_is_refused(sql, code):
    with dc.Gateway(people([10, 20, 30]), guard=dc.Camouflage(bound=0.3)) as gate:
        assert gate.ask(sql).code == code


def test_one_confidential_column_at_a_time():
    table = pa.table({"a": [1, 2], "b": [3, 4]})
    data = dc.read(table, roles={"a": "confidential", "b": "confidential"}, name="people")
    with dc.Gateway(data, guard=dc.Camouflage(bound=0.3)) as gate:
        assert gate.ask("SELECT SUM(a), SUM(b) FROM people").code == "several-confidential"


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 30), st.integers(2, 6), st.integers(0, 1000))
def test_hidden_vectors_hold_the_values_and_their_widths(n, vectors, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 1000, n)
    widths = np.abs(values) * 0.3 + 1e-3
    rows, weights = hidden_vectors(values, widths, vectors, dc.Randomness.seeded(seed))
    assert np.allclose(rows @ weights, values)
    assert (np.ptp(rows, axis=1) >= widths * (1 - 1e-9)).all()
    assert (weights > 0).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 5), st.integers(0, 1000))
def test_least_variance_equals_a_general_solver(p, seed):
    rng = np.random.default_rng(seed)
    data = rng.normal(0, 10, (30, p)) + rng.normal(0, 50, (30, 1))
    matrix = np.cov(data.T, bias=True)
    found = minimize(
        lambda w: w @ matrix @ w,
        np.full(p, 1 / p),
        bounds=[(0, 1)] * p,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert least_variance(matrix) <= found.fun * (1 + 1e-6)
    assert least_variance(matrix) == pytest.approx(found.fun, rel=1e-3)
