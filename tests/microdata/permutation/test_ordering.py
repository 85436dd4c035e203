"""Columns that order the groups are refused, and what attackers find is what the release reports."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.attacks.order_regression import OrderRegression
from discreet.attacks.sorting import Sorting

SIZE = 1500


def base(seed: int) -> tuple[np.random.Generator, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    salary = (np.exp(rng.normal(10.3, 0.5, SIZE)) / 10).round() * 10
    age = np.clip(20 + salary / 2_000 + rng.normal(0, 9, SIZE), 18, 80).round()
    return rng, pd.DataFrame({"age": age, "salary": salary})


def independent(seed: int) -> pd.DataFrame:
    return base(seed)[1]


def taxed(seed: int) -> pd.DataFrame:
    _, rows = base(seed)
    return rows.assign(tax=0.3 * rows["salary"])


def monthly(seed: int) -> pd.DataFrame:
    _, rows = base(seed)
    return rows.assign(monthly=(rows["salary"] / 12 / 50).round() * 50)


def summed(seed: int) -> pd.DataFrame:
    rng, rows = base(seed)
    bonus = rng.normal(0, 40_000, SIZE).round()
    return rows.assign(bonus=bonus, total=rows["salary"] + bonus)


def graded(seed: int) -> pd.DataFrame:
    rng, rows = base(seed)
    noise = rng.normal(0, 300, SIZE)
    return rows.assign(pension=-np.sqrt(rows["salary"] + np.abs(noise)))


POPULATIONS = {
    independent: (),
    taxed: ("tax",),
    monthly: ("monthly",),
    summed: ("bonus", "total"),
    graded: ("pension",),
}


def read(rows: pd.DataFrame) -> dc.Dataset:
    roles = dict.fromkeys(rows.columns, "quasi") | {"salary": "confidential"}
    return dc.read(rows, roles=roles, name="people")


def truth_of(released: pd.DataFrame, rows: pd.DataFrame) -> list[float]:
    """Return the true salary of each released row; the numbers of rows are among the columns."""
    return rows["salary"].to_numpy()[released["number"].astype(int).to_numpy()].tolist()


def reported_and_reached(population, partition: str, seed: int) -> tuple[float, float]:
    """Return the risk that a release reports, and the success of the strongest attack on it."""
    # The number says nothing about the salary, and tells the test who is who.
    rows = population(seed).assign(number=lambda r: np.random.default_rng(1).permutation(len(r)))
    rows = rows.set_index("number").sort_index().reset_index()
    vouched = (*POPULATIONS[population], "age")
    safe = dc.permute(
        read(rows), sensitive="salary", k=5, e=500, partition=partition, vouch=vouched
    )
    released = safe.frame
    truth = truth_of(released, rows)
    seen = released.drop(columns="number")
    attacks = [Sorting(), OrderRegression(), *(Sorting(column=c) for c in seen.columns[:-2])]
    found = (attack.run(seen, truth, sensitive="salary").share for attack in attacks)
    return safe.risk.exact, max(found)


@pytest.mark.parametrize("partition", ["weighted", "local"])
@pytest.mark.parametrize("population", POPULATIONS, ids=lambda made: made.__name__)
def test_the_reported_risk_is_what_attackers_achieve(population, partition):
    reported, reached = reported_and_reached(population, partition, 7)
    assert reported >= reached - 0.02
    if population in (taxed, summed):
        assert reached > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("partition", ["weighted", "local"])
@pytest.mark.parametrize("population", POPULATIONS, ids=lambda made: made.__name__)
def test_the_reported_risk_holds_on_fresh_populations(population, partition):
    """Seeds that nothing was chosen on: no attack beats the risk by .02, one in twenty beats it."""
    found = [reported_and_reached(population, partition, seed) for seed in range(9_000, 9_020)]
    beaten = sum(reached > reported for reported, reached in found)
    worst = max(reached - reported for reported, reached in found)
    print(f"{population.__name__}, {partition}: {beaten} of 20 above, at most by {worst:.4f}")  # noqa: T201  # figures
    assert worst <= 0.02
    assert beaten <= 3  # of 20 at one in twenty: more in 1.6 % of the tests


def test_the_reported_risk_allows_for_an_attacker_s_luck():
    """Equal months of pay are ordered by lot, and one attacker was right for 0.201 where 0.178 was said."""
    rows = monthly(22).assign(number=lambda r: np.random.default_rng(1).permutation(len(r)))
    rows = rows.set_index("number").sort_index().reset_index()
    safe = dc.permute(read(rows), sensitive="salary", k=5, e=500, vouch=("monthly", "age"))
    assert 0.01 < safe.risk.exact - safe.risk.ordering.accuracy < 0.03
    assert "19 of 20 attackers" in str(safe.risk)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_matches_by_lot_vary_no_more_than_a_poisson_number(size):
    """For all true values and all values given out: every factorial moment is at most the mean's power."""
    orders = list(itertools.permutations(range(size)))
    kinds = list(itertools.combinations_with_replacement(range(size), size))
    for true, offered in itertools.combinations_with_replacement(kinds, 2):
        found = [sum(true[i] == offered[o] for i, o in enumerate(order)) for order in orders]
        mean = sum(found) / len(found)
        for power in range(2, size + 1):
            moment = sum(math.perm(n, power) for n in found) / len(found)
            assert moment <= mean**power + 1e-9, (true, offered, power)


@pytest.mark.parametrize(
    "population", [p for p in POPULATIONS if POPULATIONS[p]], ids=lambda made: made.__name__
)
def test_columns_that_order_the_groups_are_refused_unless_vouched_for(population):
    rows = population(3)
    with pytest.raises(dc.RefusedError) as raised:
        dc.permute(read(rows), sensitive="salary", k=5, e=500, partition="sequential")
    assert raised.value.code == "predicting-columns"
    named = set(raised.value.facts["columns"])
    assert named & set(POPULATIONS[population])
    safe = dc.permute(
        read(rows), sensitive="salary", k=5, e=500, partition="sequential", vouch=(*named, "age")
    )
    assert "but whoever orders the groups by" in safe.evidence().verdict


def test_columns_that_do_not_are_released():
    safe = dc.permute(read(independent(4)), sensitive="salary", k=5, e=500)
    assert safe.risk.exact - safe.risk.ordering.baseline < 0.1
    assert "orders the groups" not in safe.evidence().verdict


def test_a_category_that_another_column_determines_is_found():
    rng = np.random.default_rng(2)
    ill = rng.choice(["asthma", "cold", "flu", "gout"], 400)
    code = pd.Series(ill).map({"asthma": 7, "cold": 1, "flu": 9, "gout": 4})
    people = dc.read(
        pd.DataFrame({"code": code, "ill": ill}), roles={"code": "quasi", "ill": "confidential"}
    )
    with pytest.raises(dc.RefusedError, match="code"):
        dc.permute(people, sensitive="ill", k=3)


def stay(rng: np.random.Generator, size: int, kind: str) -> pd.DataFrame:
    """Two points in time and the days or minutes between them."""
    begin, length = rng.integers(0, 300, size), rng.integers(1, 90, size)
    if kind == "clock":
        first, last = begin + 360, begin + 360 + length * 5
        told = [[f"{t // 60:02d}:{t % 60:02d}" for t in side] for side in (first, last)]
        return pd.DataFrame({"first": told[0], "last": told[1], "salary": length * 5})
    first = pd.Timestamp("2024-01-01") + pd.to_timedelta(begin, "D")
    last = first + pd.to_timedelta(length, "D")
    if kind == "texts":
        first, last = (side.strftime("%d.%m.%Y") for side in (first, last))
    return pd.DataFrame({"first": first, "last": last, "salary": length})


@pytest.mark.parametrize("kind", ["moments", "clock", "texts"])
def test_the_time_between_two_columns_is_found(kind):
    with pytest.raises(dc.RefusedError) as raised:
        dc.permute(read(stay(np.random.default_rng(7), 400, kind)), sensitive="salary", k=4, e=10)
    assert raised.value.code == "predicting-columns"


@pytest.mark.parametrize(
    "made",
    [lambda x, y: abs(x - y), np.maximum, lambda x, y: 10_000 * x // (x + y + 1)],
    ids=["distance", "larger", "share"],
)
def test_distances_shares_and_the_larger_of_two_columns_are_found(made):
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 400, (2, 300))
    rows = pd.DataFrame({"x": x, "y": y, "salary": made(x, y) * 10 + 100})
    with pytest.raises(dc.RefusedError) as raised:
        dc.permute(read(rows), sensitive="salary", k=4, e=200)
    assert raised.value.code == "predicting-columns"


def test_codes_that_stand_for_the_values_of_one_group_are_found():
    """No other group has them, and how often each occurs in its group says what it stands for."""
    rng = np.random.default_rng(7)
    level, meaning = rng.integers(0, 12, 400), rng.permutation(12)
    codes = [f"g{meaning[one]}" for one in level]
    rows = pd.DataFrame(
        {"code": codes, "age": rng.integers(20, 60, 400), "salary": (level + 1) * 500}
    )
    with pytest.raises(dc.RefusedError, match="code"):
        dc.permute(read(rows), sensitive="salary", k=4, e=200)


def test_three_codes_that_say_the_value_together_are_found():
    """A table of pays by grade, step and region."""
    rng = np.random.default_rng(2)
    pays = rng.permutation(27) * 100 + 1_000
    grade, step, region = rng.integers(0, 3, (3, 400))
    rows = pd.DataFrame({"grade": grade, "step": step, "region": region})
    rows["salary"] = pays[grade * 9 + step * 3 + region]
    with pytest.raises(dc.RefusedError) as raised:
        dc.permute(read(rows), sensitive="salary", k=3, e=100)
    assert raised.value.code == "predicting-columns"


def test_two_codes_that_say_the_value_together_are_found():
    rng = np.random.default_rng(7)
    x, y = rng.integers(0, 8, (2, 400))
    rows = pd.DataFrame({"x": x, "y": y, "salary": ((x ^ y) + 1) * 100})
    with pytest.raises(dc.RefusedError) as raised:
        dc.permute(read(rows), sensitive="salary", k=3, e=100)
    assert raised.value.code == "predicting-columns"


def test_the_order_of_the_input_is_not_the_order_inside_groups():
    """A file sorted by salary would otherwise give everybody's salary away by its rows."""
    rows = pd.DataFrame({"salary": np.arange(600.0), "who": np.arange(600) * 7919 % 600})
    safe = dc.permute(read(rows), sensitive="salary", k=6, vouch=["who"])
    truth = dict(zip(rows["who"], rows["salary"], strict=True))
    released = safe.frame
    true = released["who"].map(truth)
    groups = released["group_id"]
    ordered = (
        released["salary"]
        .groupby(groups, group_keys=False)
        .apply(lambda s: s.sort_values().reset_index(drop=True))
    )
    right = (ordered.to_numpy() == true.to_numpy()).mean()
    assert right < 0.5


def test_every_attack_fails_where_nothing_is_released_beside_the_values():
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({"coin": rng.integers(0, 2, 300), "group_id": np.arange(300) // 6})
    truth = rng.permutation(300).astype(float)
    for attack in (Sorting(), OrderRegression()):
        found = attack.run(rows.assign(salary=truth[::-1]), truth.tolist(), sensitive="salary")
        assert not found.succeeded


def multiplied(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """A salary that no column orders alone, and no sum of them: only their product does."""
    hours, grade = rng.normal(0, 1, SIZE), rng.normal(0, 1, SIZE)
    salary = (50_000 + 15_000 * hours * grade + rng.normal(0, 300, SIZE)).round()
    rows = pd.DataFrame({"hours": hours.round(3), "grade": grade.round(3), "salary": salary})
    return rows, hours * grade


def bent(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """A salary that rises and falls with a column."""
    age = rng.uniform(0, 2 * np.pi, SIZE)
    salary = (50_000 + 10_000 * np.sin(3 * age) + rng.normal(0, 100, SIZE)).round()
    return pd.DataFrame({"age": age.round(4), "salary": salary}), np.sin(3 * age)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("population", [multiplied, bent], ids=lambda made: made.__name__)
def test_relations_that_are_not_straight_are_reported(population, seed):
    rows, score = population(np.random.default_rng(seed))
    rows = rows.assign(number=np.arange(SIZE))
    safe = dc.permute(read(rows), sensitive="salary", k=4, partition="local", vouch=("number",))
    released = safe.frame
    truth = rows["salary"].to_numpy()[released["number"].to_numpy()]
    released = released.assign(truth=truth, score=score[released["number"].to_numpy()])
    right = 0
    for _, group in released.groupby("group_id"):
        ordered = group.sort_values("score")
        right += int((np.sort(group["salary"]) == ordered["truth"].to_numpy()).sum())
    # Whoever knows the relation exactly does hardly better than the release says.
    assert right / SIZE > safe.risk.ordering.baseline + 0.05
    assert safe.risk.exact >= right / SIZE - 0.02


def test_a_person_s_several_values_are_found_together_and_always_judged_alike():
    """Sorting ages gives each person all of their own salaries, in whatever order."""
    rows = pd.DataFrame(
        {
            "who": np.repeat(np.arange(10), 3),
            "age": np.repeat(np.arange(20, 30), 3),
            "salary": np.arange(30) * 100 + 1_000,
        }
    )
    roles = {"who": "identifier", "age": "quasi", "salary": "confidential"}
    people = dc.read(rows, roles=roles, unit="who", name="people")
    for _ in range(6):
        with pytest.raises(dc.RefusedError) as raised:
            dc.permute(people, sensitive="salary", k=3, e=100)
        assert raised.value.code == "predicting-columns"
    safe = dc.permute(people, sensitive="salary", k=3, e=100, vouch=["age"])
    assert safe.risk.ordering.accuracy == pytest.approx(1.0)
