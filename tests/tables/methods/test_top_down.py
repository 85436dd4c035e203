"""Consistent differentially private counts through the public calls."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import discreet as dc
from discreet.dp.accountant import Accountant, gaussian_event, rho_of, rho_spent
from discreet.dp.grant import Grant
from discreet.dp.hierarchical.budget import allocate, level_shares
from discreet.dp.noise import add_gaussian, gaussian_loss
from discreet.errors import InputError, RefusedError
from discreet.progress import silent
from discreet.tables.jobs.table import TableJob
from discreet.tables.protection import protect

BY = ("region", "sex", "age")
TREE = {"Land": {"N": ["n1", "n2", "n3"], "S": ["s1", "s2"], "W": []}}


def granting(place: Path, rho: float) -> Path:
    """Return a ledger in which releases of the people may reach a ρ together."""
    delta = 1e-10
    epsilon = Accountant("zcdp", delta).epsilon({gaussian_event(rho): 1})
    with dc.open_ledger(place) as ledger:
        ledger.set_grant("people", Grant(epsilon, delta, "zcdp").to_dict())
    return place


def people(rows: pd.DataFrame | None = None, **options: Any) -> Any:
    rng = np.random.default_rng(1)
    size = 900
    if rows is None:
        rows = pd.DataFrame(
            {
                "region": rng.choice(["n1", "n2", "n3", "s1", "s2", "W"], size),
                "sex": rng.choice(["f", "m"], size),
                "age": rng.choice(["0-17", "18-64", "65+"], size),
            }
        )
    trees = {
        "region": dc.Hierarchy.from_pairs(
            [("Land", ""), *[(r, "Land") for r in TREE["Land"]]]
            + [(leaf, r) for r, leaves in TREE["Land"].items() for leaf in leaves]
        ),
        "sex": dc.Hierarchy.flat(["f", "m"]),
        "age": dc.Hierarchy.flat(["0-17", "18-64", "65+"]),
    }
    return dc.read(rows, hierarchies=trees, name="people", **options)


def table(rows: pd.DataFrame | None = None, **options: Any) -> Any:
    return dc.tabulate(people(rows, **options), by=["region", "sex", "age"])


def require_laws(release: Any) -> None:
    value = release.protected.value
    assert (value == np.round(value)).all()
    assert (value >= 0).all()
    assert np.abs(release.table.equations @ value).max() == 0
    low, high = release.protected.estimate.bounds
    assert (low <= value).all()
    assert (value <= high).all()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"split": "leaf-heavy", "passes": "one"},
        {"split": {"0": 0.2, "1": 0.0, "2": 0.8}},
        {"queries": {"total": 0.5, "sex*age": 0.5}},
        {"queries": {"1": {"total": 1.0}}, "gather": False},
        {"levels": ("nation", "part", "place"), "invariants": {"part": "total"}},
        {"invariants": {"0": "sex*age", "1": "sex"}, "passes": "one"},
        {"invariants": {"2": "sex"}, "gather": False},
        {"zeros": ({"sex": "m", "age": ["0-17", "65+"]},)},
    ],
)
def test_releases_are_whole_non_negative_and_add_up(settings: dict[str, Any]) -> None:
    rows = None
    if "zeros" in settings:
        rng = np.random.default_rng(2)
        sex = rng.choice(["f", "m"], 300)
        age = np.where(sex == "m", "18-64", rng.choice(["0-17", "65+"], 300))
        rows = pd.DataFrame({"region": rng.choice(["n1", "s2"], 300), "sex": sex, "age": age})
    release = table(rows).protect(method=dc.TopDown(rho=0.5, spine="region", **settings))
    require_laws(release)
    true = release.table
    if "invariants" in settings:
        for code in ("Land", "N", "S", "W"):
            cell = true.cell(code, "Total", "Total")
            assert release.protected.value[cell] == true.value[cell]
            if "sex" in str(settings["invariants"]):
                cell = true.cell(code, "m", "Total")
                assert release.protected.value[cell] == true.value[cell]
        assert "outside the promise" in release.verdict
    if "zeros" in settings:
        assert release.protected.value[true.cell("Land", "m", "0-17")] == 0


def test_the_spine_may_stand_anywhere() -> None:
    made = dc.tabulate(people(), by=["sex", "region"]).protect(method=dc.TopDown(spine="region"))
    require_laws(made)
    assert made.table.by == ("sex", "region")


def test_one_record_and_no_record_are_protected() -> None:
    one = pd.DataFrame({"region": ["n1"], "sex": ["f"], "age": ["65+"]})
    require_laws(table(one).protect(method=dc.TopDown(rho=0.1)))
    require_laws(table(one.iloc[:0].astype(str)).protect(method=dc.TopDown(rho=0.1)))
    ready = dc.Table.from_cells(
        pd.DataFrame({"region": ["Land"], "value": [0]}),
        ["region"],
        "value",
        hierarchies={"region": people().schema.hierarchies("region")},
        statistic="count",
    )
    require_laws(ready.protect(method=dc.TopDown(rho=0.1)))


def test_the_linear_estimate_is_signed_and_adds_up() -> None:
    release = table().protect(method=dc.TopDown(rho=0.01, integer=False))
    value = release.protected.value
    assert (value != np.round(value)).any()
    assert np.abs(release.table.equations @ value).max() < 1e-6


def test_sums_of_cells_have_intervals() -> None:
    release = table().protect(method=dc.TopDown(rho=1.0))
    cells = release.cells.set_index(["region", "sex", "age"])
    single = release.interval({"region": "n1", "sex": "f", "age": "65+"})
    assert single.value == cells.loc[("n1", "f", "65+"), "value"]
    assert single.upper_95 == cells.loc[("n1", "f", "65+"), "upper_95"]
    both = release.interval({"region": ["n1", "s1"], "age": ["0-17", "65+"]})
    parts = [(r, "Total", a) for r in ("n1", "s1") for a in ("0-17", "65+")]
    assert both.value == sum(cells.loc[part, "value"] for part in parts)
    assert both.standard_error > single.standard_error
    whole = release.interval({"region": ["n1", "n2", "n3"]})
    parent = release.interval({"region": "N"})
    assert whole.standard_error == pytest.approx(parent.standard_error)
    with pytest.raises(InputError, match="no attribute"):
        release.interval({"job": "cook"})
    with pytest.raises(InputError, match="no code"):
        release.interval({"region": "x9"})
    rounded = table().protect([dc.MinimumFrequency(3)], dc.ControlledRounding(5))
    with pytest.raises(InputError, match="no interval"):
        rounded.interval({"region": "N"})


def test_intervals_of_whole_tables_hold_the_truth() -> None:
    inside = every = 0
    for _ in range(10):
        release = table().protect(method=dc.TopDown(rho=0.05))
        low, high = release.protected.estimate.bounds
        truth = release.table.value
        inside += int(((low <= truth) & (truth <= high)).sum())
        every += len(truth)
    assert inside / every >= 0.93


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"spine": "job"}, "bad-spine"),
        ({"split": {"0": 0.5, "1": 0.2}}, "bad-shares"),
        ({"split": {"7": 1.0}}, "unknown-level"),
        ({"split": "census"}, "bad-shares"),
        ({"split": {"0": 1.0}}, "missing-detailed"),
        ({"split": {"0": 0.5, "2": 0.5}, "gather": False}, "unmeasured-level"),
        ({"queries": {"total": 0.5, "job": 0.5}}, "unknown-query"),
        ({"queries": {"total": 1.0}}, "missing-detailed"),
        ({"queries": {"total": 0.9, "detailed": 0.9}}, "bad-shares"),
        ({"queries": {"0": {"total": "many"}}}, "bad-shares"),
        ({"invariants": {"9": "total"}}, "unknown-level"),
        ({"invariants": {"1": "job"}}, "unknown-query"),
        ({"invariants": {"0": "sex", "1": "age"}}, "contradicting-invariant"),
        (
            {"invariants": {"1": "sex"}, "zeros": ({"sex": "m"},)},
            "contradicting-invariant",
        ),
        ({"zeros": ({"job": "x"},)}, "unknown-code"),
        ({"levels": ("a", "b")}, "bad-levels"),
    ],
)
def test_what_cannot_be_promised_is_refused_before_anything_is_charged(
    settings: dict[str, Any], code: str, tmp_path: Path
) -> None:
    place = granting(tmp_path / "ledger.db", 5.0)
    with pytest.raises(InputError) as raised:
        table().protect(method=dc.TopDown(**settings), ledger=place)
    assert raised.value.code == code
    with dc.open_ledger(place) as ledger:
        assert not ledger.spent("people", "dataset")


def test_linked_tables_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    place = granting(tmp_path / "ledger.db", 5.0)
    rows = people()
    two = [dc.tabulate(rows, by=["region", name]) for name in ("sex", "age")]
    with pytest.raises(InputError) as raised:
        protect(two, (), dc.TopDown(rho=0.1), ledger=place)
    assert raised.value.code == "linked-method"
    with dc.open_ledger(place) as ledger:
        assert not ledger.spent("people", "dataset")


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("broken", ["impossible-records", "too-many-records"])
def test_what_the_records_themselves_forbid_is_charged_first(
    broken: str, large: bool, tmp_path: Path
) -> None:
    # Free, the refusal would say as often as one likes whether such a record is there.
    place = granting(tmp_path / "ledger.db", 5.0)
    rows = people()
    zeros = ({"sex": "m"},) if broken == "impossible-records" else ()
    unit = "sex" if broken == "too-many-records" else None
    made = dc.tabulate(rows, by=["region", "sex"], unit=unit, large=large)
    with pytest.raises(InputError) as raised:
        made.protect(method=dc.TopDown(rho=0.1, zeros=zeros), ledger=place)
    assert raised.value.code == broken
    with dc.open_ledger(place) as ledger:
        assert ledger.spent("people", "dataset")
        assert [entry.kind for entry in ledger.entries()][-1] == "charged"


@pytest.mark.parametrize("large", [False, True])
def test_a_job_is_charged_before_records_with_undeclared_codes_refuse_it(
    large: bool, tmp_path: Path
) -> None:
    place = granting(tmp_path / "ledger.db", 5.0)
    stray = people(pd.DataFrame({"region": ["n1", "zz"], "sex": ["f", "m"], "age": ["65+", "65+"]}))
    job = TableJob(by=BY, method=dc.TopDown(rho=0.1), large=large, ledger=str(place))
    with pytest.raises(InputError, match="hierarchy lacks"):
        job.perform(stray, rng=None, progress=silent)
    with dc.open_ledger(place) as ledger:
        assert [entry.kind for entry in ledger.entries()][-1] == "charged"
        spent = ledger.spent("people", "dataset")
    # What no records could be promised for is refused first, whatever they are.
    job = TableJob(by=BY, method=dc.TopDown(rho=0.1, split={"0": 0.5}), ledger=str(place))
    with pytest.raises(InputError, match="add up to 1"):
        job.perform(stray, rng=None, progress=silent)
    job = TableJob(by=BY, method=dc.TopDown(rho=0.1), ledger=str(place))
    release = job.perform(people(), rng=None, progress=silent)
    job.write(release, tmp_path / "out")
    with dc.open_ledger(place) as ledger:
        after = ledger.spent("people", "dataset")
    assert after == {event: 2 * times for event, times in spent.items()}


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"rho": 1.0, "epsilon": 1.0}, "rho-and-epsilon"),
        ({"rho": float("inf")}, "parameter-range"),
        ({"rho": -1.0}, "parameter-range"),
        ({"split": "most"}, "parameter-range"),
        ({"queries": "all"}, "parameter-range"),
        ({"integer": False, "zeros": ({"sex": "m"},)}, "unsupported-zeros"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as raised:
        dc.TopDown(**settings)
    assert raised.value.code == code


def test_other_statistics_weights_and_found_codes_are_refused() -> None:
    rows = pd.DataFrame({"region": ["n1", "n2"], "sex": ["f", "m"], "pay": [1.0, 2.0]})
    trees = {"region": people().schema.hierarchies("region")}
    data = dc.read(rows, hierarchies=trees, types={"pay": "numeric"})
    for made, code in (
        (dc.tabulate(data, by=["region"], measure="pay"), "unsupported-statistic"),
        (dc.tabulate(data, by=["region"], weight="pay"), "unsupported-weights"),
        (dc.tabulate(data, by=["region", "sex"]), "undeclared-codes"),
    ):
        with pytest.raises(InputError) as raised:
            made.protect(method=dc.TopDown())
        assert raised.value.code == code
    ready = dc.Table.from_cells(
        pd.DataFrame({"sex": ["Total", "f"], "value": [1, 1]}), ["sex"], "value", statistic="count"
    )
    with pytest.raises(InputError, match="found in the records"):
        ready.protect(method=dc.TopDown())


def test_codes_of_a_hierarchy_made_from_the_records_are_found_codes() -> None:
    data = dc.read(
        pd.DataFrame({"sex": ["f", "f", "m"]}), hierarchies={"sex": {"rare": 2}}, rest="quasi"
    )
    with pytest.raises(InputError) as raised:
        dc.tabulate(data, by=["sex"]).protect(method=dc.TopDown())
    assert raised.value.code == "undeclared-codes"


def test_declared_domains_are_code_lists() -> None:
    rows = pd.DataFrame({"sex": ["f", "f", "m"]})
    data = dc.read(rows, domains={"sex": ["f", "m", "x"]})
    release = dc.tabulate(data, by=["sex"]).protect(method=dc.TopDown(rho=5.0))
    assert release.cells["sex"].tolist() == ["Total", "f", "m", "x"]


def test_contributors_with_more_records_are_refused() -> None:
    rows = pd.DataFrame(
        {"region": ["n1", "n2"], "sex": ["f", "f"], "age": ["65+"] * 2, "id": [1, 1]}
    )
    with pytest.raises(InputError, match="at most 1 records"):
        table(rows, unit="id").protect(method=dc.TopDown())
    release = table(rows, unit="id").protect(method=dc.TopDown(rho=1.0, records=2))
    assert release.protected.facts["rho"] <= 1.0
    # Two records of one person cost four times one.
    scales = [one["scale"] for one in release.protected.facts["measurements"]]
    alone = dc.TopDown(rho=1.0)._task(table()).budget.measures
    assert scales == pytest.approx([2 * one.scale for one in alone])


def test_the_ledger_adds_up_and_refuses(tmp_path: Path) -> None:
    place = granting(tmp_path / "ledger.db", 1.0)
    method = dc.TopDown(rho=0.4)
    table().protect(method=method, ledger=place)
    table().protect(method=method, ledger=place)
    with pytest.raises(RefusedError):
        table().protect(method=method, ledger=place)
    with dc.open_ledger(place) as ledger:
        spent = ledger.spent("people", "dataset")
        assert ledger.verify().intact
    expected = 2 * sum(Fraction(m.rho) for m in method._task(table()).budget.measures)
    # Rounded up, by one bit at most.
    assert Fraction(rho_spent(spent)) >= expected
    assert np.nextafter(rho_spent(spent), 0) <= float(expected)
    assert rho_spent(spent) <= 0.8
    with pytest.raises(InputError, match="grant"):
        table().protect(method=dc.TopDown(), ledger=tmp_path / "another.db")


def test_it_is_recorded_with_what_it_spent(tmp_path: Path) -> None:
    place = granting(tmp_path / "ledger.db", 1.0)
    release = table().protect(method=dc.TopDown(rho=0.4), ledger=place)
    release.write(tmp_path / "out", ledger=place)
    with dc.open_ledger(place) as ledger:
        assert dict(release.events()) == dict(ledger.spent("people", "dataset"))
    with pytest.raises(RefusedError, match="not charged"):
        table().protect(method=dc.TopDown(rho=0.4)).write(tmp_path / "other", ledger=place)


def test_the_charge_comes_before_the_noise(tmp_path: Path, monkeypatch: Any) -> None:
    from discreet.dp.hierarchical import measurement

    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the engine died")

    monkeypatch.setattr(measurement, "add_gaussian", fails)
    place = granting(tmp_path / "ledger.db", 0.5)
    with pytest.raises(RuntimeError):
        table().protect(method=dc.TopDown(rho=0.4), ledger=place)
    monkeypatch.undo()
    with pytest.raises(RefusedError):
        table().protect(method=dc.TopDown(rho=0.4), ledger=place)


@pytest.mark.parametrize("large", [False, True])
def test_files_do_not_change_if_the_truth_is_poisoned_after_measuring(
    large: bool, tmp_path: Path, monkeypatch: Any
) -> None:
    from discreet.dp.hierarchical import measurement
    from discreet.tables.methods import top_down

    def drawn(values: Any, *, scale: float, **_: Any) -> Any:
        rng = np.random.default_rng(int(1000 * scale) + np.size(values))
        return np.asarray(values) + np.rint(rng.normal(0, scale, np.shape(values))).astype(int)

    def poisoning(spine: Any, basis: Any, leaves: Any, *given: Any, **options: Any) -> Any:
        found = measurement.measure(spine, basis, leaves, *given, **options)
        if options.get("simulated") is None:  # the page measures what is published
            leaves[:] = -(2**60)
            for array in held:
                array[:] = -1e18
        return found

    monkeypatch.setattr(measurement, "add_gaussian", drawn)
    method = dc.TopDown(rho=0.5, invariants={"1": "total"}, measurements=True)
    folders = []
    for name, held in (("plain", None), ("poisoned", [])):
        made = dc.tabulate(people(), by=["region", "sex", "age"], large=large)
        if held is not None:
            held += [] if large else [made.value]
            monkeypatch.setattr(top_down, "measure", poisoning)
        release = made.protect(method=method, rng=dc.Randomness.seeded(5))
        (tmp_path / name).mkdir()
        release.write_files(tmp_path / name)
        folders.append(tmp_path / name)
    names = sorted(file.name for file in folders[0].iterdir())
    assert "measurements.parquet" in names
    for name in names:
        if name.endswith((".csv", ".html", ".parquet")):
            one, two = (folder / name for folder in folders)
            assert _without_time(one) == _without_time(two), name


def _without_time(file: Path) -> bytes:
    """Return what a file holds, without the moment in which it was made."""
    return re.sub(rb"\d{4}-\d\d-\d\dT[0-9:.+Z]*", b"", file.read_bytes())


def test_the_loss_never_exceeds_the_grant() -> None:
    rng = np.random.default_rng(3)
    for _ in range(1000):
        depth = int(rng.integers(1, 7))
        parts = rng.dirichlet(np.ones(3 * depth)).reshape(depth, 3)
        shares = [{(): float(a), (0,): float(b), (0, 1): float(c)} for a, b, c in parts]
        rho = float(10 ** rng.uniform(-3, 1))
        budget = allocate(rho, shares, records=int(rng.integers(1, 4)))
        total = sum(Fraction(one.rho) for one in budget.measures)
        assert total <= Fraction(rho)
        assert float(total) >= rho * (1 - 1e-9)
        assert rho_spent(budget.events()) == budget.rho
        for one in budget.measures:
            assert one.rho == gaussian_loss(one.scale, float(budget.records))


def test_epsilon_is_turned_into_rho_by_the_same_accountant() -> None:
    for epsilon, delta in ((0.1, 1e-6), (1.0, 1e-10), (17.14, 1e-10)):
        rho = rho_of(epsilon, delta)
        zcdp = Accountant("zcdp", delta)
        assert zcdp.epsilon({gaussian_event(rho): 1}) <= epsilon
        assert zcdp.epsilon({gaussian_event(rho * 1.0001): 1}) > epsilon
    assert Accountant("zcdp", 1e-10).epsilon({gaussian_event(2.56): 1}) == pytest.approx(
        17.16, abs=0.01
    )
    release = table().protect(method=dc.TopDown(epsilon=1.0, delta=1e-6))
    assert release.protected.facts["epsilon"] <= 1.0


def test_two_accountants_agree_on_the_loss() -> None:
    budget = dc.TopDown(rho=0.5)._task(table()).budget
    by_zcdp = Accountant("zcdp", 1e-10).epsilon(budget.events())
    by_pld = Accountant("pld", 1e-10).epsilon(budget.events())
    assert by_zcdp == pytest.approx(6.84, abs=0.01)
    assert 0.8 * by_zcdp < by_pld <= by_zcdp


@pytest.mark.parametrize("scale", [0.6, 1.7, 2.5])
def test_the_noise_is_discrete_gaussian(scale: float) -> None:
    size = 40_000
    drawn = add_gaussian(np.zeros(size, dtype=np.int64), scale=scale)
    reach = int(3.5 * scale)
    support = np.arange(-reach, reach + 1)
    weight = np.exp(-(np.arange(-60, 61) ** 2) / (2 * scale**2))
    chance = np.exp(-(support**2) / (2 * scale**2)) / weight.sum()
    expected = np.append(chance, 1 - chance.sum()) * size
    seen = np.array([(drawn == value).sum() for value in support])
    seen = np.append(seen, size - seen.sum())
    statistic = float(((seen - expected) ** 2 / expected).sum())
    # Exceeded by chance once in 30,000 runs.
    assert stats.chi2.sf(statistic, len(support)) > 1 / 30_000


def test_the_census_split_is_that_of_2020() -> None:
    shares = level_shares("census", 6)
    assert shares[1] == pytest.approx(1440 / 4099)
    assert sum(shares) == pytest.approx(1)


def test_a_policy_states_the_same(tmp_path: Path) -> None:
    from discreet.registry import build
    from discreet.tables.methods import TableMethod

    data = {
        "name": "top-down",
        "rho": 1,
        "spine": "region",
        "levels": ["nation", "part", "place"],
        "split": {"nation": 0.2, "part": 0.3, "place": 0.5},
        "queries": {"place": {"total": 0.3, "detailed": 0.7}},
        "invariants": {"nation": "total"},
        "zeros": [{"sex": "m", "age": "0-17"}],
    }
    made = build(TableMethod, data)
    assert isinstance(made, dc.TopDown)
    assert made.zeros == ({"sex": "m", "age": "0-17"},)
    assert json.dumps(made.settings())


def test_files_are_written_and_verified(tmp_path: Path) -> None:
    release = table().protect(method=dc.TopDown(rho=1.0))
    folder = release.write(tmp_path / "out")
    frame = pd.read_csv(folder / "cells.csv")
    assert list(frame.columns[-5:]) == ["value", "lower_95", "upper_95", "status", "conf_status"]
    stated = json.loads((folder / "evidence.json").read_text())
    assert stated["settings"]["facts"]["rho"] <= 1.0


def test_seeded_lots_are_refused_for_a_release(tmp_path: Path) -> None:
    release = table().protect(method=dc.TopDown(), rng=dc.Randomness.seeded(1))
    with pytest.raises(RefusedError, match="seeded"):
        release.write(tmp_path / "out")


def test_plans_and_selections_that_cannot_be_are_named():
    tree = dc.Hierarchy.from_levels({"Land": {"N": ["n1", "n2"], "S": ["s1", "s2"]}})
    ages = dc.Hierarchy.flat(["0-17", "18-64"])
    many = dc.Hierarchy.flat([str(n) for n in range(5000)])
    with pytest.raises(dc.InputError) as caught:
        dc.TopDown.plan({}, rho=1)
    assert caught.value.code == "no-attributes"
    with pytest.raises(dc.InputError) as caught:
        dc.TopDown.plan({"region": tree, "a": many, "b": many}, rho=1)
    assert caught.value.code == "table-too-large"
    rows = pd.DataFrame({"region": ["n1", "n2", "s1"] * 9, "age": ["0-17", "18-64", "18-64"] * 9})
    people = dc.read(rows, hierarchies={"region": tree, "age": ages}, name="people")
    release = dc.tabulate(people, by=["region", "age"]).protect(
        method=dc.TopDown(rho=0.5, spine="region")
    )
    for wrong in ("n1", None):
        with pytest.raises(dc.InputError) as caught:
            release.interval(wrong)
        assert caught.value.code == "bad-selection"
    for overlapping in ({"region": ["n1", "N"]}, {"age": ["0-17", "Total"]}):
        with pytest.raises(dc.InputError) as caught:
            release.interval(overlapping)
        assert caught.value.code == "overlapping-codes"
    large = dc.tabulate(people, by=["region", "age"], large=True)
    with pytest.raises(dc.InputError) as caught:
        large.protect(rules=[dc.MinimumFrequency(3)], method=dc.TopDown(rho=1, spine="region"))
    assert caught.value.code == "rules-not-used"
