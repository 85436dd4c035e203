"""Columns numbered along their hierarchies."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import InputError
from discreet.microdata.frequency_set import code_column
from discreet.microdata.search.attribute import attribute

TREE = dc.Hierarchy.from_levels({"North": ["N1", "N2"], "South": ["S1"]})


def test_nesting_is_looked_at_once_for_all_calls(monkeypatch):
    coded = code_column("region", pa.array(["N1", "S1"]))
    first = attribute(coded, TREE)
    # What was found is kept with the hierarchy: the next call does not pair any levels again.
    monkeypatch.setattr(
        "discreet.data.hierarchy.itertools.pairwise", lambda _: pytest.fail("again")
    )
    assert attribute(coded, TREE).labels == first.labels


def test_levels_made_by_hand_must_nest():
    table = TREE.levels.copy()
    one, two = TREE.index["North"], TREE.index["South"]
    # N1 and N2 share a code at level 1, and are apart at level 2.
    wrong = np.concatenate([table[:, :2], [[one], [two], [two]], table[:, 2:]], axis=1)
    crossed = dataclasses.replace(TREE, table=wrong.astype(np.int32))
    assert not crossed.is_nested
    with pytest.raises(InputError) as error:
        attribute(code_column("region", pa.array(["N1"])), crossed)
    assert error.value.code == "hierarchy-not-nested"
