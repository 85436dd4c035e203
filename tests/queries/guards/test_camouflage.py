"""Camouflage: the truth always inside, and no combination of answers below the bound."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

import discreet as dc
from discreet.audit.solver import LinearProgram
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


class Attacker:
    """Asks adaptively and concludes, by linear programming, all that the answers say together.

    SUM, AVG and the MEDIAN of two are linear; MAX, MIN and COUNT bound single records.
    """

    def __init__(self, gate, salary, rng):
        self.gate, self.salary, self.rng, self.n = gate, np.asarray(salary, float), rng, len(salary)
        self.rows, self.low, self.high = [], [], []
        self.least, self.most = np.full(self.n, -1e6), np.full(self.n, 2e6)
        self.asked = Counter()

    def ask(self, what, inside, condition=""):
        chosen = ", ".join(map(str, inside))
        self.asked[what.split("(")[0]] += 1
        return self.gate.ask(
            f"SELECT {what} FROM people WHERE c IN ({chosen}){condition}", user="eve"
        ).value()

    def linear(self, inside, what="SUM"):
        low, high = self.ask(f"{what}(salary)", inside)
        size = 1 if what == "SUM" else len(inside)
        truth = self.salary[inside].sum() / size
        assert low <= truth <= high
        self.rows.append(np.isin(np.arange(self.n), inside) / size)
        self.low.append(low)
        self.high.append(high)

    def bounding(self, inside):
        what = str(self.rng.choice(["MAX", "MIN"]))
        low, high = self.ask(f"{what}(salary)", inside)
        truth = self.salary[inside].max() if what == "MAX" else self.salary[inside].min()
        assert low <= truth <= high
        if what == "MAX":
            self.most[inside] = np.minimum(self.most[inside], high)
        else:
            self.least[inside] = np.maximum(self.least[inside], low)

    def counting(self, record):
        # Bisect what is known of one record.
        cut = int(self.rng.uniform(*self.ends(record)))
        low, high = self.ask("COUNT(*)", [record], f" AND salary > {cut}")
        assert low <= (self.salary[record] > cut) <= high
        if low == 1:
            self.least[record] = max(self.least[record], cut)
        if high == 0:
            self.most[record] = min(self.most[record], cut)

    def ends(self, record):
        return max(self.least[record], 0.0), min(self.most[record], 1e6)

    def play(self, questions, turns):
        """Ask in turns, each about the records of which most is known."""
        target = self.rng.permutation(self.n)[:5]
        for _ in range(turns):
            for _ in range(questions // turns):
                self._one(target)
            target = np.argsort(np.subtract(*self.concluded()[::-1]) / self.salary)[:5]
        return self.concluded()

    def _one(self, target):
        rng = self.rng
        kind = rng.choice(["sum", "near", "avg", "median", "end", "count"], p=[0.25, 0.35, 0.1, 0.1, 0.1, 0.1])  # fmt: skip
        victim = int(rng.choice(target))
        inside = np.flatnonzero(rng.random(self.n) < rng.choice([0.1, 0.3, 0.5, 0.8]))
        if kind == "near" and self.rows:
            # A tracker: a set asked about before, with or without the victim.
            inside = np.flatnonzero(self.rows[int(rng.integers(len(self.rows)))])
            inside = np.setxor1d(inside, [victim])
        if kind == "median":
            other = int(rng.choice(np.setdiff1d(np.arange(self.n), [victim])))
            self.linear(np.array([victim, other]), "MEDIAN")
        elif kind == "count":
            self.counting(victim)
        elif kind == "end":
            self.bounding(np.union1d(inside[:3], [victim]))
        elif inside.size:
            self.linear(inside, "AVG" if kind == "avg" else "SUM")

    def concluded(self):
        """Return the least and largest value of each record that agree with all answers."""
        rows, low, high = np.array(self.rows), np.array(self.low), np.array(self.high)
        scale = float(self.salary.mean())
        program = LinearProgram(
            sparse.csc_matrix((0, self.n)),
            rows=(np.zeros(0), np.zeros(0)),
            columns=(self.least / scale, self.most / scale),
            cost=np.zeros(self.n),
        )
        used = set()
        found = np.empty((2, self.n))
        for record in range(self.n):
            for side, sign in enumerate((1.0, -1.0)):
                cost = np.zeros(self.n)
                cost[record] = sign
                program.set_cost(np.arange(self.n), cost)
                # Constraints come in as they are violated; at the end none is.
                while True:
                    x = program.solve().x * scale
                    over = np.maximum(rows @ x - high, low - rows @ x) / (rows @ self.salary)
                    worst = [r for r in np.argsort(-over)[:10] if over[r] > 1e-6]
                    assert all(
                        over[r] < 1e-4 for r in used.intersection(worst)
                    )  # as exact as solved
                    worst = [r for r in worst if r not in used]
                    if not worst:
                        break
                    for r in worst:
                        held = np.flatnonzero(rows[r])
                        program.add_row(held, rows[r][held], low[r] / scale, high[r] / scale)
                        used.add(r)
                found[side, record] = x[record]
        return found[0], found[1]


@pytest.mark.parametrize("wishes", [False, True])
def test_linear_program_over_all_answers_stays_above_the_bound(wishes):
    attack(np.random.default_rng(1), 12, 300, turns=3, wishes=wishes)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "wishes"), [(30, False), (60, True)])
def test_ten_thousand_adaptive_questions_stay_above_the_bound(n, wishes):
    print(attack(np.random.default_rng(n), n, 10_000, turns=10, wishes=wishes))  # noqa: T201  # figures


def attack(rng, n, questions, *, turns, wishes):
    salary = rng.integers(10_000, 500_000, n)
    columns = {"wish": rng.choice([0.1, 0.5, 0.9], n)} if wishes else {}
    guard = dc.Camouflage(bound=0.3, per_record="wish" if wishes else None)
    with dc.Gateway(people(salary, **columns), guard=guard) as gate:
        attacker = Attacker(gate, salary, rng)
        low, high = attacker.play(questions, turns)
    share = np.maximum(columns["wish"], 0.3) if wishes else 0.3
    assert (low <= salary * (1 + 1e-5)).all()
    assert (high >= salary * (1 - 1e-5)).all()
    assert (high - low >= share * salary * (1 - 1e-5)).all()
    return {
        "records": n,
        **attacker.asked,
        "least width over bound": round(float(((high - low) / (share * salary)).min()), 4),
    }


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
