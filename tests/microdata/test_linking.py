"""Linking: against brute force, with ties, missing values and recodes."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.microdata import linking
from discreet.microdata.pair import Pair
from discreet.microdata.risks.record_linkage import RecordLinkage

RNG = dc.Randomness.seeded(1)


def brute(before, after, origin):
    """Probability of the right link for each original, by looking at every released record."""
    right = []
    for person, keys in enumerate(before):
        away = ((after - keys) ** 2).sum(1)
        crowd = np.flatnonzero(away <= away.min() * (1 + 1e-9))
        right.append(float(person in origin[crowd]) / crowd.size)
    return np.array(right)


@given(n=st.integers(1, 40), axes=st.integers(1, 14), seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_nearest_is_what_brute_force_finds(n, axes, seed):
    rng = np.random.default_rng(seed)
    before = rng.normal(size=(n, axes))
    after = np.round(before + 0.3 * rng.normal(size=before.shape), 0)[
        rng.permutation(n)[: n // 2 + 1]
    ]
    origin = np.arange(n)[: n // 2 + 1]
    files = linking.Points.of(before, after, origin)
    assert linking.nearest(files) == pytest.approx(brute(before, after, origin))


@pytest.mark.parametrize("axes", [1, 3, 8, 13])
def test_boxes_find_what_comparing_everything_finds(axes):
    from discreet.microdata import neighbours

    rng = np.random.default_rng(axes)
    before = np.round(rng.normal(size=(3000, axes)), 1)  # with ties
    after = np.round(before + rng.normal(size=before.shape), 1)
    files = linking.Points.of(before, after, np.arange(3000))
    crowd = np.bincount(files.spot)
    away, many = neighbours.nearest(before, files.spots, crowd)
    least, found, _ = linking._compared(before, files.spots, crowd)
    assert away == pytest.approx(least, abs=1e-9)
    assert (many == found).all()
    assert many.max() > 1


@pytest.mark.parametrize("noise", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("rounded", [False, True])
def test_the_matching_is_as_cheap_as_the_dense_solver_s(noise, rounded):
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    from discreet.microdata.matching import cheapest

    rng = np.random.default_rng(5)
    before = rng.normal(size=(150, 4))
    after = before + noise * rng.normal(size=before.shape)
    if rounded:
        before, after = np.round(before), np.round(after)
    spots, spot = np.unique(after, axis=0, return_inverse=True)
    room = np.bincount(spot.ravel())
    found = cheapest(before, spots, room)
    assert (np.bincount(found, minlength=len(spots)) == room).all()
    dense = cdist(before, after, "sqeuclidean")
    best = dense[linear_sum_assignment(dense)].sum()
    assert ((before - spots[found]) ** 2).sum() == pytest.approx(best)


def test_one_to_one_beats_nearest_where_records_crowd():
    before = np.array([[0.0], [1.0], [2.0]])
    after = np.array([[0.9], [1.1], [1.2]])
    files = linking.Points.of(before, after, np.arange(3))
    assert linking.assigned(files, RNG).tolist() == [1.0, 1.0, 1.0]


def test_one_to_one_is_not_told_the_answer_by_the_order():
    frame = pd.DataFrame({"age": [30] * 200})
    found = RecordLinkage("one-to-one").measure(Pair.of(frame, keys=["age"]), rng=RNG)
    assert found.value < 0.1


@pytest.mark.parametrize("method", ["exact", "distance", "rank", "one-to-one"])
def test_the_raw_file_of_unique_records_is_linked_wholly(method):
    frame = pd.DataFrame({"age": range(50), "job": [f"j{i % 7}" for i in range(50)]})
    pair = Pair.of(frame, keys=["age", "job"])
    assert RecordLinkage(method).measure(pair, rng=RNG).value == 1.0


def test_the_intruder_knows_a_published_recoding():
    raw = pd.DataFrame({"age": ["21", "25", "38", "33"]})
    safe = pd.DataFrame({"age": ["20-29", "20-29", "30-39", "30-39"]})
    for method in ("exact", "distance"):
        assert RecordLinkage(method).measure(Pair.of(raw, safe, keys=["age"]), rng=RNG).value == 0.5


def test_a_missing_category_is_half_way_to_all():
    raw = pd.DataFrame({"job": ["a", "b", "c"]})
    safe = pd.DataFrame({"job": ["a", "b", None]})
    files = linking.points(Pair.of(raw, safe, keys=["job"]), np.arange(3))
    away = ((files.before[:, None] - files.spots[files.spot][None]) ** 2).sum(-1)
    assert away[:, 2] == pytest.approx([0.5, 0.5, 0.5])
    assert away[0, 1] == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["distance", "rank", "one-to-one"])
def test_codes_of_many_categories_give_the_distances_of_corners(method):
    rng = np.random.default_rng(3)
    size = 120
    job = np.array([f"j{j}" for j in rng.integers(0, 60, size)], dtype=object)
    job[:5] = None
    raw = pd.DataFrame({"job": job, "town": rng.integers(0, 90, size).astype(str), "age": job})
    raw["age"] = rng.integers(20, 60, size)
    safe = raw.copy()
    safe["age"] = safe["age"] // 10 * 10
    safe.loc[rng.permutation(size)[:30], "town"] = "0"
    safe.loc[rng.permutation(size)[:10], "job"] = None
    pair = Pair.of(raw, safe, keys=["job", "town", "age"])
    targets = np.arange(size)
    wide = linking.points(pair, targets, ranks=method == "rank")
    assert wide.codes is not None
    assert wide.codes.shape == (size, 2)
    corners = linking.points(pair, targets, ranks=method == "rank", axes=1000)
    assert corners.codes is None
    if method != "one-to-one":
        assert linking.nearest(wide) == pytest.approx(linking.nearest(corners))
        return
    people, spots = targets, np.unique(wide.spot)
    room = np.bincount(wide.spot)
    cost = ((corners.before[:, None] - corners.spots[None]) ** 2).sum(-1)
    found = [linking._matched(files, people, spots, room) for files in (wide, corners)]
    totals = [cost[people, match].sum() for match in found]
    assert totals[0] == pytest.approx(totals[1])
    assert (np.bincount(found[0]) == room).all()


def test_columns_of_many_categories_need_no_axis_each():
    size = 3000
    frame = pd.DataFrame(
        {f"k{j}": [f"{(i * (j + 7)) % 2999}" for i in range(size)] for j in range(3)}
    )
    files = linking.points(Pair.of(frame, keys=list(frame)), np.arange(size))
    assert files.spots.shape[1] == 0
    assert linking.nearest(files).mean() > 0.99


def test_people_who_are_not_released_are_never_linked_correctly():
    people = dc.read(
        pd.DataFrame({"age": [10 * i + i % 3 for i in range(40)]}), roles={"age": "quasi"}
    )
    safe = dc.mask(people, dc.Sampling(size=10))
    found = RecordLinkage("distance").measure(Pair.of(people, safe), rng=RNG)
    assert found.facts["linked correctly"] == 10
    assert found.value == 0.25


def test_a_sample_of_targets_says_how_sure_it_is():
    frame = pd.DataFrame({"age": np.arange(500) // 2})
    found = RecordLinkage("distance", targets=100).measure(Pair.of(frame, keys=["age"]), rng=RNG)
    assert found.facts["people looked for"] == 100
    assert found.value == 0.5
    assert np.isfinite(found.records).sum() == 100


def test_files_that_cannot_be_paired_are_refused():
    with pytest.raises(dc.InputError) as caught:
        Pair.of(pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1]}))
    assert caught.value.code == "unpaired-records"


def test_a_guessed_secret_is_no_protection():
    frame = pd.DataFrame(
        {"income": np.linspace(1000, 2000, 60), "sales": np.linspace(5, 9, 60) ** 2}
    )
    assert Pair.of(frame).keys == ("income", "sales")
    given = dc.read(frame, roles={"sales": "confidential"})
    assert Pair.of(given).keys == ("income",)


def test_distances_of_rounding_alone_do_not_keep_bidders_busy_for_ever():
    """Nearest distances of 1e-32 asked for steps that prices of one could not take."""
    from discreet.microdata.matching import cheapest

    for seed in range(5):
        rng = np.random.default_rng(seed)
        people = rng.choice([0.1, 0.2, 0.3, 0.7], (14, 2))
        spots = people + rng.choice([0, 1e-16, 2e-16], (14, 2))
        spots[:2] = people[:2] + 1.5
        found = cheapest(people, spots, np.ones(14, dtype=np.int64))
        assert sorted(found) == list(range(14))
