"""MST and AIM: the promise, what is charged, public domains, and the same tables on engines."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.dp.accountant import Accountant, gaussian_event
from discreet.dp.grant import Grant
from discreet.dp.graphical.domain import Sizes
from discreet.dp.spending import Spending
from discreet.errors import InputError, RefusedError
from discreet.ledger.opening import open_ledger
from discreet.microdata.synthesizers._tables import Tables, codings
from discreet.randomness import Randomness

DOMAINS = {
    "sex": ["f", "m"],
    "job": ["cook", "nurse", "pilot", None],
    "age": {"cuts": [0, 18, 40, 65, 100]},
    "pay": {"bounds": [0, 100]},
}


def frame(size=600, seed=1):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], size)
    job = np.where(sex == "f", "nurse", rng.choice(["cook", "pilot"], size)).astype(object)
    job[::40] = None
    age = rng.integers(0, 101, size)
    return pd.DataFrame({"sex": sex, "job": job, "age": age, "pay": (0.9 * age).round(2)})


def people(rows=None, **more):
    rows = frame() if rows is None else rows
    domains = {name: DOMAINS[name] for name in rows.columns if name in DOMAINS}
    return dc.read(
        rows, **{"name": "people", "roles": dict.fromkeys(rows.columns, "quasi"), "domains": domains}
        | more
    )  # fmt: skip


@pytest.mark.parametrize("method", [dc.MST(epsilon=20, delta=1e-5), dc.AIM(epsilon=20, delta=1e-5)])
def test_pairs_and_types_are_kept_with_a_large_budget(method):
    made = dc.synthesize(people(), method, n=2000).frame
    assert (made.job[made.sex == "f"].dropna() == "nurse").mean() > 0.9
    assert made.age.between(0, 100).all()
    assert str(made.age.dtype).startswith("int")
    assert abs(made.job.isna().mean() - 1 / 40) < 0.03


@pytest.mark.parametrize(("column", "made"), [("job", {"rare": 3}), ("age", {"widths": [5, 10]})])
def test_hierarchies_made_from_the_records_are_no_public_domain(column, made):
    domains = {name: domain for name, domain in DOMAINS.items() if name != column}
    data = people(domains=domains, hierarchies={column: made})
    with pytest.raises(InputError) as error:
        dc.synthesize(data, dc.MST(epsilon=1, delta=1e-6))
    assert error.value.code == "missing-domain"


def test_the_number_of_records_is_noisy():
    sizes = {len(dc.synthesize(people(), dc.MST(epsilon=0.5, delta=1e-6)).frame) for _ in range(4)}
    assert len(sizes) > 1


def test_a_report_can_be_bought(tmp_path):
    method = dc.MST(epsilon=2, delta=1e-6)
    made = dc.synthesize(people(), method, report_budget=5.0)
    assert made.bought.epsilon == 5
    rho = method.budget().rho
    assert made.spent.rho > rho
    assert sum(made.events().values()) == 2
    both = Accountant("zcdp", 1e-6).epsilon(made.events())
    assert made.spent.epsilon == both > 5
    assert f"({both:g}, 1e-06)-differential privacy" in made.promise
    written = (made.write(tmp_path / "out") / "evidence.json").read_text()
    assert '"bought"' in written
    assert "which was bought with ε = 5" in made.verdict
    with pytest.raises(InputError) as caught:
        dc.synthesize(people(), dc.CART(), report_budget=1.0)
    assert "no report can be bought" in str(caught.value)


def test_a_bought_distance_is_near_the_true_one_and_moves_by_one_record_at_most():
    from discreet.microdata.bought import _gap, bought_distances

    rows = frame()
    method = dc.MST(epsilon=1, delta=1e-6)
    data, other = people(rows), people(rows.assign(sex="f"))
    with method.tables(data) as true, method.tables(other) as made:
        # At this budget the noise has a deviation of 0.5: half a count of 1,200.
        found = bought_distances(
            true, made, records=600, epsilon=9.0, rho=4.0, rng=Randomness.seeded(1)
        )
        gap = _gap(true, made, [(0,)], 600)
        assert gap == 2 * (rows.sex == "m").sum()
        assert abs(found.columns - gap / 4 / 1200) < 0.01
        assert found.within < 0.01
        singles = [(place,) for place in range(4)]
        for missing in (0, 17, 399):
            with method.tables(people(rows.drop(index=missing))) as fewer:
                for tables in (singles, [(0, 1), (1, 2)]):
                    moved = _gap(true, made, tables, 600) - _gap(fewer, made, tables, 600)
                    assert abs(moved) <= 1 + 1e-9


def test_nothing_measured_on_the_original_is_written(tmp_path):
    made = dc.synthesize(people(), dc.MST(epsilon=1, delta=1e-6))
    folder = made.write(tmp_path / "out")
    evidence = (folder / "evidence.json").read_text()
    page = (folder / "report.html").read_text()
    assert '"loss": {}' in evidence
    assert "membership" not in evidence + page
    assert "original records" not in evidence
    assert made.utility()["marginals"].value < 1  # for the curator
    assert len(made.risk().found.findings) == 4


def granting(place, epsilon):
    with open_ledger(place) as ledger:
        ledger.set_grant("people", Grant(epsilon, 1e-6, "zcdp").to_dict())
    return place


def test_each_run_is_charged_before_noise_is_drawn(tmp_path, monkeypatch):
    place = granting(tmp_path / "ledger.db", 1.0)
    method = dc.MST(epsilon=1, delta=1e-6)
    made = dc.synthesize(people(), method, m=3, ledger=place)
    made.write(tmp_path / "out", ledger=place)
    with open_ledger(place) as ledger:
        spent = ledger.spent("people", "dataset")
    assert spent == {gaussian_event(made.spent.rho): 1}
    assert Accountant("zcdp", 1e-6).epsilon(spent) <= 1
    with pytest.raises(RefusedError):
        dc.synthesize(people(), method, ledger=place)
    granting(place, 9.0)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Spending, "noisy", stop)
    with pytest.raises(KeyboardInterrupt):
        dc.synthesize(people(), method, ledger=place)
    with open_ledger(place) as ledger:
        assert ledger.spent("people", "dataset") == {gaussian_event(made.spent.rho): 2}


def test_what_is_wrong_whatever_the_records_is_not_charged(tmp_path):
    place = granting(tmp_path / "ledger.db", 1.0)
    method = dc.AIM(epsilon=1, delta=1e-6, workload=[["sex", "colour"]])
    with pytest.raises(InputError):
        dc.synthesize(people(), method, ledger=place)
    with open_ledger(place) as ledger:
        assert not ledger.spent("people", "dataset")


@pytest.mark.parametrize("make", [dc.MST, dc.AIM])
def test_the_maps_add_up_to_what_was_charged_at_most(make):
    rng = np.random.default_rng(2)
    rows = people(frame(200))
    for _ in range(4):
        method = make(
            epsilon=float(10 ** rng.uniform(-1, 1)), delta=float(10 ** rng.uniform(-9, -5))
        )
        spending = method.fit(rows, rng=Randomness.secure()).spending
        total = sum(map(Fraction, spending.costs))
        assert total == spending.spent <= spending.grant == Fraction(method.budget().rho)
        assert float(total) >= 0.999 * float(spending.grant)  # nothing is granted and not used


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"domains": {}}, "missing-domain"),
        ({"domains": {**DOMAINS, "sex": ["f"]}}, "outside-domain"),
        ({"domains": {**DOMAINS, "job": ["cook", "nurse", "pilot"]}}, "outside-domain"),
        ({"domains": {**DOMAINS, "age": ["young"]}}, "bad-domain"),
        ({"domains": {**DOMAINS, "sex": {"bounds": [0, 1]}}}, "bad-domain"),
        ({"domains": {**DOMAINS, "age": {"cuts": [0, 0.5, 100]}}}, "bad-domain"),
    ],
)
@pytest.mark.parametrize("make", [dc.MST, dc.AIM])
def test_domains_that_do_not_fit(change, code, make):
    with pytest.raises(InputError) as caught:
        dc.synthesize(people(**change), make(epsilon=1, delta=1e-6))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("change", "code", "is_charged"),
    [
        # Declared wrongly, whatever the records: free.
        ({"domains": {}}, "missing-domain", False),
        # Found by looking at the records: free, it would tell of them as often as one likes.
        ({"domains": {**DOMAINS, "sex": ["f"]}}, "outside-domain", True),
        ({"unit": "who"}, "several-records", True),
    ],
)
@pytest.mark.parametrize("make", [dc.MST, dc.AIM])
def test_what_the_records_themselves_forbid_is_charged_first(
    tmp_path, change, code, is_charged, make
):
    rows = frame().assign(who=lambda f: f.index // 2) if "unit" in change else frame()
    roles = {"roles": dict.fromkeys(frame().columns, "quasi")} if "unit" in change else {}
    data = people(rows, **change, **roles)
    place = granting(tmp_path / "ledger.db", 1.0)
    with pytest.raises(InputError) as caught:
        dc.synthesize(data, make(epsilon=1, delta=1e-6), ledger=place)
    assert caught.value.code == code
    with open_ledger(place) as ledger:
        assert bool(ledger.spent("people", "dataset")) is is_charged


def test_other_mistakes_are_our_own_errors():
    for method, code in [
        (dc.AIM(epsilon=1, delta=1e-6, workload=7), "parameter-range"),
        (dc.AIM(epsilon=1, delta=1e-6, size=10, bins=50), "domain-too-large"),
        (dc.AIM(epsilon=1, delta=1e-6, size=100, bins=50), "domain-too-large"),
        (dc.AIM(epsilon=1, delta=1e-6, size=100, workload=3, bins=50), "domain-too-large"),
        (dc.MST(epsilon=1e9, delta=1e-6), "parameter-range"),
    ]:
        with pytest.raises(InputError) as caught:
            dc.synthesize(people(), method)
        assert caught.value.code == code, method
    with pytest.raises(InputError):
        dc.MST(epsilon=-1)
    with pytest.raises(InputError):
        dc.AIM(epsilon=1, delta=0)


@pytest.mark.parametrize(
    ("column", "domain", "code"),
    [
        ("pay", {"bounds": [-1e308, 1e308]}, "bad-domain"),
        ("pay", {"cuts": [-1e308, 0, 1e308]}, "bad-domain"),
        ("age", {"bounds": [-1e30, 1e30]}, "bad-domain"),
        ("pay", {"cuts": list(range(12_000))}, "domain-too-large"),
        ("age", list(range(12_000)), "domain-too-large"),
    ],
)
def test_domains_beyond_what_numbers_hold_or_statements_count(column, domain, code):
    data = people().replace(domains={column: domain})
    for method in (dc.MST(1.0, 1e-6), dc.AIM(1.0, 1e-6)):
        with pytest.raises(InputError) as caught:
            dc.synthesize(data, method)
        assert caught.value.code == code


def test_small_whole_numbers_are_drawn_within_their_type():
    rows = frame().astype({"age": "int8"})
    with pytest.raises(InputError) as caught:
        dc.synthesize(people(rows).replace(domains={"age": {"bounds": [0, 1_000]}}), dc.MST(1.0))
    assert caught.value.code == "bad-domain"


@pytest.mark.parametrize("delta", [1e-320, 5e-324, 1e-301])
def test_a_delta_below_double_precision_is_refused(delta):
    """The search for ρ did not end."""
    for method in (dc.MST(1.0, delta), dc.AIM(1.0, delta)):
        with pytest.raises(InputError) as caught:
            dc.synthesize(people(), method)
        assert caught.value.code == "parameter-range"


def test_a_table_that_is_too_large_is_named_with_a_binning():
    with pytest.raises(InputError) as caught:
        dc.synthesize(people(), dc.AIM(epsilon=1, delta=1e-6, size=100, bins=50))
    assert "the table job × pay has 200 cells" in str(caught.value)
    assert "{'pay': {'cuts': […]}} with at most 25" in str(caught.value)
    some = dc.AIM(epsilon=1, delta=1e-6, size=100, bins=50, workload=[["sex", "age"]])
    assert len(dc.synthesize(people(), some, n=9).frame) == 9


def test_progress_is_told_by_round_and_fit():
    told = set()
    for make in (dc.MST, dc.AIM):
        dc.synthesize(people(), make(epsilon=1, delta=1e-6), progress=lambda w, d, n: told.add(w))
    assert told >= {"columns", "pairs", "rounds", "fits"}


def test_a_unit_with_two_records_is_refused():
    rows = frame().assign(who=lambda f: f.index // 2)
    data = people(rows, unit="who", roles=dict.fromkeys(frame().columns, "quasi"))
    with pytest.raises(InputError) as caught:
        dc.synthesize(data, dc.MST(epsilon=1, delta=1e-6))
    assert caught.value.code == "several-records"


def test_tables_are_those_of_the_records():
    rows = frame()
    coded = codings(people(rows), list(rows.columns), bins=4, missing=[])
    tables = Tables(people(rows), coded)
    assert tables.sizes == Sizes((2, 4, 4, 4))
    bins = np.minimum(np.searchsorted([18, 40, 65], rows.age, side="right"), 3)
    expected = np.zeros((2, 4), int)
    np.add.at(expected, ((rows.sex == "m").astype(int), bins), 1)
    assert (tables.counts((0, 2)) == expected).all()
    assert tables.counts((1,))[3] == rows.job.isna().sum()


def test_every_engine_counts_the_same_tables(engine):
    import pyarrow as pa

    rows = frame(300)
    table = pa.Table.from_pandas(rows, preserve_index=False)
    roles = dict.fromkeys(rows.columns, "quasi")
    here, there = (
        dc.read(table, roles=roles, domains=DOMAINS, name="people", **where)
        for where in ({}, {"engine": engine})
    )
    method = dc.AIM(epsilon=1, delta=1e-6)
    with method.tables(here) as one, method.tables(there) as two:
        for attributes in [(0,), (1,), (2,), (3,), (0, 1), (1, 3), (0, 1, 2)]:
            assert (one.counts(attributes) == two.counts(attributes)).all(), attributes
    made = dc.synthesize(there, dc.MST(epsilon=20, delta=1e-5), n=400).frame.to_pandas()
    assert (made.job[made.sex == "f"].dropna() == "nurse").mean() > 0.8


def test_a_private_method_fetches_no_record(monkeypatch):
    """Only counts come out of the engine: as many rows as a table has cells, never the records."""
    from discreet.data.dataset import Dataset

    def stop(*_, **__):
        raise AssertionError("records were fetched")

    data = people()
    for make in (dc.MST, dc.AIM):
        method = make(epsilon=1, delta=1e-6)
        with monkeypatch.context() as patched:
            patched.setattr(Dataset, "arrow", stop)
            method.prepare(data)
            fitted = method.fit(data, rng=Randomness.secure())
        assert fitted.draw(7, rng=Randomness.secure()).num_rows == 7


def test_a_hierarchys_leaves_are_a_domain():
    rows = pd.DataFrame({"region": ["n1", "s2"] * 50})
    tree = dc.Hierarchy.from_levels({"All": {"N": ["n1", "n2"], "S": ["s1", "s2"]}})
    data = dc.read(rows, roles={"region": "quasi"}, hierarchies={"region": tree})
    made = dc.synthesize(data, dc.MST(epsilon=1, delta=1e-6), n=500).frame
    assert set(made.region) <= {"n1", "n2", "s1", "s2"}


@pytest.mark.parametrize("shown", [repr, str, lambda made: made._repr_html_()])
def test_a_release_does_not_show_how_many_records_the_original_has(shown):
    rows = pd.DataFrame({"x": ["a", "b"] * 3333 + ["a"]})
    data = dc.read(rows, roles={"x": "quasi"}, domains={"x": ["a", "b"]})
    made = dc.synthesize(data, dc.MST(epsilon=1), n=50)
    assert "6,667" not in shown(made)
    assert "6667" not in shown(made)
