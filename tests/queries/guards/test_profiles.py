"""Answers from sums over profiles are those the engine gives, whatever the columns hold."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.data.sql import parse
from discreet.queries.guards._profiles import Profiles

QUESTIONS = [
    "SELECT COUNT(*) FROM people",
    "SELECT COUNT(*), COUNT(income), SUM(income), AVG(income) FROM people WHERE age BETWEEN 30 AND 60",
    "SELECT region, SUM(income), AVG(wealth) FROM people WHERE age >= 20 AND sex = 'f' GROUP BY region",
    "SELECT sex, region, COUNT(*) FROM people WHERE NOT (age < 40 AND region = 'n') GROUP BY sex, region",
    "SELECT age % 10 AS d, COUNT(*), SUM(debt) FROM people WHERE region IS NOT NULL GROUP BY 1",
    "SELECT sex, AVG(debt) FROM people WHERE region LIKE 'n%' OR age <> -5 GROUP BY sex",
    "SELECT SUM(income) FROM people WHERE age > 1000",
    "SELECT region, COUNT(*) FROM people WHERE age > 1000 GROUP BY region",
]


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    n = 4000
    region = np.array([None, "n", "ne", "s"], object)[rng.integers(0, 4, n)]
    income = [
        None if r < 0.1 else int(v)
        for r, v in zip(rng.random(n), rng.integers(-50, 9000, n), strict=True)
    ]
    table = pa.table(
        {
            "age": pa.array([None if r < 0.02 else int(a) for r, a in zip(rng.random(n), rng.integers(18, 90, n), strict=True)]),
            "sex": pa.array(np.where(rng.random(n) < 0.5, "f", "m")),
            "region": pa.array(region.tolist(), pa.string()),
            "income": pa.array(income, pa.int64()),
            "wealth": pa.array(rng.lognormal(10, 1, n)),
            "debt": pa.array([decimal.Decimal(int(v)) / 100 for v in rng.integers(0, 10**6, n)], pa.decimal128(12, 2)),
        }
    )  # fmt: skip
    roles = dict.fromkeys(("age", "sex", "region"), "quasi")
    secret = dict.fromkeys(("income", "wealth", "debt"), "confidential")
    return dc.read(table, roles={**roles, **secret}, name="people")


def alike(found, expected, rel=1e-12):
    return len(found) == len(expected) and all(
        a == b or (None not in (a, b) and a == pytest.approx(b, rel=rel, abs=1e-3))
        for a, b in zip(found, expected, strict=True)
    )


def test_groups_and_conditions_are_those_of_the_engine(people):
    with dc.Gateway(people, guard=dc.Restriction(k=2, missing=("income",))) as gate:
        profiles = Profiles.of(gate.data)
        for sql in QUESTIONS:
            query = parse(sql, gate.catalog)
            from sqlglot import exp

            expected = gate.data.fetch(query, {"n": exp.Count(this=exp.Star())})
            keys, parts = profiles.groups(query)
            found = {
                tuple(key.values()): profiles.records(part)
                for key, part in zip(keys.to_pylist() if query.keys else [{}], parts, strict=True)
            }
            wanted = {tuple(row.values())[:-1]: row["n"] for row in expected.to_pylist()}
            assert found == wanted
        profiles.close()


def test_exact_answers_equal_the_engines(people):
    guard = dc.Restriction(k=2, missing=("income",))
    with dc.Gateway(people, guard=guard) as gate:
        keeper = gate._keeper(guard)
        from discreet.queries.guards._exact_values import typed

        for sql in QUESTIONS[:6]:
            query = parse(sql, gate.catalog)
            keys, parts = keeper._profiles.grouping(query)
            found = keeper._values.of(query, keys, parts)
            columns = {f"m{n}": typed(m, "duckdb") for n, m in enumerate(query.measures)}
            expected = gate.data.fetch(query, columns)
            assert found.schema.names == expected.schema.names
            order = [(f"k{n}", "ascending") for n in range(len(query.keys))]
            if order:
                found, expected = found.sort_by(order), expected.sort_by(order)
            for name in found.column_names:
                assert alike(found.column(name).to_pylist(), expected.column(name).to_pylist())


@pytest.mark.parametrize(
    "guard",
    [
        dc.Perturbation(
            epsilon=1e9, per_query=1e7, bounds={"income": (-50, 9000), "wealth": (0, 10**6), "debt": (0, 10**4)}, delta=1e-6
        ),
    ],
    ids=lambda guard: guard.name,
)  # fmt: skip
def test_guards_answer_alike_with_and_without_profiles(people, guard, tmp_path):
    # One ledger, so that its keys are the same.
    with (
        dc.Gateway(people, guard=guard, ledger=tmp_path / "ledger.db") as plain,
        dc.Gateway(people, guard=guard, ledger=tmp_path / "ledger.db") as prepared,
    ):
        plain._keeper(guard)._shortcut.never()
        prepared.prepare()
        keeper = prepared._keeper(guard)
        assert keeper._shortcut._profiles is not None
        for sql in [
            *QUESTIONS,
            "SELECT sex, VARIANCE(wealth), STDDEV(wealth) FROM people GROUP BY sex",
        ]:
            try:
                query = parse(sql, plain.catalog)
                a = plain._keeper(guard).answer(query, "u").rows
                b = keeper.answer(query, "u").rows
            except dc.RefusedError:
                continue
            assert a.schema.names == b.schema.names
            order = [(f"k{n}", "ascending") for n in range(len(query.keys))]
            if order:
                a, b = a.sort_by(order), b.sort_by(order)
            for name in a.column_names:
                # At this ε the noise is far below one grain.
                assert alike(a.column(name).to_pylist(), b.column(name).to_pylist(), 1e-6), (
                    sql,
                    name,
                )


def test_camouflage_of_variance_holds_the_truth_far_from_the_mean():
    # A small group of large and nearly equal values: products of sums cancel there.
    rng = np.random.default_rng(1)
    salary = np.concatenate([rng.normal(1000, 10, 5000), rng.normal(1e7, 0.5, 50)])
    table = pa.table({"part": ["many"] * 5000 + ["few"] * 50, "salary": salary})
    people = dc.read(table, roles={"part": "quasi", "salary": "confidential"}, name="people")
    with dc.Gateway(people, guard=dc.Camouflage(bound=1e-9, minimum=0.0)) as gate:
        answer = gate.ask("SELECT part, VAR_POP(salary) AS v FROM people GROUP BY part")
    truth = {"many": salary[:5000].var(), "few": salary[5000:].var()}
    for part, low, high in answer.table.select(["part", "v_lower", "v_upper"]).to_pandas().values:
        assert low <= truth[part] <= high


def test_changed_records_are_noticed(tmp_path):
    import duckdb

    from discreet.errors import EngineError

    place = tmp_path / "people.db"
    with duckdb.connect(str(place)) as database:
        database.execute(
            "CREATE TABLE people AS SELECT i % 5 AS age, i AS salary FROM range(100) t(i)"
        )
    people = dc.read(f"duckdb:///{place}#people", roles={"age": "quasi", "salary": "confidential"}, name="people")  # fmt: skip
    with dc.Gateway(people, guard=dc.Restriction(k=2)) as gate:
        profiles = Profiles.of(gate.data)
        people.engine._connection.execute("INSERT INTO people VALUES (1, 1)")
        query = parse("SELECT SUM(salary) FROM people", gate.catalog)
        from sqlglot import exp

        tree = exp.Sum(this=exp.column("salary", quoted=True))
        with pytest.raises(EngineError, match="changed"):
            profiles.sums("salary", lambda: exp.cast(tree, "bigint"), profiles.grouping(query)[1])
        profiles.close()
