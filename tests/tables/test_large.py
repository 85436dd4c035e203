"""The large way gives the same laws and the same histograms as the small one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.tables.methods.test_top_down import granting, people

import discreet as dc
from discreet.data.engines import Engine
from discreet.dp.hierarchical import measurement
from discreet.errors import InputError, RefusedError
from discreet.tables import large as large_module
from discreet.tables.jobs import table as table_job
from discreet.tables.large import LargeRelease
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


def test_engines_give_the_same_histograms_at_every_level(engine: Engine) -> None:
    made = dc.tabulate(people(engine=engine), by=BY, large=True)
    places = Places.of(made.dimensions, 0)
    counted = made.leaves(places)
    frame, region = people().frame, made.dimensions[0]
    ages, sexes = (made.dimensions[place].hierarchies[0].leaves for place in (2, 1))
    for level in range(places.spine.depth - 1, -1, -1):
        for node, code in enumerate(places.nodes[level]):
            inside = frame["region"].isin(_leaves_below(region, int(code)))
            expected = [
                ((frame["sex"] == sex) & (frame["age"] == age) & inside).sum()
                for sex in sexes
                for age in ages
            ]
            assert counted[node].tolist() == expected
        if level:
            counted = places.spine.add_up(counted, level)


def _leaves_below(region: Any, code: int) -> list[str]:
    below, codes = {code}, region.codes
    for child, parent in enumerate(region.parents[0]):  # parents come first
        if int(parent) in below:
            below.add(child)
    return [codes[child] for child in below if region.is_leaf[child]]


def test_the_same_noise_gives_the_same_table(monkeypatch: Any) -> None:
    def drawn(values: Any, *, scale: float, **_: Any) -> Any:
        rng = np.random.default_rng(int(1000 * scale) + np.size(values))
        return np.asarray(values) + np.rint(rng.normal(0, scale, np.shape(values))).astype(int)

    monkeypatch.setattr(measurement, "add_gaussian", drawn)
    method = dc.TopDown(rho=0.5, invariants={"1": "sex"})
    small = dc.tabulate(people(), by=BY).protect(method=method, rng=dc.Randomness.seeded(4))
    wide = large().protect(method=method, rng=dc.Randomness.seeded(4))
    for block in wide.blocks():
        frame = block.to_pandas().set_index(BY)
        printed = small.cells.set_index(BY).loc[frame.index]
        for name in ("value", "lower_95", "upper_95"):
            assert np.allclose(frame[name], printed[name], rtol=0, atol=1e-9)


def test_tables_with_too_many_cells_take_the_large_way(monkeypatch: Any, tmp_path: Path) -> None:
    method = dc.TopDown(rho=0.5)
    assert not isinstance(dc.tabulate(people(), by=BY).protect(method=method), LargeRelease)
    monkeypatch.setattr(large_module, "LARGEST", 100)
    place = granting(tmp_path / "ledger.db", 0.7)
    made = dc.tabulate(people(), by=BY).protect(method=method, ledger=place)
    assert isinstance(made, LargeRelease)
    with pytest.raises(RefusedError):
        dc.tabulate(people(), by=BY).protect(method=method, ledger=place)
    # Another method knows no large way.
    rounded = dc.tabulate(people(), by=BY).protect(
        [dc.MinimumFrequency(3)], dc.ControlledRounding(5)
    )
    assert not isinstance(rounded, LargeRelease)
    monkeypatch.setattr(table_job, "LARGEST", 100)
    job = table_job.TableJob(by=tuple(BY), method=method)
    assert isinstance(job.perform(people(), rng=None, progress=dc_silent), LargeRelease)


def dc_silent(*_: Any) -> None:
    """Say nothing."""


def test_what_needs_more_time_or_room_is_refused_with_an_estimate(
    monkeypatch: Any, tmp_path: Path
) -> None:
    place = granting(tmp_path / "ledger.db", 0.7)
    method = dc.TopDown(rho=0.5)
    effort = large().effort(method)
    assert effort.cells == 9 * 3 * 4
    assert effort.draws == (1 + 3 + 6) * (1 + 2 + 3 + 6)
    monkeypatch.setattr(large_module, "_HOURS", 0.0)
    with pytest.raises(InputError, match=r"more time than there is: 108 cells, 120 draws"):
        large().protect(method=method, ledger=place)
    monkeypatch.undo()
    monkeypatch.setattr(large_module, "_CELL_BYTES", 10**18)
    with pytest.raises(InputError, match="more room"):
        large().protect(method=method, ledger=place)
    monkeypatch.undo()
    with dc.open_ledger(place) as ledger:
        assert not ledger.spent("people", "dataset")
    said: list[str] = []
    large().protect(method=method, progress=lambda what, *_: said.append(what))
    assert said[0].startswith("108 cells, 120 draws of noise: about")
