"""Combining rules: by hand, through files, and by how often their intervals hold."""

import math
import shutil

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import InputError
from discreet.microdata.combining import combined_estimate
from discreet.randomness import Randomness

Q, V = [10.0, 14.0, 12.0, 8.0], [2.0, 1.0, 2.0, 1.0]  # q̄ 11, v̄ 1.5, b 20/3


def test_the_partial_rule_by_hand():
    found = combined_estimate(Q, V, kind="partially")
    assert found.estimate == 11
    assert found.variance == pytest.approx(1.5 + 20 / 3 / 4)
    assert found.freedom == pytest.approx(3 * (1 + 1.5 / (20 / 12)) ** 2)


def test_the_full_rule_by_hand():
    found = combined_estimate(Q, V, kind="fully")
    spread = 1.25 * 20 / 3
    assert found.variance == pytest.approx(spread - 1.5)
    assert found.freedom == pytest.approx(3 * (1 - 1.5 / spread) ** 2)


def test_a_negative_full_variance_falls_back():
    found = combined_estimate([10.0, 10.1, 9.9], [4.0, 4.0, 4.0], kind="fully", ratio=0.5)
    assert found.variance == pytest.approx(2.0)
    assert found.freedom == 2
    assert "more files" in found.note


def test_the_simple_rules_by_hand():
    assert combined_estimate([5.0], [2.0], kind="simple").variance == pytest.approx(4.0)
    assert combined_estimate(Q, V, kind="simple", ratio=0.5).variance == pytest.approx(1.5 * 0.75)
    proper = combined_estimate(Q, V, kind="proper", ratio=0.5)
    assert proper.variance == pytest.approx(1.5 * (0.5 + 1.5 / 4))
    reach = 1.959964 * math.sqrt(proper.variance)
    assert proper.high == pytest.approx(11 + reach, rel=1e-5)


def people(size=200, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(10, 2, size)
    y = 1 + 2 * x + rng.normal(0, 3, size)
    frame = pd.DataFrame({"x": x, "y": y})
    return dc.read(frame, roles=dict.fromkeys(frame, "quasi"))


def test_published_files_alone_say_their_rule(tmp_path):
    made = dc.synthesize(people(), dc.MultipleImputation(m=4))
    folder = made.write(tmp_path / "out")
    one, two = dc.combine(made, "y ~ x"), dc.combine(folder, "y ~ x")
    three = dc.combine(sorted(folder.glob("*.csv")), "y ~ x")
    assert one.kind == two.kind == three.kind == "fully"
    assert one["x"].estimate == pytest.approx(two["x"].estimate, rel=1e-9)
    assert one["x"].low == pytest.approx(three["x"].low, rel=1e-9)
    with pytest.raises(InputError, match="wrong intervals"):
        dc.combine(folder, "y ~ x", kind="simple")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Files of two releases, by two rules, and of a third that differs in its settings only."""
    place = tmp_path_factory.mktemp("combined")
    methods = {"mi": dc.MultipleImputation(m=3), "cart": dc.CART(), "fine": dc.CART(min_leaf=20)}
    return {
        name: sorted(dc.synthesize(people(), method, m=3).write(place / name).glob("*.csv"))
        for name, method in methods.items()
    }


def test_each_file_counts_once(written):
    files = written["mi"]
    frame = pd.read_csv(files[0])
    for several in ([files[0]] * 3, [*files, files[1]], [frame, frame.copy()]):
        with pytest.raises(InputError, match="same records") as caught:
            dc.combine(several, "y ~ x", kind=None if several[0] is not frame else "fully")
        assert caught.value.code == "repeated-file"
    assert dc.combine(files[:2], "y ~ x").files == 2


@pytest.mark.parametrize(("one", "two"), [("mi", "cart"), ("cart", "mi"), ("cart", "fine")])
def test_files_of_two_releases_are_refused(written, one, two):
    with pytest.raises(InputError) as caught:
        dc.combine([*written[one][:2], *written[two][:2]], "y ~ x")
    assert caught.value.code == "mixed-files"


def test_files_that_say_nothing_do_not_join_those_that_do(written, tmp_path):
    lone = tmp_path / "lone.csv"
    people(200, 5).frame.to_csv(lone, index=False)
    with pytest.raises(InputError) as caught:
        dc.combine([*written["mi"], lone], "y ~ x")
    assert caught.value.code == "mixed-files"
    other = people(200, 6).frame.assign(z=1)
    with pytest.raises(InputError, match="other columns"):
        dc.combine([people(200, 5).frame, other], "y ~ x", kind="simple")


@pytest.mark.parametrize("whole", [True, False])
def test_a_file_cut_after_it_was_published_is_refused(written, tmp_path, whole):
    folder = shutil.copytree(written["mi"][0].parent, tmp_path / "out")
    files = sorted(folder.glob("*.csv"))
    pd.read_csv(files[1]).head(5).to_csv(files[1], index=False)
    with pytest.raises(InputError, match="has 5 records") as caught:
        dc.combine(folder if whole else files, "y ~ x")
    assert caught.value.code == "changed-file"


def test_categories_and_functions():
    frames = [
        pd.DataFrame({"sex": ["f", "m"] * 20, "y": np.arange(40.0) + s * np.arange(40) % 3})
        for s in (1, 2)
    ]
    found = dc.combine(frames, "y ~ sex", kind="partially")
    assert [e.name for e in found.estimates] == ["(constant)", "sex=m"]

    def mean(frame):
        return {"mean": frame.y.mean()}, {"mean": frame.y.var() / len(frame)}

    assert dc.combine(frames, mean, kind="simple")["mean"].freedom == math.inf
    assert "mean" in str(dc.combine(frames, mean, kind="simple"))


@pytest.mark.parametrize(
    ("files", "text", "kind", "code"),
    [
        (1, "y ~ x", None, "missing-parameter"),
        (1, "y ~ x", "partially", "too-few-files"),
        (2, "y ~ x", "rubin", "unknown-rule"),
        (2, "y ~ z", "simple", "unknown-column"),
        (2, "y", "simple", "unknown-column"),
        (0, "y ~ x", "simple", "missing-file"),
    ],
)
def test_mistakes_are_our_own_errors(files, text, kind, code):
    frames = [people(20, s).frame for s in range(files)]
    with pytest.raises(InputError) as caught:
        dc.combine(frames, text, kind=kind)
    assert caught.value.code == code


def test_a_file_in_another_order_counts_once(written):
    files = written["mi"]
    mixed = pd.read_csv(files[0]).sample(frac=1, random_state=1).reset_index(drop=True)
    with pytest.raises(InputError) as caught:
        dc.combine([pd.read_csv(files[0]), mixed], "y ~ x", kind="fully")
    assert caught.value.code == "repeated-file"
    # Files of two codes often have the same counts, and are no copies.
    coins = [
        pd.DataFrame({"a": order, "b": order[::-1]})
        for order in ([0, 0, 1, 1, 1] * 8, [1, 1, 0, 1, 0] * 8)
    ]
    assert (
        dc.combine(coins, lambda f: ({"a": f.a.mean()}, {"a": f.a.var() / 40}), kind="simple").files
        == 2
    )


def mean(frame):
    return {"mean": frame.y.mean()}, {"mean": frame.y.var() / len(frame)}


@pytest.mark.parametrize(
    ("analysis", "more", "code"),
    [
        (mean, {"level": 0}, "parameter-range"),
        (mean, {"level": 95}, "parameter-range"),
        (mean, {"level": math.nan}, "parameter-range"),
        (mean, {"level": "0.9"}, "parameter-range"),
        (mean, {"originals": 0}, "parameter-range"),
        (mean, {"originals": -5}, "parameter-range"),
        (mean, {"originals": 2.5}, "parameter-range"),
        (mean, {"originals": True}, "parameter-range"),
        (3, {}, "parameter-type"),
        (lambda f: 3, {}, "bad-analysis"),
        (lambda f: ({}, {}), {}, "bad-analysis"),
        (lambda f: ({"a": 1.0}, {"b": 1.0}), {}, "bad-analysis"),
        (lambda f: ({"a": 1.0}, {"a": -1.0}), {}, "bad-analysis"),
        (lambda f: ({"a": math.nan}, {"a": 1.0}), {}, "bad-analysis"),
        (lambda f: ({"a": "x"}, {"a": 1.0}), {}, "bad-analysis"),
        (lambda f: ({str(f.y[0]): 1.0}, {str(f.y[0]): 1.0}), {}, "bad-analysis"),
        ("y ~ x + x", {}, "repeated-column"),
        ("y ~ y", {}, "repeated-column"),
        ("~", {}, "repeated-column"),
        ("y ~ x +", {}, "unknown-column"),
    ],
)
def test_impossible_arguments_are_our_own_errors(analysis, more, code):
    frames = [people(20, s).frame for s in range(2)]
    with pytest.raises(InputError) as caught:
        dc.combine(frames, analysis, kind="partially", **more)
    assert caught.value.code == code


def test_files_of_other_sizes_are_refused():
    with pytest.raises(InputError) as caught:
        dc.combine([people(20, 1).frame, people(30, 2).frame], "y ~ x", kind="simple")
    assert caught.value.code == "mixed-files"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (
            lambda text: text.replace('"inference": "fully"', '"inference": "simple"'),
            "malformed-evidence",
        ),
        (
            lambda text: text.replace('"original records": 200', '"original records": 2'),
            "changed-file",
        ),
    ],
)
def test_evidence_that_was_changed_is_refused(tmp_path, change, code):
    """The rule follows from the method; what a manifest lists is as it was published."""
    made = dc.synthesize(people(), dc.MultipleImputation(m=3))
    folder = made.write(
        tmp_path / "out", ledger=tmp_path / "ledger.db" if code == "changed-file" else None
    )
    assert dc.combine(folder, "y ~ x").kind == "fully"
    place = folder / "evidence.json"
    place.write_text(change(place.read_text()))
    with pytest.raises(InputError) as caught:
        dc.combine(folder, "y ~ x")
    assert caught.value.code == code


def test_the_number_of_originals_is_what_the_release_says(written):
    with pytest.raises(InputError) as caught:
        dc.combine(written["cart"], "y ~ x", originals=10)
    assert caught.value.code == "wrong-rule"
    assert dc.combine(written["cart"], "y ~ x", originals=200).kind == "simple"


def test_private_and_exact_files_have_no_rule():
    made = dc.synthesize(people(), dc.IPSO("y"), m=2)
    with pytest.raises(InputError) as caught:
        dc.combine(made, "y ~ x")
    assert caught.value.code == "no-rule"


def covered(method, repetitions, m, *, n=200):
    """Return how often intervals of the slope hold: the rule's, and a file's taken as real."""
    rule, naive = 0, 0
    for seed in range(repetitions):
        made = dc.synthesize(people(n, seed), method, m=m, rng=Randomness.seeded(seed))
        found = dc.combine(made, "y ~ x")["x"]
        rule += found.low <= 2 <= found.high
        one = dc.combine([made.frame], "y ~ x", kind="simple")["x"]  # twice a file's own variance
        reach = 1.96 * math.sqrt(one.variance / 2)
        naive += abs(one.estimate - 2) <= reach
    return rule / repetitions, naive / repetitions


def test_intervals_hold_where_those_of_one_file_do_not():
    rule, naive = covered(dc.MultipleImputation(m=5), 60, 5)
    assert rule >= 0.9
    assert naive <= 0.95


@pytest.mark.slow
def test_intervals_hold_as_often_as_they_say():
    rule, naive = covered(dc.MultipleImputation(m=20), 1000, 20)
    assert rule >= 0.93
    assert naive < 0.92


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "m"), [("partially", 5), ("simple", 1)])
def test_the_rules_hold_for_normal_regressions(kind, m):
    """The rules themselves, on files drawn by the textbook: y anew given x, or both by plug-in."""
    rng = np.random.default_rng(7)
    hits, naive, repetitions, n = 0, 0, 1500, 200
    for _ in range(repetitions):
        x = rng.normal(10, 2, n)
        y = 1 + 2 * x + rng.normal(0, 3, n)
        design = np.column_stack([np.ones(n), x])
        inverse = np.linalg.inv(design.T @ design)
        slope = inverse @ design.T @ y
        rest = y - design @ slope
        variance = rest @ rest / (n - 2)
        files = []
        for _ in range(m):
            if kind == "partially":
                drawn = variance * (n - 2) / rng.chisquare(n - 2)
                beta = rng.multivariate_normal(slope, drawn * inverse)
                files.append((x, design @ beta + rng.normal(0, math.sqrt(drawn), n)))
            else:
                new = rng.normal(x.mean(), x.std(ddof=1), n)
                noise = rng.normal(0, math.sqrt(variance), n)
                files.append((new, slope[0] + slope[1] * new + noise))
        estimates, variances = [], []
        for one, two in files:
            fit = np.column_stack([np.ones(n), one])
            back = np.linalg.inv(fit.T @ fit)
            found = back @ fit.T @ two
            left = two - fit @ found
            estimates.append(found[1])
            variances.append(back[1, 1] * (left @ left) / (n - 2))
        combined = combined_estimate(estimates, variances, kind=kind)
        hits += combined.low <= 2 <= combined.high
        naive += abs(estimates[0] - 2) <= 1.96 * math.sqrt(variances[0])
    assert 0.93 <= hits / repetitions <= 0.97
    assert naive / repetitions < 0.92
