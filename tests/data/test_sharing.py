"""Codes that a few people share are told apart from values that many share, by people and not rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.data.infer import summaries
from discreet.data.sharing import _sizes, shared_by_few

RNG = np.random.default_rng(11)
HOMES = np.repeat(
    np.arange(120), RNG.choice([1, 2, 3, 4, 5, 6], 120, p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05])
)


def released(values: Any, name: str = "x", **more: Any) -> list[str]:
    frame = pd.DataFrame({"age": RNG.permutation(np.arange(len(values)) % 4 * 10), name: values})
    who = more.pop("who", None)
    roles = {"age": "quasi", name: "other"}
    if who is not None:
        frame, roles = frame.assign(who=who), roles | {"who": "identifier"}
    data = dc.read(frame, roles=roles, name="people", **more)
    return list(dc.mask(data, [dc.Rounding("age", 10)]).frame.columns)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (np.repeat(np.arange(100), 3), "x"),
        ([f"h{n}" for n in np.repeat(np.arange(60), 3)], "x"),
        (HOMES, "x"),
        (np.repeat(np.arange(10), 3), "hh_nr"),
        ([f"h{n}" for n in np.repeat(np.arange(10), 2)], "Haushalt"),
    ],
    ids=["three each", "texts", "as homes are", "few homes", "few homes in German"],
)
def test_a_code_that_a_household_shares_leaves_only_where_vouched_for(values, name):
    with pytest.raises(dc.InputError) as caught:
        released(values, name)
    assert (caught.value.code, caught.value.column) == ("identifying-values", name)
    assert "near-unique" in caught.value.message
    assert name in released(values, name, vouch=[name])


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (np.repeat(np.arange(10), 3), "household_size"),
        (np.repeat(np.arange(10), 3), "ward"),
        (np.repeat(np.arange(4), 3), "household"),  # kinds of households
        (RNG.normal(120, 15, 200).round(), "pressure"),
        (RNG.normal(75, 12, 300).round(), "weight_kg"),
        (RNG.normal(26, 4, 1000).round(1), "bmi"),
        ((np.exp(RNG.normal(7.5, 0.4, 1000)) / 100).round() * 100, "amount"),
        (RNG.integers(0, 60, 300), "office"),
        (RNG.integers(0, 400, 4000), "post"),
    ],
)
def test_values_that_more_people_share_leave(values, name):
    assert name in released(values, name)


def test_people_are_counted_and_not_their_records():
    """Thirty people with six visits each: the same column twice, theirs and that of the visit."""
    who = np.repeat(np.arange(30), 6)
    with pytest.raises(dc.InputError, match="30 of 30 people"):
        released(who * 7 % 31, who=who, unit="who")
    with pytest.raises(dc.InputError, match="near-unique"):
        released(np.repeat(np.arange(60), 18), who=np.repeat(np.arange(180), 6), unit="who")
    assert "x" in released(np.arange(180) % 12, who=who, unit="who")


def test_sizes_are_of_records_or_of_people():
    frame = pd.DataFrame({"home": np.repeat(np.arange(100), 3), "who": np.arange(300) // 2})
    data = dc.read(frame, roles={"who": "identifier", "home": "other"}, unit="who")
    (home, _) = summaries(data.relation)
    assert _sizes(data, "home", None) == {3: 100}
    assert _sizes(data, "home", "who") == {2: 100}
    assert shared_by_few(data, home)
