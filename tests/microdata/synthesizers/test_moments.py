"""Methods that keep moments keep them exactly; what is not drawn stays as it is, to the byte."""

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import InputError
from discreet.randomness import Randomness

NAMES = list("abcdef")


def frame(size=400, seed=1):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(size, 2)) @ rng.normal(size=(2, 6)) + rng.normal(size=(size, 6)) ** 3
    found = pd.DataFrame(base * 100, columns=NAMES)
    found["sex"] = rng.choice(["f", "m"], size)
    return found


def read(rows):
    return dc.read(rows, roles=dict.fromkeys(rows.columns, "quasi"))


def coefficients(rows, names, kept):
    design = np.column_stack(
        [np.ones(len(rows)), *(rows[k] if k != "sex" else rows.sex == "f" for k in kept)]
    )
    return np.linalg.lstsq(design.astype(float), rows[names].to_numpy(), rcond=None)[0]


def relative(one, two):
    one, two = np.asarray(one, float), np.asarray(two, float)
    return float(np.max(np.abs(one - two) / np.abs(two)))


def made_by(method, rows, seed=1):
    return dc.synthesize(read(rows), method, rng=Randomness.seeded(seed)).frame


def assert_ipso(rows, secret, kept):
    before = coefficients(rows, secret, kept)
    found = {kind: made_by(dc.IPSO(secret, kind=kind), rows) for kind in "ABC"}
    for kind, after in found.items():
        pd.testing.assert_frame_equal(after[kept], rows[kept])
        assert not np.allclose(after[secret], rows[secret], rtol=0.01), kind
    assert relative(coefficients(found["B"], secret, kept), before) < 1e-8
    assert relative(coefficients(found["C"], secret, kept), before) < 1e-8
    numbers = [name for name in rows.columns if name != "sex"]
    assert relative(found["C"][numbers].cov(), rows[numbers].cov()) < 1e-8
    assert relative(found["C"][secret].mean(), rows[secret].mean()) < 1e-10


def test_ipso_keeps_what_its_kind_says():
    assert_ipso(frame(), ["d", "e", "f"], ["a", "b", "c", "sex"])


@pytest.mark.parametrize("name", ["census", "tarragona"])
def test_ipso_is_exact_on_published_files(name, data_folder):
    rows = pd.read_csv(data_folder / "casc" / f"{name}.csv", sep=None, engine="python")
    rows = rows.select_dtypes("number")
    rows = rows[[c for c in rows.columns if rows[c].nunique() > 20][:9]].astype(float)
    secret, kept = list(rows.columns[3:]), list(rows.columns[:3])
    found = {kind: made_by(dc.IPSO(secret, kind=kind), rows) for kind in "ABC"}
    before = coefficients(rows, secret, kept)
    assert relative(found["C"].cov(), rows.cov()) < 1e-10
    assert relative(found["C"].mean(), rows.mean()) < 1e-10
    for kind in "BC":
        assert relative(coefficients(found[kind], secret, kept), before) < 1e-10
    design = np.column_stack([np.ones(len(rows)), rows[kept]])
    rest = rows[secret].to_numpy() - design @ before
    spread = np.diag(np.linalg.inv(design.T @ design))[:, None] * (rest**2).mean(axis=0)
    away = np.abs(coefficients(found["A"], secret, kept) - before) / np.sqrt(spread)
    assert 0.5 < np.sqrt((away**2).mean()) < 1.6
    assert away.max() < 4.5


@pytest.mark.parametrize(
    "method", [{"alpha": 0.0}, {"alpha": 0.5}, {"alpha": 0.9}, {"k": 3}, {"k": 30}]
)
def test_hybrids_keep_means_and_covariances(method):
    rows = frame()
    found = made_by(dc.Hybrid(NAMES, **method), rows)
    assert relative(found[NAMES].cov(), rows[NAMES].cov()) < 1e-8
    assert relative(found[NAMES].mean(), rows[NAMES].mean()) < 1e-8
    assert found.sex.equals(rows.sex)
    assert not np.allclose(found[NAMES], rows[NAMES], rtol=0.01)


def off(found, rows):
    """Return the largest error of a covariance, in standard deviations of its columns."""
    size = np.sqrt(np.outer(np.diag(rows.cov()), np.diag(rows.cov())))
    return float((np.abs(found.cov() - rows.cov()) / size).max().max())


EVERY = [dc.Hybrid(NAMES, alpha=0.0), dc.Hybrid(NAMES, alpha=0.5), dc.Hybrid(NAMES, k=20)]


@pytest.mark.parametrize("method", [*EVERY, dc.Hybrid(NAMES, k=4), dc.IPSO(NAMES, kind="C")])
@pytest.mark.parametrize("apart", [1e-3, 1e-6])
def test_columns_that_nearly_follow_from_each_other_keep_covariances(method, apart):
    """b is a and a trace of its own; f is a trillionth of the others' size, yet its moments stay."""
    rows = frame().assign(b=lambda x: x.a + apart * x.b, f=lambda x: 1e-12 * x.f)
    found = made_by(method, rows)
    assert off(found[NAMES], rows[NAMES]) < 1e-10
    assert not np.allclose(found[NAMES], rows[NAMES], rtol=0.01)


@pytest.mark.parametrize("method", EVERY)
def test_hybrids_keep_sums_and_multiples(method):
    """What follows from others in the original follows from them in the release."""
    rows = frame().assign(b=lambda x: 2 * x.a, e=lambda x: x.a + x.c)
    found = made_by(method, rows)
    assert off(found[NAMES], rows[NAMES]) < 1e-10
    assert np.allclose(found.b, 2 * found.a)


@pytest.mark.parametrize("kind", "AB")
def test_ipso_draws_small_columns_beside_large_ones(kind):
    rows = frame(4000).assign(b=lambda x: x.a + 1e-6 * x.b, f=lambda x: 1e-12 * x.f)
    found = made_by(dc.IPSO(NAMES, kind=kind), rows)
    assert off(found[NAMES], rows[NAMES]) < 0.1  # sampling error


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 0.9])
def test_hybrids_are_exact_on_census(alpha, data_folder):
    rows = pd.read_csv(data_folder / "casc" / "census.csv", sep=None, engine="python")
    rows = rows.select_dtypes("number").iloc[:, 4:10].astype(float)
    found = made_by(dc.Hybrid(list(rows.columns), alpha=alpha), rows)
    assert off(found, rows) < 1e-10
    assert relative(found.cov(), rows.cov()) < 1e-8


def third(rows):
    scaled = ((rows - rows.mean()) / rows.std()).to_numpy()
    return np.einsum("ni,nj,nk->ijk", scaled, scaled, scaled) / len(rows)


def test_groups_keep_third_moments_better_than_a_mix(data_folder):
    rows = pd.read_csv(data_folder / "casc" / "census.csv", sep=None, engine="python")
    rows = rows.select_dtypes("number").iloc[:, 4:10].astype(float)
    names = list(rows.columns)
    away = {}
    for word, method in (
        ("groups", dc.Hybrid(names, k=20)),
        ("mix", dc.Hybrid(names, alpha=0.5)),
    ):
        found = made_by(method, rows)
        away[word] = float(np.abs(third(found) - third(rows)).mean())
    assert away["groups"] < 0.08
    assert away["groups"] < 0.2 * away["mix"]


def test_partially_synthetic_leaves_the_rest_to_the_byte():
    rows = frame()
    where = np.arange(len(rows)) % 3 == 0
    data = read(rows)
    made = dc.synthesize(
        data,
        dc.PartiallySynthetic(["sex", "b"], by=dc.CART(min_leaf=20), where=where),
        m=3,
        rng=Randomness.seeded(1),
    )
    for file in made.sets:
        others = [name for name in rows.columns if name not in ("sex", "b")]
        pd.testing.assert_frame_equal(file[others], rows[others])
        assert file.loc[~where, ["sex", "b"]].equals(rows.loc[~where, ["sex", "b"]])
        assert (file.loc[where, "b"] != rows.loc[where, "b"]).mean() > 0.5
    assert "True" not in str(made.evidence().settings["methods"])


def test_which_records_were_chosen_is_not_told():
    where = np.zeros(400, bool)
    settings = dc.PartiallySynthetic("b", where=where).settings()
    assert settings["where"] == "records chosen by the curator"


@pytest.mark.parametrize(
    ("method", "change", "code"),
    [
        (dc.IPSO("sex"), {}, "not-numeric"),
        (dc.IPSO(["a", "b"]), {"b": lambda f: 2 * f.a}, "collinear-columns"),
        (dc.IPSO("a"), {"b": lambda f: f.a + f.c}, "telling-column"),
        (dc.IPSO("a"), {"a": lambda f: f.a.where(f.a > 0)}, "missing-values"),
        (dc.IPSO("z"), {}, "unknown-column"),
        (dc.Hybrid("a", k=1000), {}, "too-few-records"),
        (dc.PartiallySynthetic("a", where=np.ones(3, bool)), {}, "parameter-type"),
        (dc.PartiallySynthetic("a", where="zz > 3"), {}, "unknown-column"),
    ],
)
def test_mistakes_are_our_own_errors(method, change, code):
    rows = frame().assign(**change)
    with pytest.raises(InputError) as caught:
        dc.synthesize(read(rows), method)
    assert caught.value.code == code


def test_too_few_records_and_contradicting_parameters():
    with pytest.raises(InputError, match="too few"):
        dc.synthesize(read(frame(8)), dc.IPSO(["d", "e"]))
    with pytest.raises(InputError, match="not both"):
        dc.Hybrid("a", alpha=0.5, k=3)
    with pytest.raises(InputError, match="n cannot be chosen"):
        dc.synthesize(read(frame()), dc.IPSO("a"), n=3)


def test_imputed_numbers_keep_regressions_and_missing_shares():
    rng = np.random.default_rng(3)
    x = rng.normal(50, 10, 2000).round(1)
    sex = rng.choice(["f", "m"], 2000)
    y = 3 + 2 * x + 5 * (sex == "m") + rng.normal(0, 4, 2000)
    y[::10] = np.nan
    rows = pd.DataFrame({"x": x, "sex": sex, "y": y.round(2)})
    made = dc.synthesize(read(rows), dc.MultipleImputation(m=2), rng=Randomness.seeded(1))
    assert len(made.sets) == 2
    found = made.frame
    assert abs(found.y.isna().mean() - 0.1) < 0.03
    known = found.dropna()
    slope = coefficients(known.assign(sex=known.sex), ["y"], ["x", "sex"])
    assert abs(slope[1, 0] - 2) < 0.05
    assert abs(slope[2, 0] + 5) < 1


def test_whole_numbers_that_come_back_as_fractions_are_written(tmp_path):
    """Values of single records were looked for in the type of the original, which has no fractions."""
    drawn = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"age": drawn.integers(16, 90, 300), "pay": drawn.integers(1000, 9000, 300)}
    )
    people = dc.read(frame, roles={"age": "quasi", "pay": "confidential"}, name="people")
    made = dc.synthesize(people, dc.IPSO(["pay"], kind="A"))
    assert made.frame["pay"].dtype == float
    assert (made.write(tmp_path / "out") / "people.csv").exists()


def linked(one, two):
    """Return the share of records whose nearest record of another file is their own."""
    apart = (one**2).sum(axis=1)[:, None] + (two**2).sum(axis=1) - 2 * one @ two.T
    return float((apart.argmin(axis=1) == np.arange(len(one))).mean())


def figures(method, rows, names, seed=0):
    """Return the largest error of a third moment, that error over all of them, and the share linked."""
    made = made_by(method, rows, seed)[names]
    one, two = ((f - rows[names].mean()) / rows[names].std() for f in (rows[names], made))
    error = third(two) - third(one)
    relative = np.linalg.norm(error) / np.linalg.norm(third(one))
    return float(np.abs(error).max()), float(relative), linked(one.to_numpy(), two.to_numpy())


#: POTHVAL and INTVAL have tails that a handful of records make.
TAILS = ("POTHVAL", "INTVAL")


def column_sets(every, count, seed):
    """Return sets of six columns to be drawn and three to be kept, by lot, that a mix accepts."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        names = [str(name) for name in rng.permutation(every.columns)[:9]]
        try:
            made_by(dc.Hybrid(names[:6], alpha=0.5), every[names])
        except InputError:  # some columns are sums of others
            continue
        found.append((names[:6], names))
    return found


def compared(every, count, seed, k):
    """Return figures of a microhybrid and of a mix with α = .5, one row for each set of columns."""
    groups, mixes = [], []
    for names, used in column_sets(every, count, seed):
        groups.append(figures(dc.Hybrid(names, k=k), every[used], names))
        mixes.append(figures(dc.Hybrid(names, alpha=0.5), every[used], names))
        if k == 20:
            largest, relative, link = groups[-1]
            assert link <= 0.05
            assert largest < 0.1 * mixes[-1][0]
            assert relative <= 0.08
            assert largest <= 0.08 or set(TAILS) & set(names)
    return np.array(groups), np.array(mixes)


@pytest.fixture
def census(data_folder):
    return pd.read_csv(data_folder / "casc" / "census.csv").astype(float)


def test_microhybrid_keeps_third_moments_and_links_few(census):
    compared(census, 8, 1, 20)


def test_larger_groups_link_fewer_than_a_mix_and_keep_more(census):
    groups, mixes = compared(census, 8, 1, 50)
    assert groups[:, 2].mean() < 0.7 * mixes[:, 2].mean()
    assert (groups[:, 0] < 0.3 * mixes[:, 0]).all()


@pytest.mark.slow
def test_microhybrid_links_fewer_than_a_mix_over_200_column_sets(census):
    # On average, and not in every set: a mix links little where the kept columns explain little.
    groups, mixes = compared(census, 200, 2, 20)
    fewer = mixes[:, 2] - groups[:, 2]
    assert fewer.mean() > 2 * fewer.std() / np.sqrt(fewer.size)


def test_of_several_draws_those_are_taken_that_keep_third_moments(monkeypatch):
    rows = frame(600)
    rows[NAMES] = -np.log(1 - rows[NAMES].rank() / 601)  # skewed, by no single record
    several = figures(dc.Hybrid(NAMES, k=20), rows, NAMES)
    monkeypatch.setattr("discreet.microdata.synthesizers.hybrid._DRAWS", 1)
    single = figures(dc.Hybrid(NAMES, k=20), rows, NAMES)
    assert several[1] < 0.7 * single[1]


def test_every_group_keeps_its_means_and_covariances(census):
    """Groups are formed anew from the original, as the method does, and looked up in the release."""
    from discreet.microdata.masking._mdav import mdav
    from discreet.microdata.synthesizers._groups import joined_groups

    names = list(census.columns[:6])
    # Amounts of the census add up; whoever releases the parts vouches for them.
    roles, vouch = dict.fromkeys(census.columns, "quasi"), list(census.columns[6:])
    data = dc.read(census, roles=roles, vouch=vouch)
    drawn = dc.synthesize(data, dc.Hybrid(names, k=20), rng=Randomness.seeded(1))
    made, rows = (f[names].to_numpy() for f in (drawn.frame, census))
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    group = joined_groups(np.asarray(mdav(scaled, 20)), scaled, np.arange(len(rows)))
    assert group.max() + 1 > 45  # few of the 54 are joined
    for number in range(group.max() + 1):
        one, two = rows[group == number], made[group == number]
        assert len(one) >= 20
        assert relative(two.mean(axis=0), one.mean(axis=0)) < 1e-10
        size = np.sqrt(np.outer(one.var(axis=0), one.var(axis=0)))
        assert np.abs((np.cov(two.T) - np.cov(one.T)) / size).max() < 1e-9


@pytest.mark.parametrize(
    "method", [dc.IPSO("a", kind=k) for k in "ABC"] + [dc.Hybrid("a", alpha=0)]
)
def test_a_category_of_one_person_does_not_tell_its_number(method):
    """Noise orthogonal to the indicator of one record is 0 there: its value left as it came."""
    rows = frame().assign(person=lambda f: np.arange(len(f)) // 2)
    rows.loc[[10, 11], "sex"] = "x"
    rows.loc[[10, 11], "a"] = 3_000.0
    roles = {**dict.fromkeys(rows.columns, "quasi"), "person": "identifier"}
    for chosen, unit in ((rows, "person"), (rows.drop(index=11), None)):
        data = dc.read(chosen, roles=roles, unit=unit)
        made = dc.synthesize(data, method, rng=Randomness.seeded(1)).frame
        alone = (chosen["sex"] == "x").to_numpy()
        assert abs(made["a"].to_numpy()[alone].mean() - 3_000) > 1_000


def test_a_record_that_decides_a_coefficient_alone_is_refused():
    rows = frame()
    rows.loc[3, "b"] = 1e12
    with pytest.raises(InputError) as caught:
        dc.synthesize(read(rows), dc.IPSO("a"))
    assert caught.value.code == "decided-by-one"
    assert "55" not in str(caught.value)


EXACT = [dc.IPSO(["a", "b"], kind=k) for k in "ABC"] + [
    dc.Hybrid(["a", "b"], alpha=0.5),
    dc.Hybrid(["a", "b"], k=20),
]


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("people", [1, 2, 3])
def test_a_value_that_few_people_have_is_not_told_by_exact_moments(method, people):
    """Where one person alone has a value, the sum of squares is the square of the sum."""
    rows = frame()
    rows["a"] = 0.0
    rows.loc[100 : 99 + people, "a"] = np.array([55_555.0, 44_444.0, 33_333.0])[:people]
    with pytest.raises(InputError) as caught:
        made_by(method, rows)
    assert caught.value.code == "decided-by-one"
    assert "555" not in str(caught.value)


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("people", [1, 2])
def test_a_value_beside_small_ones_is_not_told_by_exact_moments(method, people):
    rows = frame()
    rows.loc[100 : 99 + people, "a"] = 1e8
    with pytest.raises(InputError) as caught:
        made_by(method, rows)
    assert caught.value.code == "decided-by-one"


@pytest.mark.parametrize("method", EXACT[:4])
def test_a_difference_of_columns_that_one_person_has_is_not_told(method):
    rows = frame()
    rows["b"] = rows["a"] + np.random.default_rng(2).normal(size=len(rows)) / 100
    rows.loc[7, "b"] += 5_000
    with pytest.raises(InputError) as caught:
        made_by(method, rows)
    assert caught.value.code == "decided-by-one"


def test_a_person_of_many_records_counts_once():
    rows = frame().assign(person=lambda f: np.arange(len(f)))
    rows["a"] = 0.0
    rows.loc[100:139, "a"] = np.arange(40) + 5_000.0
    rows.loc[100:139, "person"] = 1_000
    roles = {**dict.fromkeys(rows.columns, "quasi"), "person": "identifier"}
    for method in EXACT:
        with pytest.raises(InputError) as caught:
            dc.synthesize(dc.read(rows, roles=roles, unit="person"), method)
        assert caught.value.code == "decided-by-one"


@pytest.mark.parametrize("share", [0.5, 0.1, 0.03])
def test_numbers_of_few_values_do_not_leave_as_they_are(share):
    rng = np.random.default_rng(4)
    rows = frame(2_000)
    rows["a"] = np.where(rng.random(2_000) < share, rng.integers(1, 5, 2_000) * 100.0, 0.0)
    rows["b"] = rng.integers(0, 4, 2_000).astype(float)
    made = made_by(dc.Hybrid(["a", "b", "c"], k=20), rows)
    for name in "abc":
        assert (np.abs(made[name] - rows[name]) < 1e-6 * rows[name].abs().max()).mean() < 0.01
    assert off(made[["a", "b", "c"]], rows[["a", "b", "c"]]) < 1e-10


def test_values_with_float_dust_are_somebody_s_own(monkeypatch):
    """A number that arithmetic changed in its last digits is still that person's."""
    from discreet.microdata.synthesizers import hybrid

    rows = frame(200)
    monkeypatch.setattr(hybrid, "_again", lambda away, rng: away * (1 + 1e-14))
    data = read(rows)
    made = dc.synthesize(data, dc.Hybrid(["a", "b"], k=20), rng=Randomness.seeded(1))
    assert made.evidence().risk["values of one record"]["a"] > 150
    assert "100.0% of changed columns' numbers" in made.risk().verdict
    monkeypatch.undo()
    made = dc.synthesize(data, dc.Hybrid(["a", "b"], k=20), rng=Randomness.seeded(1))
    assert "a" not in made.evidence().risk["values of one record"]
    assert ("interval-disclosure", 1.0) in [(row[0], row[2]) for row in made.risk().rows()[1]]


def test_groups_tell_nobody_s_value():
    """Groups that stay 0 would show which records are drawn together with the one that is not."""
    rng = np.random.default_rng(4)
    rows = frame(1_000)
    rows["a"] = 0.0
    rows.loc[rng.permutation(1_000)[:30], "a"] = rng.integers(1_000, 9_000, 30)
    fitted = dc.Hybrid(["a", "b"], k=20).fit(read(rows), rng=Randomness.seeded(1))
    for number in range(fitted.notes["groups"]):
        own = rows["a"][fitted._group == number]
        assert (own != 0).sum() >= 5
        away = (own - own.mean()) ** 2
        assert away.max() < 0.83 * away.sum()


def test_the_average_of_several_mixes_tells_no_more_than_one():
    rows = frame(600)

    def told(m):
        made = dc.synthesize(read(rows), dc.Hybrid(NAMES, alpha=0.5), m=m, rng=Randomness.seeded(1))
        mean = np.mean([file[NAMES].to_numpy() for file in made.sets], axis=0)
        return np.corrcoef(mean[:, 0], rows["a"])[0, 1]

    assert told(1) == pytest.approx(0.5, abs=0.03)
    assert told(40) == pytest.approx(0.5, abs=0.08)
    made = dc.synthesize(read(rows), dc.Hybrid(NAMES, alpha=0.5), m=3, rng=Randomness.seeded(1))
    for file in made.sets:
        assert off(file[NAMES], rows[NAMES]) < 1e-10
