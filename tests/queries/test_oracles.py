"""Nothing but the protected numbers depends on a secret value: not kind, error, charge or ledger.

A pair is two databases that differ in one secret value and a statement that both are asked. Opening
gateways costs more than asking, so each two databases are asked many statements: the slow tests ask 40
of each of 50 two databases under each of five guards, which is 10,000 pairs (250 different changes of a
value) on DuckDB and as many on PostgreSQL, and 20 of each of five under three guards, 300, on Spark. The
whole ledgers of two databases are compared as well. `DISCREET_PAIRS=0.1` asks about a tenth of the databases.
"""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from tests.queries.oracles import GUARDS, dataset, differences, entries, outcome, pair


def share(pairs):
    """Return how many databases to ask about: all, or a part that the environment names."""
    return max(1, round(pairs * float(os.environ.get("DISCREET_PAIRS", "1"))))


@pytest.mark.parametrize("name", GUARDS)
def test_answers_differ_in_protected_numbers_alone(name):
    found, asked, kinds = differences(dataset, GUARDS[name], pairs=2, statements=20, seed=1)
    assert found == []
    assert asked == 40
    # The statements do reach the engine, and none of them fails there.
    assert any(kind != "refused" for kind, _ in kinds)
    assert ("refused", "not-computable") not in kinds


@pytest.mark.slow
@pytest.mark.parametrize("name", GUARDS)
def test_ten_thousand_pairs_differ_in_protected_numbers_alone(name):
    found, asked, kinds = differences(dataset, GUARDS[name], pairs=share(50), statements=40, seed=2)
    print(name, asked, kinds)  # noqa: T201  # figures
    assert found == []
    assert ("refused", "not-computable") not in kinds


def _in(engine):
    def load(table):
        return dc.Dataset(engine.load(table), dataset(table).schema, "people", "pyarrow")

    return load


@pytest.mark.parametrize("name", ["perturbation", "camouflage", "restriction"])
def test_the_same_on_postgres(postgres_engine, name):
    load = _in(postgres_engine)
    found, asked, kinds = differences(load, GUARDS[name], pairs=1, statements=15, seed=3)
    assert found == []
    assert asked == 15
    assert ("refused", "not-computable") not in kinds


@pytest.mark.slow
@pytest.mark.parametrize("name", GUARDS)
def test_ten_thousand_pairs_on_postgres(postgres_engine, name):
    load = _in(postgres_engine)
    found, asked, kinds = differences(load, GUARDS[name], pairs=share(50), statements=40, seed=4)
    print(name, asked, kinds)  # noqa: T201  # figures
    assert found == []
    assert ("refused", "not-computable") not in kinds


@pytest.mark.slow
@pytest.mark.parametrize("name", ["perturbation", "camouflage", "restriction"])
def test_three_hundred_pairs_on_spark(spark_engine, name):
    load = _in(spark_engine)
    found, asked, kinds = differences(load, GUARDS[name], pairs=share(5), statements=20, seed=5)
    print(name, asked, kinds)  # noqa: T201  # figures
    assert found == []
    assert ("refused", "not-computable") not in kinds


def test_the_check_itself_finds_an_oracle(monkeypatch):
    # Computed as it is written, the statement fails on a large salary and not on a small one.
    sql = "SELECT COUNT(*) FROM people WHERE salary * 1000000000000 > 5"
    table = pair(np.random.default_rng(1), missing=False)[0]
    place = table.column_names.index("salary")
    large = table.set_column(place, "salary", pa.array([2**62] * table.num_rows))
    seen = {}
    for naive in (False, True):
        if naive:
            monkeypatch.setattr("discreet.data.sql.query.total", lambda tree: tree.copy())
        for one in (table, large):
            with dc.Gateway(dataset(one), guard=GUARDS["perturbation"]) as gate:
                seen.setdefault(naive, []).append((outcome(gate, sql), entries(gate)))
    assert seen[False][0] == seen[False][1]
    assert seen[True][0] != seen[True][1]
