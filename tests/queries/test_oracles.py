"""Nothing but the protected numbers depends on a secret value: not kind, error, charge or ledger."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from tests.queries.oracles import GUARDS, dataset, differences, entries, outcome, pair


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
    found, asked, kinds = differences(dataset, GUARDS[name], pairs=50, statements=40, seed=2)
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
    found, asked, kinds = differences(load, GUARDS[name], pairs=50, statements=40, seed=4)
    print(name, asked, kinds)  # noqa: T201  # figures
    assert found == []
    assert ("refused", "not-computable") not in kinds


@pytest.mark.slow
@pytest.mark.parametrize("name", ["perturbation", "camouflage", "restriction"])
def test_a_hundred_pairs_on_spark(spark_engine, name):
    load = _in(spark_engine)
    found, asked, kinds = differences(load, GUARDS[name], pairs=5, statements=20, seed=5)
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
