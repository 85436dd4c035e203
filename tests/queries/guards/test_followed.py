"""Confidential numbers that follow from public columns, or from each other along a bent line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import InputError

ROWS = 400
rng = np.random.default_rng(1)
GRADE = rng.integers(1, 40, ROWS)
STEP = rng.integers(0, 9, ROWS)
SALARY = rng.integers(10, 400, ROWS) * 1000
SMALL = rng.normal(0, 100, ROWS)
WRONG = rng.random(ROWS) < 0.01


def told(gate) -> list[str]:
    """What opening says of columns that follow from others; not how many profiles are kept."""
    return [notice for notice in gate.notices if "follow" in notice]


def people(**confidential):
    public = {
        "grade": GRADE,
        "step": STEP,
        "sex": np.where(np.arange(ROWS) % 2, "f", "m"),
        "age": np.random.default_rng(2).integers(18, 80, ROWS),
    }
    frame = pd.DataFrame({"id": range(ROWS), **public, **confidential})
    roles = {"id": "identifier"} | dict.fromkeys(public, "quasi")
    return frame, roles | dict.fromkeys(confidential, "confidential")


def opened(data, **settings):
    frame, roles = data
    return dc.Gateway(
        dc.read(frame, roles=roles, name="people"), guard=dc.Restriction(k=3, **settings)
    )


FOLLOWING = {
    "straight": 1000 * GRADE,
    "bent": 1000 * GRADE**2,
    "two columns": 1000 * GRADE + 77 * STEP,
    "two columns, bent": 1000 * GRADE + 77 * STEP**3,
    "with mistakes": np.where(WRONG, 5, 1000 * GRADE),
    "missing": np.where(WRONG, np.nan, 1000.0 * GRADE),
}


@pytest.mark.parametrize("salary", FOLLOWING.values(), ids=FOLLOWING)
def test_numbers_that_public_columns_tell_are_not_answered_exactly(salary):
    data = people(salary=salary)
    with pytest.raises(InputError) as failure:
        opened(data)
    assert (failure.value.code, failure.value.column) == ("follows-from-public", "salary")
    with opened(data, categorical=("salary",)) as gate:
        answer = gate.ask("SELECT AVG(salary) FROM people WHERE grade = 7")
        assert (answer.kind, answer.code) == ("refused", "tells-values")
    with opened(data, tells="accepted") as gate:
        # What it is about: one mean is everybody's salary.
        assert gate.ask("SELECT AVG(salary) FROM people WHERE grade = 7").kind == "exact"
        assert any("salary follows from" in notice for notice in gate.notices)


def test_numbers_that_public_columns_nearly_tell_are_said_to_the_curator():
    for salary in (1000 * GRADE + SMALL, 1000 * GRADE**2 + SMALL):
        with opened(people(salary=salary)) as gate:
            (notice,) = told(gate)
            assert notice.startswith("salary follows from grade, nearly")


@pytest.mark.parametrize(
    "salary",
    [
        SALARY,
        np.where(SMALL > 120, SALARY, 0),
        np.where(SALARY < 300_000, 0, SALARY),
        GRADE + SALARY,
    ],
)
def test_numbers_of_their_own_are_answered(salary):
    with opened(people(salary=salary)) as gate:
        assert told(gate) == []
        assert gate.ask("SELECT SUM(salary) FROM people").kind == "exact"


@pytest.mark.parametrize(
    "other",
    [
        np.where(SALARY > 100_000, 0.4 * SALARY - 20_000, 0.2 * SALARY),
        (SALARY / 1000.0) ** 5,
        -np.log(SALARY),
        SALARY + 700 * GRADE,
    ],
    ids=["in steps", "power", "falling", "with a public column"],
)
def test_columns_that_follow_from_each_other_are_audited_as_one(other):
    # The sums of both columns differ by a group of fewer than k.
    first = "SELECT SUM(salary) FROM people WHERE grade < 20"
    second = "SELECT SUM(other) FROM people WHERE grade < 20 AND NOT (grade = 19 AND step = 3)"
    few = int(((GRADE == 19) & (STEP == 3)).sum())
    assert 0 < few < 3
    for values, kind in (
        (other, "refused"),
        (np.random.default_rng(5).permutation(other), "exact"),
    ):
        with opened(people(salary=SALARY, other=values)) as gate:
            assert gate.ask(first).kind == "exact"
            assert gate.ask(second).kind == kind


@pytest.mark.postgres
def test_the_same_is_found_on_postgres(postgres_engine):
    import pyarrow as pa

    frame, roles = people(salary=1000 * GRADE**2)
    data = dc.read(frame, roles=roles, name="people")
    loaded = dc.Dataset(
        postgres_engine.load(pa.Table.from_pandas(frame)), data.schema, "people", "pyarrow"
    )
    with pytest.raises(InputError) as failure:
        dc.Gateway(loaded, guard=dc.Restriction(k=3))
    assert failure.value.code == "follows-from-public"
