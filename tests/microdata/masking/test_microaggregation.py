"""Microaggregation: published losses, exactness against a plain scan, and its laws."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.data.hierarchy import Hierarchy
from discreet.data.schema import Column, Schema, Type
from discreet.microdata.masking import _local_search, _mdav
from discreet.microdata.masking.microaggregation import partition

PUBLISHED = {
    ("census", 3): (5.6922, 5.2355, 4.8086),
    ("census", 5): (9.0884, 8.1671, 7.4614),
    ("census", 10): (14.1559, 12.3100, 11.7705),
    ("tarragona", 3): (16.9326, 14.8846, 14.6337),
    ("tarragona", 5): (22.4619, 20.9159, 20.4948),
    ("tarragona", 10): (33.1929, 30.8232, 30.4604),
}


def loss(points, groups):
    sums = np.zeros((groups.max() + 1, points.shape[1]))
    np.add.at(sums, groups, points)
    centres = sums / np.bincount(groups)[:, None]
    return 100 * ((points - centres[groups]) ** 2).sum() / ((points - points.mean(0)) ** 2).sum()


def plain_mdav(points, k):
    """MDAV as the paper tells it, by scanning everything."""
    alive = np.ones(len(points), bool)
    groups = np.full(len(points), -1)
    made = 0

    def take(leader):
        nonlocal made
        places = np.flatnonzero(alive)
        away = ((points[places] - points[leader]) ** 2).sum(1)
        away[places == leader] = -1
        members = places[np.argsort(away, kind="stable")[:k]]
        groups[members] = made
        alive[members] = False
        made += 1

    def outermost():
        places = np.flatnonzero(alive)
        away = ((points[places] - points[places].mean(0)) ** 2).sum(1)
        return places[np.argmax(away)]

    while alive.sum() >= 3 * k:
        first = outermost()
        places = np.flatnonzero(alive)
        second = places[np.argmax(((points[places] - points[first]) ** 2).sum(1))]
        take(first)
        take(second)
    if alive.sum() >= 2 * k:
        take(outermost())
    groups[alive] = made
    return groups


@pytest.fixture(scope="module")
def standardised(data_folder):
    def load(name):
        rows = pyarrow.csv.read_csv(data_folder / "casc" / f"{name}.csv")
        raw = np.stack([c.to_numpy().astype(float) for c in rows.columns], axis=1)
        return (raw - raw.mean(0)) / raw.std(0, ddof=1)

    return load


@pytest.mark.parametrize(("name", "k"), PUBLISHED)
def test_mdav_has_the_published_loss(standardised, name, k):
    points = standardised(name)
    assert round(loss(points, partition(points, k)), 4) == PUBLISHED[name, k][0]


@pytest.mark.parametrize(("name", "k"), PUBLISHED)
def test_local_search_is_at_least_as_good_as_published(standardised, name, k):
    points = standardised(name)
    groups = partition(points, k, search=True)
    assert np.bincount(groups).min() >= k
    assert loss(points, groups) <= PUBLISHED[name, k][1]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "k"), PUBLISHED)
def test_six_seconds_come_within_two_per_cent_of_the_iterated_search(standardised, name, k):
    points = standardised(name)
    groups = partition(points, k, search=True, seconds=6.0)
    assert np.bincount(groups).min() >= k
    assert loss(points, groups) <= 1.02 * PUBLISHED[name, k][2]


@given(
    n=st.integers(1, 150), k=st.integers(2, 8), axes=st.integers(1, 5), seed=st.integers(0, 2**32)
)
@settings(max_examples=40, deadline=None)
def test_mdav_by_tree_is_mdav_by_scan(n, k, axes, seed):
    points = np.random.default_rng(seed).normal(size=(n, axes))
    assert np.array_equal(_mdav.mdav(points, k), plain_mdav(points, k))


@given(
    n=st.integers(2, 60),
    k=st.integers(2, 6),
    top=st.integers(1, 5),
    seed=st.integers(0, 2**32),
    variant=st.sampled_from(["mdav", "variable"]),
    search=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_groups_have_k_records_whatever_the_ties_and_the_order(n, k, top, seed, variant, search):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, top + 1, size=(n, 2)).astype(float)
    groups = partition(points, k, variant=variant, search=search)
    assert np.bincount(groups).min() >= min(k, n)
    mixed = rng.permutation(n)
    again = partition(points[mixed], k, variant=variant, search=search)
    means = [_means(p, g) for p, g in ((points, groups), (points[mixed], again))]
    assert np.allclose(np.sort(means[0], axis=0), np.sort(means[1], axis=0))


def _means(points, groups):
    sums = np.zeros((groups.max() + 1, points.shape[1]))
    np.add.at(sums, groups, points)
    return (sums / np.maximum(np.bincount(groups), 1)[:, None])[groups]


@given(n=st.integers(4, 7), k=st.integers(2, 3), seed=st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_univariate_is_the_best_of_all_partitions(n, k, seed):
    values = np.sort(np.random.default_rng(seed).integers(0, 20, n).astype(float))
    found = _mdav.hansen_mukherjee(values, k)

    def error(groups):
        return sum(
            ((values[groups == g] - values[groups == g].mean()) ** 2).sum() for g in set(groups)
        )

    best = min(
        error(np.array(labels))
        for labels in itertools.product(range(n // k), repeat=n)
        if all(labels.count(g) >= k for g in set(labels))
    )
    assert error(found) == pytest.approx(best, abs=1e-9)


def test_search_never_makes_it_worse():
    points = np.random.default_rng(3).normal(size=(300, 3))
    groups = _mdav.mdav(points, 4)
    better = _local_search.improve(points, groups, 4)
    assert _local_search.error(points, better) <= _local_search.error(points, groups)


def test_a_time_budget_helps_and_keeps_k():
    points = np.random.default_rng(3).normal(size=(200, 2))
    quick, long = (partition(points, 3, search=True, seconds=s) for s in (0.0, 0.3))
    assert loss(points, long) <= loss(points, quick)
    assert np.bincount(long).min() >= 3


def test_means_are_kept_and_classes_have_k():
    rng = np.random.default_rng(1)
    rows = pa.table({"age": rng.integers(18, 90, 200), "pay": rng.normal(1e9, 1.0, 200)})
    masked = dc.Microaggregation(["age", "pay"], k=4).apply(rows, schema=None, rng=None)
    for name in ("age", "pay"):
        assert np.mean(masked[name].to_numpy()) == pytest.approx(
            np.mean(rows[name].to_numpy()), rel=1e-12
        )
    pairs = list(zip(masked["age"].to_pylist(), masked["pay"].to_pylist(), strict=True))
    assert min(pairs.count(pair) for pair in pairs) >= 4


def test_missing_values_are_grouped_by_what_is_missing():
    rows = pa.table({"a": [1.0, 2.0, None, None, 9.0], "b": [1.0, 3.0, 5.0, 7.0, None]})
    masked = dc.Microaggregation(["a", "b"], k=2).apply(rows, schema=None, rng=None)
    assert masked["a"].to_pylist() == [1.5, 1.5, None, None, None]  # one record with b missing
    assert masked["b"].to_pylist() == [2.0, 2.0, 6.0, 6.0, None]


def test_categories_become_the_most_frequent_one():
    rows = pa.table({"job": ["a", "a", "b", "x", "x", "y"], "age": [1, 1, 1, 90, 90, 90]})
    masked = dc.Microaggregation(["job", "age"], k=3).apply(rows, schema=None, rng=None)
    assert masked["job"].to_pylist() == ["a", "a", "a", "x", "x", "x"]


def test_a_hierarchy_says_which_categories_are_near():
    tree = Hierarchy.from_levels({"All": {"N": ["n1", "n2"], "S": ["s1", "s2"]}})
    schema = Schema((Column("region", hierarchies=(tree,)),))
    rows = pa.table({"region": ["n1", "s1", "n2", "s2"]})
    masked = dc.Microaggregation("region", k=2).apply(rows, schema=schema, rng=None)
    assert masked["region"].to_pylist() == ["n1", "s1", "n1", "s1"]


def test_too_few_records_say_what_would_do():
    rows = pa.table({"a": [1.0, 2.0]})
    with pytest.raises(dc.InfeasibleError, match="k of at most 2"):
        dc.Microaggregation("a", k=5).apply(rows, schema=None, rng=None)


def test_text_in_a_numeric_column_is_named():
    schema = Schema((Column("pay", type=Type.NUMERIC),))
    with pytest.raises(dc.InputError, match="'pay' holds text"):
        dc.Microaggregation("pay").apply(pa.table({"pay": list("abc")}), schema=schema, rng=None)


def test_infinite_values_are_refused():
    with pytest.raises(dc.InputError, match="infinite"):
        dc.Microaggregation("a").apply(pa.table({"a": [1.0, np.inf, 2.0]}), schema=None, rng=None)


def test_equal_columns_and_constants_do_not_break():
    rows = pa.table({"a": [5.0] * 9, "b": [1.0] * 9})
    masked = dc.Microaggregation(["a", "b"], k=3).apply(rows, schema=None, rng=None)
    assert set(masked["a"].to_pylist()) == {5.0}


def plain_mixed(points, codes, share, k):
    """MDAV on numbers and categories as corners, looking at everything in every step."""
    width = int(codes.max()) + 1
    corners = [np.eye(width)[codes[:, j]] * np.sqrt(share[j] / 2) for j in range(codes.shape[1])]
    space = np.concatenate([points, *corners], axis=1)
    left, groups = list(range(len(space))), np.full(len(space), -1)

    def away(rows, place):
        return np.round(((space[rows] - place) ** 2).sum(axis=1), 9)

    def take(leader, made):
        distance = away(left, space[leader])
        distance[left.index(leader)] = -1
        order = np.argsort(distance, kind="stable")[:k]
        for row in [left[place] for place in order]:
            groups[row] = made
            left.remove(row)

    made = 0
    while len(left) >= 2 * k:
        many = len(left)
        first = left[int(np.argmax(away(left, space[left].mean(axis=0))))]
        second = left[int(np.argmax(away(left, space[first])))]
        take(first, made)
        made += 1
        if many < 3 * k:
            break
        if groups[second] >= 0:
            second = left[int(np.argmax(away(left, space[first])))]
        take(second, made)
        made += 1
    groups[groups < 0] = made
    return groups


@pytest.mark.parametrize("axes", [0, 2])
def test_numbers_and_categories_are_grouped_as_points_would_be(axes):
    from discreet.microdata.masking._mixed_mdav import mixed_mdav

    rng = np.random.default_rng(axes)
    points = rng.normal(size=(120, axes))
    codes = rng.integers(0, 4, size=(120, 3))
    share = np.array([1.0, 0.5, 1 / 3])
    found = mixed_mdav(points.T.copy(), codes.T.astype(np.int32).copy(), share, 4)
    sizes = np.bincount(found)
    assert sizes.min() >= 4
    if axes:  # without numbers many records are equally far, and rounding chooses
        assert (found == plain_mixed(points, codes, share, 4)).all()
