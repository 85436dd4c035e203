"""The gateway: the seeds' questions, idempotence, restarts, policies, joins, engines, threads."""

from __future__ import annotations

import threading

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import discreet as dc
from discreet.attacks import RawDatabase
from discreet.demo import salaries
from discreet.errors import InputError
from discreet.ledger import open_ledger

BOUNDS = {"salary": (0, 500_000)}
QUESTIONS = {
    "SELECT COUNT(*) FROM people WHERE salary > 100000": 5,
    "SELECT SUM(salary) FROM people WHERE sector = 'HC'": 482_000,
    "SELECT COUNT(*) FROM people WHERE sector = 'IT' AND region = 'TGN'": 3,
    "SELECT COUNT(*) FROM people WHERE sector = 'Fin' AND region = 'TGN'": 1,
    "SELECT AVG(salary) FROM people WHERE sector = 'Fin' AND region = 'TGN'": 150_000,
}


@pytest.mark.parametrize(("sql", "truth"), QUESTIONS.items())
def test_published_questions_on_the_raw_table(sql, truth):
    table = RawDatabase(salaries()).ask(sql).table
    assert table.column(0)[0].as_py() == truth


def test_published_questions_under_restriction():
    with dc.Gateway(salaries(), guard=dc.Restriction(k=3)) as gate:
        kinds = [gate.ask(sql).kind for sql in QUESTIONS]
        codes = [gate.ask(sql).code for sql in QUESTIONS]
        values = [a.value() for sql in QUESTIONS if not (a := gate.ask(sql)).refused]
    assert kinds == ["refused", "exact", "exact", "refused", "refused"]
    assert codes[0] == "confidential-condition"
    assert codes[3] == codes[4] == "too-few-records"
    assert values == [482_000, 3]


def test_published_questions_under_camouflage():
    with dc.Gateway(salaries(), guard=dc.Camouflage(bound=0.3)) as gate:
        for sql, truth in QUESTIONS.items():
            answer = gate.ask(sql)
            ends = answer.value()
            low, high = ends if isinstance(ends, tuple) else (ends, ends)
            assert answer.kind == "interval"
            assert low <= truth <= high
            if truth == 150_000:
                assert high - low >= 0.3 * truth


def test_published_questions_under_perturbation():
    guard = dc.Perturbation(epsilon=5000, per_query=1000, bounds=BOUNDS)
    with dc.Gateway(salaries(), guard=guard) as gate:
        for sql, truth in QUESTIONS.items():
            answer = gate.ask(sql)
            assert answer.kind == "noisy"
            assert abs(answer.value() - truth) <= max(0.1 * truth, 1)
        assert gate.ask("SELECT COUNT(*) FROM people").code == "budget-exhausted"


def test_same_question_is_answered_from_the_ledger_whatever_its_spelling():
    guard = dc.Perturbation(epsilon=1, per_query=0.5, bounds=BOUNDS)
    with dc.Gateway(salaries(), guard=guard) as gate:
        first = gate.ask("SELECT COUNT(*) FROM people WHERE region = 'BCN' AND sector = 'IT'")
        again = gate.ask("select count(*) n from People p where p.sector='IT' and region = $1",
                         parameters=["BCN"])  # fmt: skip
        assert again.repeated
        assert not first.repeated
        assert first.value() == again.value()
        assert again.spent == {}
        assert again.left == first.left == {"user": 0.5, "dataset": 0.5}


def test_nothing_is_forgotten_across_a_restart(tmp_path):
    guard = dc.Restriction(k=3)
    path = tmp_path / "ledger.db"
    with dc.Gateway(salaries(), guard=guard, ledger=path) as gate:
        assert gate.ask("SELECT SUM(salary) FROM people WHERE region = 'TGN'").kind == "exact"
        assert gate.ask("SELECT sector, SUM(salary) FROM people GROUP BY sector").kind == "exact"
    difference = "SELECT SUM(salary) FROM people WHERE region = 'TGN' AND sector <> 'Fin'"
    with dc.Gateway(salaries(), guard=guard, ledger=path) as gate:
        assert gate.ask(difference, user="bob").code == "too-few-records"
    with dc.Gateway(salaries(), guard=guard) as fresh:
        # Without the history the same question is harmless: 6 records, 9 left.
        assert fresh.ask(difference, user="bob").kind == "exact"


def test_two_gateways_on_one_ledger_see_each_other(tmp_path):
    path = tmp_path / "ledger.db"
    with (
        dc.Gateway(salaries(), guard=dc.Restriction(k=3), ledger=path) as one,
        dc.Gateway(salaries(), guard=dc.Restriction(k=3), ledger=path) as two,
    ):
        assert one.ask("SELECT SUM(salary) FROM people WHERE region = 'TGN'").kind == "exact"
        difference = "SELECT SUM(salary) FROM people WHERE region = 'TGN' AND sector <> 'Fin'"
        assert two.ask(difference, user="bob").kind == "refused"
        assert two.ask("SELECT SUM(salary) FROM people WHERE sector = 'IT'").kind == "exact"
        assert one.ask("SELECT COUNT(*) FROM people").value() == 15


def test_budgets_hold_under_32_threads():
    guard = dc.Perturbation(epsilon=1.0, per_query=0.05, user_epsilon=0.1, bounds=BOUNDS)
    kinds = []
    with dc.Gateway(salaries(), guard=guard) as gate:

        def client(number):
            for turn in range(4):
                sql = f"SELECT COUNT(*) FROM people WHERE salary > {1000 * turn + number}"
                kinds.append(gate.ask(sql, user=f"u{number}").kind)

        threads = [threading.Thread(target=client, args=(n,)) for n in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert kinds.count("noisy") == 20
        assert gate.ledger.verify().intact
        assert gate.ask("SELECT COUNT(*) FROM people", user="new").code == "budget-exhausted"


def test_restriction_is_safe_under_threads():
    # Half the threads ask for a set, half for the same without one person: never both.
    with dc.Gateway(salaries(), guard=dc.Restriction(k=3)) as gate:
        found = []

        def client(number):
            rest = "" if number % 2 else " AND sector <> 'Fin'"
            sql = f"SELECT SUM(salary) FROM people WHERE region = 'TGN'{rest}"
            found.append((number % 2, gate.ask(sql, user=f"u{number}").kind))

        threads = [threading.Thread(target=client, args=(n,)) for n in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {side for side, kind in found if kind == "exact"} in ({0}, {1})


def test_policies_by_user_role_and_column():
    guard = dc.Restriction(k=3)
    policies = {
        "user:ana": dc.Perturbation(epsilon=1.0, per_query=0.5, bounds={"salary": (0, 600_000)}),
        "role:student": dc.Policy(columns=("sector",)),
    }
    sql = "SELECT AVG(salary) FROM people WHERE region = 'TGN'"
    with dc.Gateway(salaries(), guard=guard, policies=policies) as gate:
        assert gate.ask(sql, user="ana").kind == "noisy"
        assert gate.ask(sql, user="bob").kind == "exact"
        refused = gate.ask(sql, user="carl", roles=["student"])
        assert (refused.code, refused.hint) == ("unknown-column", "choose one of sector")
        assert gate.ask("SELECT COUNT(*) FROM people", user="carl", roles=["student"]).value() == 15
    with pytest.raises(InputError, match="for nobody"):
        dc.Gateway(salaries(), guard=guard, policies={"ana": guard})


def test_declared_joins():
    regions = dc.read(
        pa.table({"code": ["BCN", "TGN"], "coast": ["north", "south"]}), name="regions"
    )
    with dc.Gateway(
        salaries(),
        guard=dc.Restriction(k=3),
        lookups={"regions": regions},
        joins={"regions": ("region", "code")},
    ) as gate:
        answer = gate.ask(
            "SELECT r.coast, COUNT(*) AS n FROM people p JOIN regions r ON p.region = r.code "
            "GROUP BY r.coast ORDER BY n"
        )
        assert answer.table.to_pylist() == [{"coast": "south", "n": 7}, {"coast": "north", "n": 8}]
        assert (
            gate.ask("SELECT COUNT(*) FROM people JOIN regions ON TRUE").code == "unsupported-join"
        )
    twice = dc.read(pa.table({"code": ["BCN", "BCN"]}), name="regions")
    with pytest.raises(InputError, match="not unique"):
        dc.Gateway(
            salaries(),
            guard=dc.Restriction(k=3),
            lookups={"regions": twice},
            joins={"regions": ("region", "code")},
        )


def test_having_order_and_limit_work_on_released_values():
    with dc.Gateway(salaries(), guard=dc.Restriction(k=3)) as gate:
        answer = gate.ask(
            "SELECT sector, COUNT(*) AS n, SUM(salary) / COUNT(*) AS mean FROM people "
            "GROUP BY sector HAVING COUNT(*) >= 3 AND sector <> 'IT' ORDER BY mean DESC LIMIT 1"
        )
    rows = answer.table.to_pylist()
    assert [(row["sector"], row["n"]) for row in rows] == [("Fin", 3)]
    assert rows[0]["mean"] == pytest.approx(485_000 / 3)


def test_explain_says_what_would_happen_and_spends_nothing():
    guard = dc.Perturbation(epsilon=1, per_query=0.25, bounds=BOUNDS)
    with dc.Gateway(salaries(), guard=guard) as gate:
        told = gate.explain("SELECT COUNT(*) AS n FROM people WHERE salary > 3", user="ana")
        assert told.kind == "noisy"
        assert told.cost["epsilon"] == 0.25
        assert told.error_95["n"] == pytest.approx(12.5, abs=0.5)
        assert told.left == {"user": 1.0, "dataset": 1.0}
        as_rows = gate.ask("EXPLAIN SELECT COUNT(*) FROM people", user="ana")
        assert as_rows.kind == "explanation"
        assert gate.ask("EXPLAIN SELECT salary FROM people").reason.startswith("the statement asks")
    with dc.Gateway(salaries(), guard=dc.Restriction(k=3)) as gate:
        told = gate.explain(
            "SELECT AVG(salary) FROM people WHERE sector = 'Fin' AND region = 'TGN'"
        )
        assert told.kind == "refused"
        assert gate.ask(told.instead).kind == "exact"


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_come_back_in_the_type_that_went_in(library):
    import polars as pl

    rows = {"sector": ["a", "a", "b", "b"], "salary": [1.0, 2.0, 3.0, None]}
    source = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library](rows)
    data = dc.read(source, roles={"sector": "quasi", "salary": "confidential"}, name="people")
    with dc.Gateway(data, guard=dc.Restriction(k=2, missing=("salary",))) as gate:
        answer = gate.ask("SELECT COUNT(*) FROM people")
    assert type(answer.frame) is type(source)
    assert answer.columns[0].type == "bigint"


def test_answers_are_reports_without_secrets():
    with dc.Gateway(salaries(), guard=dc.Restriction(k=3)) as gate:
        refused = gate.ask("SELECT AVG(salary) FROM people WHERE sector = 'Fin' AND region = 'TGN'")
        answer = gate.ask("SELECT sector, COUNT(*) FROM people GROUP BY sector")
    assert "150000" not in str(refused.to_dict())
    assert {row["sector"] for row in answer.table.to_pylist()} == {"IT", "HC", "Fin"}
    assert "exact" in str(answer)


def test_closed_gateway_says_so_and_shared_ledger_stays_open():
    with open_ledger() as ledger:
        gate = dc.Gateway(salaries(), guard=dc.Restriction(k=3), ledger=ledger)
        gate.ask("SELECT COUNT(*) FROM people")
        gate.close()
        gate.close()
        with pytest.raises(InputError, match="closed"):
            gate.ask("SELECT COUNT(*) FROM people")
        assert ledger.verify().entries == 2  # the records, and the answer


def test_failure_in_the_engine_is_a_refusal_that_tells_nothing(monkeypatch):
    from discreet.errors import EngineError

    guard = dc.Perturbation(epsilon=1, per_query=0.1, bounds=BOUNDS)
    with dc.Gateway(salaries(), guard=guard) as gate:
        keeper = gate._keeper(guard)

        def fail(query, statistics):
            raise EngineError("Out of Range in row 7: 500000", code="engine-failed")

        monkeypatch.setattr(keeper, "_rows_of", fail)
        answer = gate.ask("SELECT COUNT(*) FROM people")
    assert answer.code == "not-computable"
    assert "500000" not in str(answer.to_dict())


@pytest.mark.parametrize(
    "guard",
    [
        dc.Restriction(k=3),
        dc.Restriction(k=3, mode="partition"),
        dc.Restriction(k=3, interval=1000, bounds={"salary": (-100_000, 600_000)}),
        dc.Camouflage(bound=0.3),
        dc.Perturbation(epsilon=100, per_query=10, bounds=BOUNDS),
        dc.Perturbation(epsilon=100, per_query=10, bounds=BOUNDS, mode="input"),
    ],
    ids=lambda g: f"{g.name}-{getattr(g, 'mode', '')}-{getattr(g, 'interval', '')}",
)
def test_every_guard_answers_from_every_engine(engine, guard):
    rows = engine.materialize(engine.load(salaries().arrow()))
    data = salaries().replace(relation=rows)
    raw = {"IT": (6, 949_000), "HC": (6, 482_000), "Fin": (3, 485_000)}
    with dc.Gateway(data, guard=guard) as gate:
        answer = gate.ask(
            "SELECT sector, COUNT(*) n, SUM(salary) s, AVG(salary) a FROM people GROUP BY sector"
        )
        assert answer.kind == guard.answers
        for row in answer.table.to_pylist():
            count, total = raw[row["sector"]]
            if answer.kind == "exact":
                assert (row["n"], row["s"]) == (count, total)
                assert row["a"] == pytest.approx(total / count)
            if answer.kind == "interval":
                assert row["s_lower"] <= total <= row["s_upper"]
                assert row["a_lower"] <= total / count <= row["a_upper"]
        assert gate.ask("SELECT COUNT(*) FROM people WHERE sector = 'IT'").kind == guard.answers
        others = {
            "restriction": "AVG(salary) FROM people WHERE region <> 'BCN' AND sector IN ('IT', 'HC')",
            "camouflage": "MEDIAN(salary), MAX(salary), VARIANCE(salary) FROM people",
            "perturbation": "MEDIAN(salary), VARIANCE(salary) FROM people WHERE salary < 200000",
        }
        again = gate.ask(f"SELECT {others[guard.name]}")
        assert again.kind in (guard.answers, "refused")
        assert again.code in ("", "too-few-records")
    engine.drop(rows)


def test_gateways_share_a_postgres_ledger(postgres_database):
    data = salaries().replace(name="shared")
    with (
        dc.Gateway(data, guard=dc.Restriction(k=3), ledger=postgres_database) as one,
        dc.Gateway(data, guard=dc.Restriction(k=3), ledger=postgres_database) as two,
    ):
        assert one.ask("SELECT SUM(salary) FROM shared WHERE region = 'TGN'").kind == "exact"
        difference = "SELECT SUM(salary) FROM shared WHERE region = 'TGN' AND sector <> 'Fin'"
        assert two.ask(difference).kind == "refused"


@pytest.mark.parametrize("wrong", ["idd", "xyz"])
def test_hints_do_not_name_identifiers(wrong):
    with dc.Gateway(salaries(), guard=dc.Restriction(k=3)) as gate:
        answer = gate.ask(f"SELECT COUNT(*) FROM people WHERE {wrong} = 1")
    assert answer.code == "unknown-column"
    assert answer.hint == "choose one of region, salary, sector"


@pytest.mark.parametrize("key", ["kind", "span"])
@pytest.mark.parametrize(
    "guard",
    [
        dc.Restriction(k=3),
        dc.Camouflage(bound=0.1),
        dc.Perturbation(epsilon=100, per_query=50, delta=1e-6, bounds={"salary": (0, 10)}),
        dc.Perturbation(
            epsilon=100, per_query=50, bounds={"salary": (0, 10)}, keys={"kind": ("a", "b", "c")}
        ),
    ],
    ids=["restriction", "camouflage", "perturbation", "declared"],
)
def test_columns_that_arrow_does_not_sort_make_groups_too(tmp_path, guard, key):
    with duckdb.connect(str(tmp_path / "people.db")) as made:
        made.execute("CREATE TYPE kind AS ENUM ('b', 'a', 'c')")
        made.execute(
            "CREATE TABLE people AS SELECT (['b', 'a', 'c'])[1 + i % 3]::kind AS kind, "
            "to_months((i % 3)::INT) AS span, i % 11 AS salary FROM range(3000) t(i)"
        )
    data = dc.read(
        f"duckdb:///{tmp_path / 'people.db'}#people",
        roles={"kind": "quasi", "span": "quasi", "salary": "confidential"},
        name="people",
    )
    with dc.Gateway(data, guard=guard) as gate:
        for user in ("first", "prepared"):
            answer = gate.ask(f"SELECT {key}, COUNT(*) AS n FROM people GROUP BY {key}", user=user)
            assert len(answer.table.column(key).to_pylist()) == 3
            assert answer.kind in ("exact", "interval", "noisy")
            gate.prepare()


def test_no_ledger_is_one_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with dc.Gateway(salaries(), guard=dc.Restriction(k=3), ledger=None) as gate:
        assert gate.ask("SELECT COUNT(*) FROM people").value() == 15
    assert list(tmp_path.iterdir()) == []


def test_an_outer_query_that_cannot_work_costs_nothing():
    keys = {"sector": ["IT", "Fin", "HC"]}
    guard = dc.Perturbation(epsilon=3, per_query=1.0, bounds={"salary": (0, 500_000)}, keys=keys)
    inner = "(SELECT sector, COUNT(*) AS n FROM people GROUP BY sector) AS t"
    with dc.Gateway(salaries(), guard=guard) as gate:
        answer = gate.ask(f"SELECT nosuch FROM {inner}", user="ana")
        assert (answer.code, answer.spent) == ("outer-failed", {})
        assert "DuckDB" not in answer.reason
        assert gate.explain(f"SELECT nosuch FROM {inner}", user="ana").kind == "refused"
        assert [entry.kind for entry in gate.ledger.entries()] == ["refused"]
        assert gate.ask(f"SELECT n FROM {inner}", user="ana").left["user"] == 2.0
        # What fails by the released values was charged, and says so.
        late = gate.ask(f"SELECT CAST(sector AS BIGINT) FROM {inner} WHERE n > -9999", user="bob")
        assert (late.code, late.spent, late.left["user"]) == ("outer-failed", {"epsilon": 1.0}, 2.0)
        sampled = gate.ask(f"SELECT n FROM {inner} TABLESAMPLE BERNOULLI (1)", user="ana")
        assert sampled.code == "unsupported-clause"


def test_a_statement_refused_halfway_says_what_it_has_cost():
    # Two questions, and a budget for one of them.
    sql = "SELECT COUNT(*) FILTER (WHERE sector = 'IT') AS it, COUNT(*) AS n FROM people"
    guard = dc.Perturbation(epsilon=1, per_query=0.6, bounds={"salary": (0, 500_000)})
    with dc.Gateway(salaries(), guard=guard) as gate:
        answer = gate.ask(sql, user="ana")
        assert (answer.code, answer.spent) == ("budget-exhausted", {"epsilon": 0.6})
        assert answer.left["user"] == pytest.approx(0.4)
