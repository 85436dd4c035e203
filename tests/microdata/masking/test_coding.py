"""Recoding, top and bottom coding, sampling, pseudonyms."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet as dc
from discreet.data.hierarchy import Hierarchy

RNG = dc.Randomness.seeded(1)


@pytest.fixture
def people():
    tree = Hierarchy.from_levels({"All": {"N": ["n1", "n2"], "S": ["s1"]}})
    frame = pd.DataFrame(
        {"region": ["n1", "n2", "s1", None], "age": [5, 20, 37, 99], "job": ["a", "a", "b", "c"]}
    )
    return dc.read(
        frame,
        roles={"region": "quasi", "age": "quasi", "job": "other"},
        types={"age": "numeric"},
        hierarchies={"region": tree},
    )


def test_levels_come_from_the_hierarchy(people):
    found = dc.mask(people, dc.GlobalRecoding("region", level=1)).frame["region"]
    assert found.tolist()[:3] == ["N", "N", "S"]
    assert found.isna().tolist() == [False, False, False, True]


def test_intervals_are_closed_below(people):
    found = dc.mask(people, dc.GlobalRecoding("age", breaks=(20, 65))).frame["age"]
    assert found.tolist() == ["< 20", "[20, 65)", "[20, 65)", "≥ 65"]


def test_rare_categories_are_merged(people):
    assert dc.mask(people, dc.GlobalRecoding("job", rare=2)).frame["job"].tolist() == [
        "a", "a", "other", "other",
    ]  # fmt: skip


def test_a_missing_hierarchy_and_a_missing_level_are_named(people):
    with pytest.raises(dc.InputError) as caught:
        dc.mask(people, dc.GlobalRecoding("job", level=1))
    assert caught.value.code == "no-hierarchy"
    with pytest.raises(dc.InputError, match="levels 0 to 2"):
        dc.mask(people, dc.GlobalRecoding("region", level=3))


@pytest.mark.parametrize("given", [{}, {"level": 1, "rare": 3}, {"breaks": (3, 1)}])
def test_contradictory_recodings_are_refused(given):
    with pytest.raises(dc.InputError):
        dc.GlobalRecoding("a", **given)


def test_quantiles_are_values_that_occur():
    rows = pa.table({"x": list(range(101))})
    top = dc.TopCoding("x", quantile=0.9).apply(rows, schema=None, rng=RNG)["x"]
    assert max(top.to_pylist()) == 90
    bottom = dc.BottomCoding("x", quantile=0.1, replacement=-1).apply(rows, schema=None, rng=RNG)[
        "x"
    ]
    assert sorted(set(bottom.to_pylist()))[:2] == [-1, 10]


def test_a_limit_is_needed_and_only_one():
    for given in ({}, {"value": 1.0, "quantile": 0.5}):
        with pytest.raises(dc.InputError, match="a value or a quantile"):
            dc.TopCoding("x", **given)


def test_stratified_samples_keep_shares():
    rows = pd.DataFrame({"sex": ["f"] * 60 + ["m"] * 40, "x": range(100)})
    frame = dc.read(rows, roles={"sex": "quasi", "x": "confidential"})
    safe = dc.mask(frame, dc.Sampling(0.1, strata="sex")).frame
    assert safe["sex"].value_counts().to_dict() == {"f": 6, "m": 4}
    assert len(dc.mask(frame, dc.Sampling(size=7)).frame) == 7
    with pytest.raises(dc.InputError, match="at most 100"):
        dc.mask(frame, dc.Sampling(size=1000))


def test_masks_after_sampling_reach_the_right_records():
    rows = pd.DataFrame({"x": range(50), "y": range(50)})
    frame = dc.read(rows, roles={"x": "quasi", "y": "quasi"})
    safe = dc.mask(frame, [dc.Sampling(size=10), dc.Rounding("x", 100), dc.Rounding("y", 1)])
    assert safe.frame["x"].isin([0, 100]).all()
    assert len(set(safe.frame["y"])) == 10


def test_pseudonyms_link_across_releases_under_one_key(tmp_path):
    key = tmp_path / "key"
    key.write_bytes(b"0123456789abcdef0123456789abcdef")
    frame = pd.DataFrame({"person": ["ana", "ben", "ana"], "x": [1, 2, 3]})
    people = dc.read(frame, roles={"person": "identifier", "x": "confidential"})
    method = dc.Pseudonyms("person", key_file=str(key))
    one, two = (dc.mask(people, method).frame["person"].tolist() for _ in range(2))
    assert one == two
    assert one[0] == one[2] != one[1]
    drawn = dc.mask(people, dc.Pseudonyms("person")).frame["person"].tolist()
    assert drawn[0] == drawn[2] != one[0]
    assert str(key) not in str(dc.mask(people, method).evidence().to_dict())


def test_weak_and_missing_keys_are_refused(tmp_path):
    rows = pa.table({"person": ["ana"]})
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(dc.InputError, match="5 bytes"):
        dc.Pseudonyms("person", key_file=str(tmp_path / "key")).apply(rows, schema=None, rng=RNG)
    with pytest.raises(dc.InputError, match="cannot be read"):
        dc.Pseudonyms("person", key_file=str(tmp_path / "none")).apply(rows, schema=None, rng=RNG)


@pytest.mark.parametrize("missing", ["wildcard", "category"])
def test_local_suppression_is_a_step_like_any_other(missing):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {"age": rng.integers(20, 60, 200), "sex": rng.choice(["f", "m"], 200), "pay": range(200)}
    )
    people = dc.read(frame, roles={"age": "quasi", "sex": "quasi", "pay": "confidential"})
    steps = [dc.GlobalRecoding("age", width=5), dc.KeySuppression(["age", "sex"], missing=missing)]
    safe = dc.mask(people, steps)
    assert safe.frame["pay"].tolist() == frame["pay"].tolist()
    keys = ["age", "sex"]
    same = safe.frame[keys].isna() | (
        safe.frame[keys].astype(str) == dc.mask(people, steps[:1]).frame[keys].astype(str)
    )
    assert same.all().all()
    if missing == "category":
        assert safe.frame.groupby(keys, dropna=False).size().min() >= 3
