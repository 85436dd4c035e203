"""Restriction: safe against brute force through SQL, simulatable, and known attacks refused."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import discreet as dc
from discreet.attacks import Victim, attacks_on
from discreet.errors import InputError
from discreet.queries.guards._room import Room
from tests.audit.history.reference import isolates


def people(rows, *, salary):
    """Records of which each can be named by its public columns."""
    table = pa.table(
        {
            "a": pa.array([n % 3 for n in range(rows)]),
            "b": pa.array(["xyz"[n // 3 % 3] for n in range(rows)]),
            "c": pa.array(list(range(rows))),
            "salary": pa.array(salary, type=pa.int64()),
        }
    )
    roles = {"a": "quasi", "b": "quasi", "c": "quasi", "salary": "confidential"}
    return dc.read(table, roles=roles, name="people")


def members(condition, rows):
    kind, value = condition
    tests = {
        "a": lambda n: n % 3 == value % 3,
        "b": lambda n: n // 3 % 3 == value % 3,
        "upto": lambda n: n <= value,
        "not": lambda n: n != value,
        "in": lambda n: n in (value, value + 1, value + 3, value + 4),
    }
    return [int(tests[kind](n)) for n in range(rows)]


def sql_of(condition):
    kind, value = condition
    return {
        "a": f"a = {value % 3}",
        "b": f"b = '{'xyz'[value % 3]}'",
        "upto": f"c <= {value}",
        "not": f"c <> {value}",
        "in": f"c IN ({value}, {value + 1}, {value + 3}, {value + 4})",
    }[kind]


conditions = st.tuples(st.sampled_from(["a", "b", "upto", "not", "in"]), st.integers(0, 9))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(5, 10),
    st.integers(2, 4),
    st.lists(st.tuples(conditions, st.sampled_from(["ana", "bob", "eve"])), max_size=8),
)
def test_answered_sql_never_isolates_fewer_than_k(rows, k, asked):
    with dc.Gateway(people(rows, salary=list(range(rows))), guard=dc.Restriction(k=k)) as gate:
        history = [[1] * rows]
        for condition, user in asked:
            answer = gate.ask(
                f"SELECT SUM(salary) FROM people WHERE {sql_of(condition)}", user=user
            )
            row = members(condition, rows)
            if answer.kind == "exact":
                assert answer.value() == sum(n for n, held in enumerate(row) if held)
                history.append(row)
            else:
                assert not any(row) or isolates([*history, row], rows, k)
        assert not isolates(history, rows, k)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(conditions, st.sampled_from(["sum", "avg", "count"])), max_size=8),
    st.lists(st.integers(0, 10**6), min_size=9, max_size=9),
    st.sampled_from([{"tells": "accepted"}, {"categorical": ("salary",)}]),
)
def test_refusals_do_not_depend_on_values(asked, salary, settings_):
    # Everything follows from settings and query sets.
    guard = dc.Restriction(k=3, **settings_)
    outcomes = []
    for values in (salary, salary[::-1], [0] * 9):
        with dc.Gateway(people(9, salary=values), guard=guard) as gate:
            outcome = []
            for condition, function in asked:
                what = "COUNT(*)" if function == "count" else f"{function}(salary)"
                answer = gate.ask(f"SELECT {what} FROM people WHERE {sql_of(condition)}")
                outcome.append((answer.kind, answer.code, answer.reason, answer.withheld))
            outcomes.append(outcome)
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_groups_are_withheld_with_a_partner():
    # Three groups of 4 and one of 2: with the total known, the group of 2 needs a partner.
    table = pa.table({"g": list("aaaabbbbccccdd"), "salary": list(range(14))})
    data = dc.read(table, roles={"g": "quasi", "salary": "confidential"}, name="people")
    with dc.Gateway(data, guard=dc.Restriction(k=3)) as gate:
        answer = gate.ask("SELECT g, SUM(salary) AS s FROM people GROUP BY g ORDER BY g")
    assert answer.withheld == 2
    assert len(answer.table) == 2
    assert "d" not in answer.table.column("g").to_pylist()


def test_missing_values_count_as_absent():
    table = pa.table({"g": list("aaaabbbb"), "salary": [1, None, None, None, 1, 2, 3, 4]})
    data = dc.read(table, roles={"g": "quasi", "salary": "confidential"}, name="people")
    with dc.Gateway(data, guard=dc.Restriction(k=3, missing=("salary",))) as gate:
        assert gate.ask("SELECT SUM(salary) FROM people WHERE g = 'a'").refused
        assert gate.ask("SELECT COUNT(*) FROM people WHERE g = 'a'").value() == 4
        assert gate.ask("SELECT COUNT(salary) FROM people WHERE g = 'a'").refused


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT MAX(salary) FROM people", "not-linear"),
        ("SELECT VARIANCE(salary) FROM people", "not-linear"),
        ("SELECT SUM(salary * 2) FROM people", "not-a-column"),
        ("SELECT COUNT(*) FROM people WHERE salary > 3", "confidential-condition"),
        ("SELECT salary, COUNT(*) FROM people GROUP BY salary", "confidential-condition"),
        ("SELECT SUM(salary) FROM people WHERE a = 99", "too-few-records"),
    ],
)
def test_what_is_not_answered_exactly(sql, code):
    with dc.Gateway(people(9, salary=range(9)), guard=dc.Restriction(k=2)) as gate:
        assert gate.ask(sql).code == code


def test_partition_answers_unions_of_cells_only():
    guard = dc.Restriction(k=3, mode="partition")
    with dc.Gateway(people(9, salary=range(9)), guard=guard) as gate:
        keeper = gate._keeper(guard)
        assert np.bincount(keeper._cells).min() >= 3
        assert gate.ask("SELECT SUM(salary) FROM people").value() == 36
        assert gate.ask("SELECT SUM(salary) FROM people WHERE c <> 4").refused
        kinds = {gate.ask(f"SELECT SUM(salary) FROM people WHERE a = {n}").kind for n in range(3)}
        assert kinds == {"exact"}


@settings(max_examples=20, deadline=None)
@given(st.integers(6, 10), st.integers(2, 3), st.lists(conditions, max_size=8))
def test_partition_never_isolates_fewer_than_k(rows, k, asked):
    guard = dc.Restriction(k=k, mode="partition")
    with dc.Gateway(people(rows, salary=range(rows)), guard=guard) as gate:
        history = [[1] * rows]
        for condition in asked:
            sql = f"SELECT SUM(salary) FROM people WHERE {sql_of(condition)}"
            if not gate.ask(sql).refused:
                history.append(members(condition, rows))
        assert not isolates(history, rows, k)


# -- users with different guards -------------------------------------------------------------------
def test_users_of_different_k_learn_nothing_together():
    guards = {"user:eve": dc.Restriction(k=2)}
    with dc.Gateway(
        people(14, salary=range(14)), guard=dc.Restriction(k=5), policies=guards
    ) as gate:
        ask = "SELECT SUM(salary) FROM people WHERE c IN ({})"
        assert gate.ask(ask.format("0, 1, 2"), user="eve").kind == "exact"
        assert gate.ask(ask.format("4, 5"), user="eve").kind == "exact"
        # Six records, which Ana alone might be told; less Eve's two sets it is one.
        assert gate.ask(ask.format("0, 1, 2, 3, 4, 5"), user="ana").refused
        assert gate.ask(ask.format("0, 1, 2, 3, 6, 7"), user="ana").kind == "exact"


@settings(max_examples=25, deadline=None)
@given(
    st.integers(7, 10),
    st.lists(st.tuples(conditions, st.sampled_from(["ana", "bob", "eve"])), max_size=10),
)
def test_answers_of_all_guards_together_keep_the_smallest_k(rows, asked):
    guards = {"user:bob": dc.Restriction(k=3, mode="partition"), "user:eve": dc.Restriction(k=2)}
    data = people(rows, salary=range(rows))
    with dc.Gateway(data, guard=dc.Restriction(k=4), policies=guards) as gate:
        history = [[1] * rows]
        for condition, user in asked:
            sql = f"SELECT SUM(salary) FROM people WHERE {sql_of(condition)}"
            if not gate.ask(sql, user=user).refused:
                history.append(members(condition, rows))
        assert not isolates(history, rows, 2)


def test_answers_of_earlier_settings_count(tmp_path):
    ask = "SELECT SUM(salary) FROM people WHERE c IN ({})"
    data, place = people(14, salary=range(14)), tmp_path / "l.db"
    with dc.Gateway(data, guard=dc.Restriction(k=2), ledger=place) as gate:
        assert gate.ask(ask.format("0, 1, 2")).kind == "exact"
        assert gate.ask(ask.format("4, 5")).kind == "exact"
    for guard in (dc.Restriction(k=5), dc.Restriction(k=5, mode="partition")):
        with dc.Gateway(data, guard=guard, ledger=place) as gate:
            assert gate.ask(ask.format("0, 1, 2, 3, 4, 5"), user="ana").refused


# -- intervals -------------------------------------------------------------------------------------
def narrowest(history, sums, n, low, high):
    """Return the width of the tightest interval that follows for a record, by linear programming."""
    widths = []
    for record in range(n):
        goal = np.eye(n)[record]
        ends = [
            sign * linprog(sign * goal, A_eq=history, b_eq=sums, bounds=[(low, high)] * n).fun
            for sign in (1.0, -1.0)
        ]
        widths.append(ends[1] - ends[0])
    return min(widths)


def least_room(history, n):
    """Return the least r of a record: how far it can move if no other moves by more than 1."""
    return min(
        -linprog(-np.eye(n)[i], A_eq=history, b_eq=np.zeros(len(history)), bounds=[(-1, 1)] * n).fun
        for i in range(n)
    )


def play_intervals(rng, n, k, width, margin, questions):
    """Ask several users' questions; compare each decision and what follows with brute force.

    The same questions are asked of data with other values: every decision must be the same.
    """
    low, high = 0.0, 100.0
    guard = dc.Restriction(k=k, interval=width, margin=margin, bounds={"salary": (low, high)})
    # Values at the very ends of what the margin allows are the hardest to hide.
    ends = np.array([low + guard.inside, high - guard.inside])
    kinds = [rng.choice(ends, n), rng.uniform(*ends, n), rng.uniform(*ends, n)]
    outcomes = []
    for salary in kinds:
        history, sums, outcome = [np.ones(n)], [float(np.sum(salary))], []
        with dc.Gateway(records(n, salary), guard=guard) as gate:
            for number, members in enumerate(questions):
                what = ", ".join(map(str, members))
                answer = gate.ask(
                    f"SELECT SUM(salary) FROM people WHERE c IN ({what})", user=f"u{number % 3}"
                )
                outcome.append((answer.kind, answer.code, answer.reason))
                row = np.isin(np.arange(n), members).astype(float)
                if answer.kind == "exact":
                    history.append(row)
                    sums.append(float(answer.value()))
                elif not outcomes:  # a refusal has a reason: compared once, decisions are the same
                    proposed = [*history, row]
                    assert (
                        isolates(proposed, n, k)
                        or least_room(proposed, n) < width / (2 * guard.inside) - 1e-9
                    )
        assert narrowest(history, sums, n, low, high) >= width * (1 - 1e-5)
        outcomes.append(outcome)
    assert outcomes[0] == outcomes[1] == outcomes[2]
    return Counter(kind for kind, _, _ in outcomes[0])


def records(n, salary):
    table = pa.table({"c": list(range(n)), "salary": pa.array(salary, type=pa.float64())})
    return dc.read(table, roles={"c": "quasi", "salary": "confidential"}, name="people")


def random_games(rng, games):
    total = Counter()
    for _ in range(games):
        n, k = int(rng.integers(5, 11)), int(rng.integers(2, 5))
        width = float(rng.choice([10.0, 30.0]))
        margin = width * float(rng.choice([0.5, 0.7, 1.0]))
        density = rng.choice([0.3, 0.4, 0.6])
        questions = [np.flatnonzero(rng.random(n) < density).tolist() or [0] for _ in range(8)]
        total += play_intervals(rng, n, k, width, margin, questions)
    return total


def test_no_record_is_narrowed_below_its_interval_and_refusals_are_blind():
    total = random_games(np.random.default_rng(5), 12)
    assert total["exact"] > 10
    assert total["refused"] > 10


@pytest.mark.slow
def test_thousands_of_games_narrow_no_record_below_its_interval():
    total = random_games(np.random.default_rng(6), 1000)  # each on three databases
    print(dict(total))  # noqa: T201  # figures of a run
    assert total["exact"] > 1000


def test_interval_refuses_what_k_alone_would_answer():
    # Whoever knows a + b, a + c and b + c + d: a moving by 1 would move d by 2.
    sets = [[0, 1], [0, 2], [1, 2, 3]]
    kinds = {}
    for interval in (None, 20.0):
        bounds = {} if interval is None else {"salary": (0.0, 100.0)}
        guard = dc.Restriction(k=2, interval=interval, bounds=bounds)
        with dc.Gateway(records(8, [50.0] * 8), guard=guard) as gate:
            kinds[interval] = [
                gate.ask(
                    f"SELECT SUM(salary) FROM people WHERE c IN ({', '.join(map(str, members))})"
                ).kind
                for members in sets
            ]
            told = gate.explain("SELECT SUM(salary) FROM people WHERE c IN (1, 2, 3)")
            assert (told.kind == "refused") == (interval is not None)
    assert kinds[None] == ["exact"] * 3
    assert kinds[20.0] == ["exact", "exact", "refused"]


@pytest.mark.parametrize("others", [0, 4000])
def test_many_atoms_are_decided_alike(others):
    # Beyond a number of atoms only some may move: more may be refused, never less.
    rng = np.random.default_rng(3)
    counts = np.concatenate([np.ones(120, np.int64), np.full(others // 40, 40, np.int64)])
    few = Room(counts, 1.0, most_atoms=50, chunk=20)
    all_ = Room(counts, 1.0, most_atoms=10**6, chunk=20)
    answered = 0
    for _ in range(25):
        inside = np.flatnonzero(rng.random(counts.size) < 0.5)
        plan = few.after(inside)
        exact = all_.after(inside)
        if plan is not None:
            assert exact is not None
            few.accept(plan)
            all_.accept(exact)
            answered += 1
    assert answered > 3


def test_settings_that_make_no_sense_are_explained():
    with pytest.raises(InputError, match=r"lie less than 1\.5 inside their bounds"):
        dc.Gateway(people(9, salary=range(1, 10)), guard=dc.Restriction(k=2, interval=3.0))
    with pytest.raises(InputError, match="leaves an interval of 2 at most"):
        dc.Restriction(k=2, interval=3.0, margin=1.0, bounds={"salary": (0, 9)})
    with pytest.raises(InputError, match="narrower than twice the margin"):
        dc.Restriction(k=2, interval=10.0, bounds={"salary": (0, 9)})
    with pytest.raises(InputError, match="lie less than 1 inside their bounds"):
        dc.Gateway(
            people(9, salary=range(9)),
            guard=dc.Restriction(k=2, interval=2.0, bounds={"salary": (0, 90)}),
        )
    with pytest.raises(InputError, match="more than the 9 records"):
        dc.Gateway(people(9, salary=range(9)), guard=dc.Restriction(k=10))
    table = pa.table({"u": [1, 1, 2], "salary": [1, 2, 3]})
    data = dc.read(table, roles={"salary": "confidential"}, unit="u", name="people")
    with pytest.raises(InputError, match="several records"):
        dc.Gateway(data, guard=dc.Restriction(k=2))


def large(rows):
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "sector": pa.array(np.char.add("s", rng.integers(0, 20, rows).astype(str))),
            "region": pa.array(np.char.add("r", rng.integers(0, 50, rows).astype(str))),
            "age": pa.array(rng.integers(18, 90, rows)),
            "salary": pa.array(rng.integers(10_000, 200_000, rows)),
        }
    )
    roles = {"sector": "quasi", "region": "quasi", "age": "quasi", "salary": "confidential"}
    return dc.read(table, roles=roles, name="people")


def attack_everybody(rows, victims):
    """Run every attack on small groups of a large table; return the reports."""
    data = large(rows)
    cells = data.frequencies(["sector", "region", "age"]).to_pylist()
    few = [cell for cell in cells if cell["count"] <= 4][:victims]
    assert few
    reports = []
    with dc.Gateway(data, guard=dc.Restriction(k=5)) as gate:
        for cell in few:
            who = " AND ".join(
                f"{name} = {value!r}" for name, value in cell.items() if name != "count"
            )
            victim = Victim(
                "people", "salary", who, f"region = {cell['region']!r}",
                f"sector IN ('s1', 's2', 's3', {cell['sector']!r}) AND age < 50",
            )  # fmt: skip
            truth = RawSum(data).of(who)
            reports += [a().run(gate, victim, truth) for a in attacks_on("gateway").values()]
            reports.append(dc.Tracker(kind="individual").run(gate, victim, truth))
    return reports


class RawSum:
    def __init__(self, data):
        self._data = data

    def of(self, condition):
        from discreet.attacks import RawDatabase

        sql = f"SELECT SUM(salary) FROM people WHERE {condition}"
        return float(RawDatabase(self._data).ask(sql).table.column(0)[0].as_py())


def test_known_attacks_are_refused():
    reports = attack_everybody(20_000, 4)
    assert all(report.refused for report in reports)
    assert not any(report.lower is not None for report in reports)


@pytest.mark.slow
def test_known_attacks_are_refused_on_a_million_rows():
    reports = attack_everybody(1_000_000, 25)
    assert all(report.refused for report in reports)
    assert not any(report.lower is not None for report in reports)


# -- EXPLAIN ---------------------------------------------------------------------------------------
def suggested(gate, sql):
    """Return what EXPLAIN names instead of a refused question, having seen that it is answered."""
    told = gate.explain(sql)
    assert told.kind == "refused"
    assert gate.ask(sql).refused
    if told.instead:
        assert gate.ask(told.instead).kind == "exact"
    return told.instead


def test_explain_names_a_question_close_by():
    rows = 400
    regions = [f"r{n % 8}" for n in range(rows)]
    table = pa.table(
        {
            "age": [20 + n // 8 for n in range(rows)],
            "region": regions,
            "salary": list(range(rows)),
        }
    )
    land = dc.Hierarchy.from_levels({"North": ["r0", "r1", "r2", "r3"], "South": ["r4", "r5", "r6", "r7"]})  # fmt: skip
    data = dc.read(
        table,
        roles={"age": "quasi", "region": "quasi", "salary": "confidential"},
        hierarchies={"region": land},
        name="people",
    )
    with dc.Gateway(data, guard=dc.Restriction(k=3)) as gate:
        # Rolling a region up adds three records, one age more on either side two.
        assert (
            'BETWEEN 39 AND 41 AND "people"."region" = \'r2\''
            in suggested(gate, "SELECT SUM(salary) FROM people WHERE age = 40 AND region = 'r2'")
        )  # fmt: skip
        assert '"age" < 23' in suggested(
            gate, "SELECT AVG(salary) FROM people WHERE age < 22 AND region = 'r5'"
        )
        keys = suggested(gate, "SELECT age, region, SUM(salary) FROM people GROUP BY age, region")
        assert keys.endswith('GROUP BY "people"."age"')
        far = suggested(gate, "SELECT SUM(salary) FROM people WHERE age = 3000")
        assert far.endswith("BETWEEN 68 AND 3000")

    few = pa.table({"region": regions[:16], "salary": list(range(16))})
    data = dc.read(
        few,
        roles={"region": "quasi", "salary": "confidential"},
        hierarchies={"region": land},
        name="people",
    )
    with dc.Gateway(data, guard=dc.Restriction(k=3)) as gate:
        named = suggested(gate, "SELECT SUM(salary) FROM people WHERE region = 'r3'")
        assert named.endswith("IN ('r0', 'r1', 'r2', 'r3')")


def test_explain_names_the_cells_of_a_partition():
    guard = dc.Restriction(k=4, mode="partition")
    table = pa.table(
        {
            "sex": ["f", "m"] * 20,
            "age": [20 + n // 2 for n in range(40)],
            "salary": list(range(40)),
        }
    )
    roles = {"sex": "quasi", "age": "quasi", "salary": "confidential"}
    with dc.Gateway(dc.read(table, roles=roles, name="people"), guard=guard) as gate:
        named = suggested(gate, "SELECT SUM(salary) FROM people WHERE sex = 'f' AND age = 25")
        assert "\"sex\" = 'f'" in named
        assert '"age" BETWEEN 24 AND 27' in named
        both = suggested(gate, "SELECT SUM(salary) FROM people WHERE age BETWEEN 25 AND 26")
        assert both.count("BETWEEN 24 AND 27") == 2


def test_without_bounds_what_is_never_negative_is_known_to_be():
    """Pairs with one in common leave a third record too little room, bounds declared or not."""
    guard = dc.Restriction(k=2, interval=3.0, margin=1.5)
    for values in (range(2, 11), range(-3, 6)):
        with dc.Gateway(people(9, salary=values), guard=guard) as gate:
            assert gate.ask("SELECT SUM(salary) FROM people", user="ana").kind == "exact"


def test_refusals_do_not_tell_that_a_sum_is_too_large():
    kinds = []
    for large in (1, 2**62):
        table = pa.table({"g": list("aaaabb"), "salary": [1, 2, 3, 4, large, large]})
        data = dc.read(table, roles={"g": "quasi", "salary": "confidential"}, name="people")
        with dc.Gateway(data, guard=dc.Restriction(k=3)) as gate:
            kinds.append(gate.ask("SELECT SUM(salary) FROM people WHERE g = 'b'").code)
    assert kinds == ["too-few-records"] * 2


def test_counts_of_different_records_are_asked_apart():
    table = pa.table({"g": list("aaaabbbb"), "salary": [1, 5, 6, None, 1, 2, 3, 4]})
    data = dc.read(table, roles={"g": "quasi", "salary": "confidential"}, name="people")
    with dc.Gateway(data, guard=dc.Restriction(k=3, missing=("salary",))) as gate:
        # The difference would be the one record without a salary.
        together = gate.ask("SELECT COUNT(*), COUNT(salary) FROM people WHERE g = 'a'")
        assert together.code == "several-counts"
        assert gate.ask("SELECT COUNT(*) FROM people WHERE g = 'a'").value() == 4
        assert gate.ask("SELECT COUNT(salary) FROM people WHERE g = 'a'").refused


def test_an_answer_that_could_not_be_recorded_is_forgotten(tmp_path, monkeypatch):
    def asked(gate, end):
        return gate.ask(f"SELECT SUM(salary) FROM people WHERE c < {end}", user="ana")

    data = people(9, salary=range(9))
    place = tmp_path / "ledger.db"
    with (
        dc.Gateway(data, guard=dc.Restriction(k=2), ledger=place) as one,
        dc.Gateway(data, guard=dc.Restriction(k=2), ledger=place) as other,
    ):
        with monkeypatch.context() as broken:
            broken.setattr(one.ledger, "submit", lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                asked(one, 4)
        assert asked(other, 5).kind == "exact"
        # The answer of the other gateway counts, and not the one that never left.
        assert asked(one, 6).refused
        assert asked(one, 3).kind == "exact"
