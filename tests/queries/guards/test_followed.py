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
    with opened(data, tells="accepted", missing=("salary",)) as gate:
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
        np.where(SMALL > 20, SALARY, 0) + np.where(SMALL < -20, SALARY, 0),
        np.where(SALARY < 100_000, 0, SALARY),
        GRADE + SALARY,
    ],
)
def test_numbers_of_their_own_are_answered(salary):
    with opened(people(salary=salary)) as gate:
        assert told(gate) == []
        assert gate.ask("SELECT SUM(salary) FROM people").kind == "exact"


@pytest.mark.parametrize(
    "gain", [np.where(SMALL > 120, SALARY, 0), np.where(SMALL > 10, SALARY, 7)]
)
def test_numbers_that_are_one_for_most_are_not_answered_exactly(gain):
    # A sum of zeros tells everybody of a group, however many other values there are elsewhere.
    data = people(gain=gain)
    with pytest.raises(InputError) as failure:
        opened(data)
    assert (failure.value.code, failure.value.column) == ("undeclared-categorical", "gain")
    with opened(data, categorical=("gain",)) as gate:
        assert gate.ask("SELECT SUM(gain) FROM people").code == "tells-values"
        assert any("gain has few values, or one for most" in notice for notice in gate.notices)
    with opened(data, tells="accepted") as gate:
        sums = gate.ask("SELECT grade, SUM(gain) AS s FROM people GROUP BY grade").table
        assert sums.num_rows  # what it is about: groups in which nobody gained


@pytest.mark.parametrize("guard", [dc.Restriction(k=3), dc.Camouflage(bound=0.3)])
def test_several_records_of_a_unit_are_not_protected_one_by_one(guard):
    # A raise that everybody knows makes eight intervals of one person one narrow interval.
    frame = pd.DataFrame(
        {"person": np.arange(ROWS) // 8, "year": np.arange(ROWS) % 8, "salary": SALARY}
    )
    roles = {"person": "identifier", "year": "quasi", "salary": "confidential"}
    with pytest.raises(InputError) as failure:
        dc.Gateway(dc.read(frame, roles=roles, unit="person", name="people"), guard=guard)
    assert failure.value.code == "several-records"


@pytest.mark.parametrize(
    "other",
    [
        np.where(SALARY > 100_000, 0.4 * SALARY - 20_000, 0.2 * SALARY),
        (SALARY / 1000.0) ** 5,
        -np.log(SALARY),
        SALARY + 700 * GRADE,
        SALARY * GRADE,
    ],
    ids=["in steps", "power", "falling", "with a public column", "times a public column"],
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


def test_a_product_of_public_numbers_is_told_by_them():
    # Rates and hours have so many values that no group is alike in them.
    rate, hours = rng.uniform(10, 90, ROWS), rng.uniform(100, 2000, ROWS)
    frame, roles = people(salary=rate * hours)
    data = frame.assign(rate=rate, hours=hours), roles | {"rate": "quasi", "hours": "quasi"}
    with pytest.raises(InputError) as failure:
        opened(data)
    assert failure.value.code == "follows-from-public"
    apart = data[0].assign(salary=rng.permutation(data[0]["salary"])), data[1]
    with opened(apart) as gate:
        assert told(gate) == []


def test_a_small_part_is_known_from_the_total_and_the_rest():
    # The total is nearly the salary; the bonus follows from both together, and from neither alone.
    bonus = np.random.default_rng(9).integers(100, 2000, ROWS)
    frame, roles = people(total=SALARY + bonus, salary=SALARY, bonus=bonus)
    few = int(np.flatnonzero(np.arange(ROWS) % 2)[0])
    rest = f"sex = 'f' AND NOT (grade = '{GRADE[few]}' AND step = '{STEP[few]}')"
    with opened((frame.astype({"grade": str, "step": str, "age": str}), roles)) as gate:
        both = "SELECT SUM(total), SUM(salary) FROM people WHERE sex = 'f'"
        assert gate.ask(both).kind == "exact"
        assert gate.ask(f"SELECT SUM(bonus) FROM people WHERE {rest}").code == "too-few-records"


OFFICE = np.random.default_rng(6).random(ROWS) < 0.7
SHIFTS = np.where(OFFICE, 0, np.random.default_rng(7).integers(1, 20_000, ROWS))
PARTLY = {
    "equal in a public group": (SALARY + SHIFTS, np.where(OFFICE, "office", "shift")),
    "a multiple in a public group": (0.5 * SALARY + SHIFTS, np.where(OFFICE, "office", "shift")),
    "equal, nobody knows for whom": (SALARY + SHIFTS, np.full(ROWS, "any")),
}


@pytest.mark.parametrize(("total", "contract"), PARTLY.values(), ids=PARTLY)
def test_columns_that_follow_in_a_part_of_the_records_are_audited_as_one(total, contract):
    frame, roles = people(salary=SALARY, total=total)
    data = frame.assign(contract=contract), roles | {"contract": "quasi"}
    rest = "contract <> 'shift' AND grade < 20"
    chosen = (contract != "shift") & (GRADE < 20)
    alike = [(chosen & (g == GRADE) & (s == STEP)).sum() for g, s in zip(GRADE, STEP, strict=True)]
    victim = next(n for n in np.flatnonzero(chosen) if alike[n] < 3)
    with opened(data) as gate:
        assert told(gate) == ["salary and total follow from each other: protected together"]
        assert gate.ask(f"SELECT SUM(total) FROM people WHERE {rest}").kind == "exact"
        others = f"NOT (grade = {GRADE[victim]} AND step = {STEP[victim]})"
        few = f"SELECT SUM(salary) FROM people WHERE {rest} AND {others}"
        assert gate.ask(few).code == "too-few-records"
    apart = data[0].assign(total=np.random.default_rng(8).permutation(total))
    with opened((apart, data[1])) as gate:
        assert told(gate) == []


AGE = np.random.default_rng(2).integers(18, 80, ROWS)
BORN = pd.Timestamp("2024-01-01") - pd.to_timedelta(AGE * 365, unit="D")
PIECES = {
    "another share above an age": np.where(AGE > 45, 0.1, 0.2) * SALARY,
    "another share above a step": np.where(STEP > 4, 0.1, 0.2) * SALARY + SMALL,
    "cut off": np.minimum(0.1 * SALARY, 22_000),
    "falls and rises": abs(SALARY - 200_000.0),
}


@pytest.mark.parametrize("bonus", PIECES.values(), ids=PIECES)
def test_columns_that_follow_in_ranges_are_audited_as_one(bonus):
    one = next(n for n in range(1, ROWS, 2) if AGE[n] > 45)
    victim = f"age = {AGE[one]} AND grade = {GRADE[one]} AND step = {STEP[one]}"
    with opened(people(salary=SALARY, bonus=bonus)) as gate:
        assert "bonus and salary follow from each other: protected together" in told(gate)
        first = gate.ask("SELECT SUM(salary) FROM people WHERE sex = 'f' AND age > 45", user="ana")
        second = gate.ask(
            f"SELECT SUM(bonus) FROM people WHERE sex = 'f' AND age > 45 AND NOT ({victim})",
            user="bob",
        )
        assert (first.kind, second.kind) == ("exact", "refused")


def test_columns_that_follow_in_ranges_of_dates_or_many_groups_are_audited_as_one():
    frame, roles = people(salary=SALARY, bonus=PIECES["another share above an age"])
    del roles["age"]
    with opened((frame.drop(columns="age").assign(born=BORN), {**roles, "born": "quasi"})) as gate:
        assert told(gate) == ["bonus and salary follow from each other: protected together"]
    draw = np.random.default_rng(4)
    town = np.arange(6000) % 120
    pay = draw.lognormal(10, 0.5, 6000).round()
    rate = draw.uniform(0.1, 0.4, 120)[town]
    towns = pd.DataFrame({"town": [f"t{t}" for t in town], "pay": pay, "tax": pay * rate})
    with opened((towns, {"town": "quasi", "pay": "confidential", "tax": "confidential"})) as gate:
        assert told(gate) == ["pay and tax follow from each other: protected together"]


def test_columns_beside_those_that_follow_in_ranges_are_audited_apart():
    # The contribution is cut off, and the pay is known to a few per cent; rent has nothing to do with it.
    draw = np.random.default_rng(7)
    pay = SALARY * (1 + draw.normal(0, 0.01, ROWS)).round(4)
    rent = draw.lognormal(6, 0.5, ROWS).round(2)
    data = people(salary=SALARY, pay=pay, contribution=np.minimum(0.08 * pay, 20_000), rent=rent)
    with opened(data) as gate:
        assert [notice for notice in told(gate) if "rent" in notice] == []
        assert "contribution and pay follow from each other: protected together" in told(gate)


def test_skewed_columns_that_only_go_together_are_audited_apart():
    # The largest firm of a range is far from the others in both: that alone is no line.
    draw = np.random.default_rng(3)
    size = draw.normal(0, 2, 4000)
    firms = pd.DataFrame(
        {
            "born": draw.integers(0, 3000, 4000),
            "turnover": np.exp(size + draw.normal(0, 1, 4000)).round(2) * 1000,
            "wages": np.exp(size + draw.normal(0, 1, 4000)).round(2) * 1000,
        }
    )
    roles = {"born": "quasi", "turnover": "confidential", "wages": "confidential"}
    with opened((firms, roles)) as gate:
        assert told(gate) == []


def test_a_sum_in_a_public_group_is_audited_with_its_parts():
    bonus = np.random.default_rng(10).integers(1000, 200_000, ROWS)
    frame, roles = people(salary=SALARY, bonus=bonus, total=SALARY + bonus + 9 * SHIFTS)
    contract = np.where(OFFICE, "office", "shift")
    roles |= {"contract": "quasi"}
    with opened((frame.assign(contract=contract), roles)) as gate:
        assert told(gate) == [
            f"{a} and {b} follow from each other: protected together"
            for a, b in (("bonus", "salary"), ("bonus", "total"), ("salary", "total"))
        ]
    apart = frame.assign(contract=rng.permutation(contract))
    with opened((apart, roles)) as gate:
        assert told(gate) == []


@pytest.mark.parametrize(
    ("other", "contract"),
    [((SALARY / 1000.0) ** 3, np.full(ROWS, "any")), *PARTLY.values()],
    ids=["bent", *PARTLY],
)
def test_intervals_of_columns_that_tell_of_each_other_must_be_declared(other, contract):
    frame, roles = people(salary=SALARY, other=other)
    data = dc.read(
        frame.assign(contract=contract), roles=roles | {"contract": "quasi"}, name="people"
    )
    with pytest.raises(InputError) as failure:
        dc.Gateway(data, guard=dc.Camouflage(bound=0.3))
    assert failure.value.code == "dependent-interval"
    declared = dc.Camouflage(bound=0.3, dependent={"other": ("salary",)})
    with dc.Gateway(data, guard=declared) as gate:
        hidden, base = (gate._keeper(declared)._of(name) for name in ("other", "salary"))
    # Everything that is told of the other column follows from the cells of the salary.
    assert (hidden.low <= other).all()
    assert (hidden.high >= other).all()
    _, first, cell = np.unique(base.low, return_index=True, return_inverse=True)
    assert np.allclose(hidden.low, hidden.low[first][cell])
    assert np.allclose(hidden.high, hidden.high[first][cell])


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
