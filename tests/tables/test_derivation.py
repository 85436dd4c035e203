"""The audit of a consistent table from its files alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.tables.methods.test_top_down import people, table
from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli import main as cli
from discreet.errors import InputError
from discreet.tables.derivation import derive


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    method = dc.TopDown(rho=0.5, invariants={"1": "total"}, measurements=True)
    release = table().protect(method=method)
    written: Path = release.write(tmp_path / "out")
    assert derive(written).verdict == release.evidence().verdict  # type: ignore[union-attr]
    return written


def change(folder: Path, codes: tuple[str, ...], by: int) -> None:
    frame = pd.read_csv(folder / "cells.csv")
    here = (frame[["region", "sex", "age"]] == list(codes)).all(axis=1)
    frame.loc[here, "value"] += by
    frame.to_csv(folder / "cells.csv", index=False)
    frame.to_parquet(folder / "cells.parquet", index=False)
    (folder / "cells.xlsx").unlink(missing_ok=True)


def test_what_was_published_holds(folder: Path) -> None:
    found = derive(folder)
    assert found is not None
    assert found.safe
    assert found.rho == pytest.approx(0.5)
    assert len(found.findings) == 11
    assert not found.unchecked
    assert derive(folder / "cells.parquet").safe  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "codes", [("n1", "f", "65+"), ("N", "Total", "Total"), ("Land", "m", "Total")]
)
def test_a_changed_cell_or_total_is_found(folder: Path, codes: tuple[str, ...]) -> None:
    change(folder, codes, 1)
    found = derive(folder)
    assert found is not None
    assert not found.safe
    assert "sums of their parts" in found.verdict


def test_a_changed_invariant_is_found_though_all_adds_up(folder: Path) -> None:
    # One person more in a town, and in everything above it.
    for region in ("n1", "N", "Land"):
        for sex in ("f", "Total"):
            for age in ("65+", "Total"):
                change(folder, (region, sex, age), 1)
    found = derive(folder)
    assert found is not None
    assert not found.safe
    assert "exact counts" in found.verdict


def test_a_changed_invariant_is_found_without_the_measurements(tmp_path: Path) -> None:
    method = dc.TopDown(rho=0.5, invariants={"1": "sex"})
    folder = table().protect(method=method).write(tmp_path / "out")
    assert derive(folder).safe  # type: ignore[union-attr]
    assert "exact counts are as measured" in derive(folder).unchecked  # type: ignore[union-attr]
    for region in ("n1", "N", "Land"):
        for sex in ("f", "Total"):
            for age in ("65+", "Total"):
                change(folder, (region, sex, age), 1)
    found = derive(folder)
    assert found is not None
    assert found.verdict == "not as promised: exact counts have no error"


def test_people_in_impossible_combinations_are_found(tmp_path: Path) -> None:
    rows = pd.DataFrame({"region": ["n1"] * 40, "sex": ["f", "m"] * 20, "age": ["18-64"] * 40})
    method = dc.TopDown(rho=0.5, zeros=({"sex": "m", "age": "65+"},), measurements=True)
    folder = table(rows).protect(method=method).write(tmp_path / "out")
    assert derive(folder).safe  # type: ignore[union-attr]
    for region in ("n1", "N", "Land"):
        for sex in ("m", "Total"):
            for age in ("65+", "Total"):
                change(folder, (region, sex, age), 1)
    found = derive(folder)
    assert found is not None
    assert "impossible combinations are empty" in found.verdict


def test_a_changed_interval_or_measurement_is_found(folder: Path) -> None:
    frame = pd.read_parquet(folder / "measurements.parquet")
    mine = (frame["query"] == "detailed") & (frame["place"] == "n1") & (frame["cell"] == 0)
    frame.loc[mine, "noisy"] += 40
    frame.to_parquet(folder / "measurements.parquet", index=False)
    found = derive(folder)
    assert found is not None
    assert "intervals" in found.verdict


@pytest.mark.parametrize("name", ["rho", "scale"])
def test_a_wrong_loss_is_found(folder: Path, name: str) -> None:
    stated: dict[str, Any] = json.loads((folder / "evidence.json").read_text())
    facts = stated["settings"]["facts"]
    if name == "rho":
        facts["rho"] = 0.1
    else:
        facts["measurements"][0]["scale"] /= 2
    (folder / "evidence.json").write_text(json.dumps(stated))
    found = derive(folder)
    assert found is not None
    assert "ρ" in found.verdict


@pytest.mark.parametrize("what", ["verdict", "promise", "epsilon", "measurements"])
def test_words_figures_and_missing_files_are_not_believed(folder: Path, what: str) -> None:
    stated: dict[str, Any] = json.loads((folder / "evidence.json").read_text())
    if what == "verdict":
        stated["verdict"] = stated["verdict"].replace("ρ = 0.5", "ρ = 0.1")
    elif what == "promise":
        stated["settings"]["facts"]["promise"] = "nobody can learn anything"
    elif what == "epsilon":
        stated["settings"]["facts"]["epsilon"] = 0.5
    else:
        (folder / "measurements.parquet").unlink()
    (folder / "evidence.json").write_text(json.dumps(stated))
    found = derive(folder)
    assert found is not None
    assert not found.safe
    assert found.verdict.startswith("not as promised")


@pytest.mark.parametrize("name", ["cells.parquet", "cells.xlsx"])
def test_a_cell_changed_in_one_file_alone_is_found(folder: Path, name: str) -> None:
    is_sheet = name.endswith("xlsx")
    frame = (
        pd.read_excel(folder / name, engine="openpyxl")
        if is_sheet
        else pd.read_parquet(folder / name)
    )
    frame.loc[3, "value"] += 5
    if is_sheet:
        frame.to_excel(folder / name, sheet_name="cells", index=False, engine="openpyxl")
    else:
        frame.to_parquet(folder / name, index=False)
    found = derive(folder)
    assert found is not None
    assert found.verdict == "not as promised: all files hold the same cells"


def test_a_folder_without_evidence_is_told(folder: Path) -> None:
    (folder / "evidence.json").unlink()
    done = CliRunner().invoke(cli.build(), ["audit", str(folder)])
    assert isinstance(done.exception, InputError)
    assert done.exception.code == "no-evidence"


def test_damaged_folders_are_told(folder: Path) -> None:
    (folder / "hierarchy_sex.csv").unlink()
    with pytest.raises(InputError, match="do not fit together"):
        derive(folder)
    (folder / "evidence.json").write_text("[1]")
    assert derive(folder) is None


def test_a_large_release_is_derived_too(tmp_path: Path) -> None:
    made = dc.tabulate(people(), by=["region", "sex", "age"], large=True)
    folder = made.protect(method=dc.TopDown(rho=0.5, measurements=True)).write(tmp_path / "out")
    found = derive(folder)
    assert found is not None
    assert found.safe


def test_the_command_says_so(folder: Path) -> None:
    done = CliRunner().invoke(cli.build(), ["audit", str(folder)])
    assert done.exit_code == 0
    change(folder, ("n1", "f", "65+"), 1)
    assert CliRunner().invoke(cli.build(), ["audit", str(folder)]).exit_code == 3
