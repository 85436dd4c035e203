"""The large way gives the same laws and the same histograms as the small one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.tables.methods.test_top_down import granting, people

import discreet as dc
from discreet.errors import InputError, RefusedError
from discreet.tables.methods._places import Places

BY = ["region", "sex", "age"]


def large() -> Any:
    return dc.tabulate(people(), by=BY, large=True)


def test_histograms_are_those_of_the_table() -> None:
    small = dc.tabulate(people(), by=BY)
    places = Places.of(small.dimensions, 0)
    assert (large().leaves(places) == places.leaves(small)).all()


def test_the_file_holds_a_consistent_table(tmp_path: Path) -> None:
    method = dc.TopDown(rho=0.5, invariants={"1": "total"}, measurements=True)
    release = large().protect(method=method)
    folder = release.write(tmp_path / "out")
    frame = pd.read_parquet(folder / "cells.parquet")
    trees = {name: people().schema.hierarchies(name) for name in BY}
    again = dc.Table.from_cells(frame, BY, "value", hierarchies=trees, statistic="count")
    assert len(again) == release.estimate.places.size
    assert (again.value >= 0).all()
    assert np.abs(again.equations @ again.value).max() == 0
    assert (frame["lower_95"] <= frame["value"]).all()
    assert (frame["value"] <= frame["upper_95"]).all()
    small = dc.tabulate(people(), by=BY)
    for code in ("Land", "N", "S", "W"):
        exact = small.value[small.cell(code, "Total", "Total")]
        assert again.value[again.cell(code, "Total", "Total")] == exact
    assert (folder / "measurements.parquet").is_file()
    sums = release.interval({"region": ["n1", "s1"], "sex": "f"})
    mine = frame[
        frame["region"].isin(["n1", "s1"]) & (frame["sex"] == "f") & (frame["age"] == "Total")
    ]
    assert sums.value == mine["value"].sum()


def test_it_is_charged_and_refused_like_the_small_one(tmp_path: Path) -> None:
    method = dc.TopDown(rho=0.5)
    place = granting(tmp_path / "ledger.db", 0.7)
    large().protect(method=method, ledger=place).write(tmp_path / "recorded", ledger=place)
    with pytest.raises(RefusedError):
        large().protect(method=method, ledger=place)
    with pytest.raises(RefusedError, match="seeded"):
        large().protect(method=method, rng=dc.Randomness.seeded(1)).write(tmp_path / "out")


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(InputError, match="all cells"):
        large().protect(method=dc.ControlledRounding(5))
    with pytest.raises(InputError, match="one list"):
        dc.tabulate(people(), by=[BY, ["sex"]], large=True)
    plain = dc.read(pd.DataFrame({"region": ["a"]}))
    with pytest.raises(InputError, match="not declared"):
        dc.tabulate(plain, by=["region"], large=True)
