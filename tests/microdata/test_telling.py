"""A column that leaves as it is and tells a key is refused: a class would hide nobody."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dc

SIZE = 120


def frame():
    source = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "age": source.integers(20, 80, SIZE),
            "town": source.choice(list("ABCD"), SIZE),
            "ill": source.choice(["flu", "gout", "none"], SIZE),
        }
    )


def released(role, values, **more):
    roles = {"age": "quasi", "town": "quasi", "ill": "confidential", "x": role}
    data = dc.read(frame().assign(x=values), roles=roles, name="people", **more)
    return dc.anonymize(data, dc.KAnonymity(3), method=dc.Mondrian())


DAYS = pd.to_datetime("2024-06-30") - pd.to_timedelta(frame().age * 365, unit="D")
TELLING = {
    "the year of birth": 2024 - frame().age,
    "a copy": frame().town,
    "a finer code": frame().town + (np.arange(SIZE) % 5).astype(str),
    "a copy with a mistake": frame().town.mask(np.arange(SIZE) == 7, "A"),
    "the day of birth": (DAYS + pd.to_timedelta(np.arange(SIZE) % 60, unit="D")).dt.date,
}


@pytest.mark.parametrize("role", ["other", "confidential"])
@pytest.mark.parametrize("name", TELLING)
def test_a_column_that_tells_a_key_is_refused_unless_vouched_for(name, role):
    with pytest.raises(dc.InputError) as caught:
        released(role, TELLING[name])
    near_unique = name == "the day of birth" and role == "other"
    assert caught.value.code == ("identifying-values" if near_unique else "telling-column")
    assert caught.value.column == "x"
    assert released(role, TELLING[name], vouch=["x"]).verdict.startswith("safe")


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(3).choice(["a", "b"], SIZE),  # nothing to do with the keys
        np.random.default_rng(4).normal(size=SIZE).round(3),  # all differ: agrees with anything
        frame().age // 30,  # coarser than the key
        frame().age * 100 + np.random.default_rng(5).integers(0, 4_000, SIZE),  # rises, roughly
        ["one"] * SIZE,
    ],
)
def test_other_columns_leave(values):
    assert released("confidential", values).verdict.startswith("safe")


def test_policies_and_commands_refuse_it_too():
    data = dc.read(
        frame().assign(x=2024 - frame().age),
        roles={"age": "quasi", "town": "quasi", "ill": "confidential", "x": "other"},
    )
    job = dc.Anonymize(models=(dc.KAnonymity(3),), method=dc.Mondrian())
    with pytest.raises(dc.InputError, match="telling-column"):
        job.check(data)
