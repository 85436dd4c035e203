"""The embedded data: reproducible, coded as its hierarchies say, and plausibly correlated."""

import numpy as np
import pytest

from discreet import demo
from discreet.errors import InputError


@pytest.fixture(scope="module")
def people():
    return demo.population_arrow(20_000).to_pandas()


@pytest.fixture(scope="module")
def firms():
    return demo.businesses_arrow(20_000).to_pandas()


def test_same_seed_same_persons():
    assert demo.population_arrow(500).equals(demo.population_arrow(500))
    assert not demo.population_arrow(500).equals(demo.population_arrow(500, seed=2))
    assert demo.businesses_arrow(500).equals(demo.businesses_arrow(500))


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_any_size(size):
    assert demo.population_arrow(size).num_rows == size
    assert demo.businesses_arrow(size).num_rows == size


@pytest.mark.parametrize("make", [demo.population_arrow, demo.businesses_arrow])
def test_no_persons_is_a_mistake(make):
    with pytest.raises(InputError) as caught:
        make(0)
    assert caught.value.code == "bad-size"


def test_every_code_is_in_its_hierarchy(people, firms):
    known = demo.hierarchies()
    for frame in (people, firms):
        for name in frame.columns:
            if name in known:
                values = frame[name].astype(str).unique()
                known[name].require_covers(values, column=name)
                assert set(values) <= set(known[name].leaves)
    assert known["region"].height == 3
    assert known["sector"].height == 3


def test_households(people):
    sizes = people.groupby("household_id").size()
    assert 2.0 < sizes.mean() < 2.6
    assert sizes.max() == 6
    # People who live together live in one place and have one family name.
    assert (people.groupby("household_id")["region"].nunique() == 1).all()
    family = people["name"].str.split().str[1]
    assert (family.groupby(people["household_id"]).nunique() == 1).all()
    assert (people.groupby("household_id")["age"].max() >= 18).all()
    assert people["person_id"].is_unique


def test_people_are_plausible(people):
    working = people[people["sector"] != "Not working"]
    assert 0.4 < len(working) / len(people) < 0.7
    assert (people.loc[people["age"] < 15, "salary"] == 0).all()
    pay = working.groupby("education")["salary"].median()
    assert pay["Master"] > pay["Bachelor"] > pay["Upper secondary"] > pay["Primary"]
    pay = working.groupby("sector")["salary"].median()
    assert pay["Banking"] > 2 * pay["Restaurants"]
    ill = people["diagnosis"] != "No diagnosis"
    assert ill[people["age"] > 70].mean() > 2 * ill[people["age"] < 30].mean()
    assert people["age"].between(0, 105).all()


def test_salaries_have_a_heavy_tail(people):
    salary = np.sort(people.loc[people["sector"] != "Not working", "salary"])[::-1]
    top = salary[: len(salary) // 100]
    assert top.sum() / salary.sum() > 0.05
    assert salary[0] > 10 * np.median(salary)


def test_firms_are_dominated_and_held(firms):
    owned = firms["holding"] != firms["firm_id"]
    assert 0.05 < owned.mean() < 0.2
    # A holding belongs to itself: chains were followed to their end.
    heads = firms.loc[firms["holding"].isin(firms.loc[owned, "holding"]) & ~owned, "firm_id"]
    assert set(firms.loc[owned, "holding"]) == set(heads)
    cells = firms.groupby(["activity", "region"])["turnover"]
    share = cells.max() / cells.sum()
    assert (share > 0.8).mean() > 0.05  # dominance is common in small cells
    assert (firms["turnover"] > 0).all()
    assert (firms["employees"] >= 1).all()


def test_fifteen_salaries_as_printed():
    frame = demo.salaries_arrow().to_pandas()
    assert len(frame) == 15
    assert frame.loc[13, "salary"] == 35_000
    cells = frame.groupby(["sector", "region"])["salary"].sum()
    assert cells["Fin", "BCN"] == 335_000
    assert cells["IT", "BCN"] == 852_000
    assert frame["salary"].sum() == 1_916_000
    assert (frame["salary"] > 100_000).sum() == 5


def test_castro_tables_as_printed():
    counts, sums = demo.castro_frequencies(), demo.castro_magnitudes()
    for table in (counts, sums):
        table.require_additive(1e-12)
        assert len(table) == 24
    assert counts.value[counts.cell("M2", "P3")] == 1
    assert counts.value[counts.cell("M3", "Total")] == 136
    assert counts.value[counts.cell("Total", "P3")] == 46
    assert sums.value[sums.cell("M2", "P3")] == 22
    assert sums.value[sums.cell("Total", "Total")] == 8620
    assert sums.value[sums.cell("M1", "Total")] == 2290
    assert (sums.count == counts.value).all()
    # A total's largest contribution is at least that of each of its parts.
    assert sums.contributions[sums.cell("Total", "P5")][0] == 350
    assert (sums.contributions[:, 0] >= sums.contributions[:, 1]).all()
    assert (sums.contributions.sum(axis=1) <= sums.value + 1e-9).all()


def test_feasibility_example_adds_up():
    table = demo.feasibility_example()
    table.require_additive(1e-12)
    margins = [table.value[table.cell(row, "Total")] for row in "123"]
    assert margins == [7, 3, 6]
    assert table.value[table.cell("Total", "1")] == 9
    assert (table.status == 2).sum() == 4
