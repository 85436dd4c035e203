"""Faults planted in the writer of a table are found in whatever format they are."""

from __future__ import annotations

import dataclasses
import functools
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dc
from discreet.data.table import Status
from discreet.demo import salaries
from discreet.tables.release import TableRelease


def release() -> TableRelease:
    table = dc.tabulate(salaries(), by=["sector", "region"], measure="salary")
    return table.protect(rules=[dc.MinimumFrequency(3)], method=dc.Suppression())


def rewritten(folder: Path, kind: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    workbook = functools.partial(pd.read_excel, engine="openpyxl")
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "xlsx": workbook}[kind]
    frame = read(folder / f"cells.{kind}")
    frame = change(frame)
    if kind == "csv":
        frame.to_csv(folder / "cells.csv", index=False)
    elif kind == "parquet":
        rows = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
        parquet.write_table(rows, folder / "cells.parquet")
    else:
        frame.to_excel(folder / "cells.xlsx", sheet_name="cells", index=False)


def hidden(frame: pd.DataFrame) -> int:
    return int(frame.index[frame["value"].isna()][0])


def shown(frame: pd.DataFrame) -> int:
    return int(frame.index[frame["value"].notna()][0])


def changed(frame: pd.DataFrame, row: int, **values: object) -> pd.DataFrame:
    for name, value in values.items():
        frame.loc[row, name] = value
    return frame


def printed(frame: pd.DataFrame) -> pd.DataFrame:
    return changed(frame, hidden(frame), value=1234.0)


def unmarked(frame: pd.DataFrame) -> pd.DataFrame:
    return changed(frame, hidden(frame), conf_status="F")


def another_total(frame: pd.DataFrame) -> pd.DataFrame:
    return changed(frame, shown(frame), value=frame["value"][shown(frame)] + 1000.0)


def lost_cell(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(index=shown(frame))


def told_column(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(true=1.0)


FAULTS = [printed, unmarked, another_total, lost_cell, told_column]


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx"])
def test_a_fault_in_one_format_is_found_and_nothing_is_published(kind, tmp_path, monkeypatch):
    made, written = release(), TableRelease.write_files
    for fault in FAULTS:

        def careless(self: TableRelease, folder: Path, fault=fault) -> None:
            written(self, folder)
            rewritten(folder, kind, fault)

        monkeypatch.setattr(TableRelease, "write_files", careless)
        with pytest.raises(dc.EngineError) as raised:
            made.write(tmp_path / "out")
        assert raised.value.code == "promise-broken", fault.__name__
        assert list(tmp_path.iterdir()) == []


def test_a_total_that_is_wrong_in_every_format_is_found(tmp_path, monkeypatch):
    written = TableRelease.write_files

    def careless(self: TableRelease, folder: Path) -> None:
        written(self, folder)
        for kind in ("csv", "parquet", "xlsx"):
            rewritten(folder, kind, another_total)

    monkeypatch.setattr(TableRelease, "write_files", careless)
    with pytest.raises(dc.EngineError, match="sums of their parts"):
        release().write(tmp_path / "out")


def test_a_sensitive_cell_that_the_totals_give_away_is_found(tmp_path, monkeypatch):
    """A method that forgets secondary cells, and an audit that does not notice."""
    made = release()
    truth = made.table.value
    primary = made.table.status == Status.PRIMARY
    told = np.where(primary & (np.cumsum(primary) == 1), np.nan, truth)
    status = np.where(np.isnan(told), made.protected.status, Status.SAFE).astype(np.int8)
    bad = dataclasses.replace(made.protected, value=told, status=status)
    careless = dataclasses.replace(made, protected=bad)
    monkeypatch.setattr(type(made), "_audit", made.audit(), raising=False)
    with pytest.raises(dc.EngineError, match="protection interval"):
        careless.write(tmp_path / "out")


def test_a_workbook_with_a_hidden_sheet_is_found(tmp_path):
    import openpyxl

    out = release().write(tmp_path / "out")
    assert dc.verify(out).holds
    book = openpyxl.load_workbook(out / "cells.xlsx")
    book.create_sheet("true values").sheet_state = "hidden"
    book.save(out / "cells.xlsx")
    (found,) = dc.verify(out).broken
    assert "a hidden sheet" in found.found


def test_linked_tables_are_verified_folder_by_folder(tmp_path):
    people = salaries()
    tables = [
        dc.tabulate(people, by=by, measure="salary") for by in (["sector"], ["sector", "region"])
    ]
    made = dc.protect(tables, rules=[dc.MinimumFrequency(3)], method=dc.Suppression())
    out = made.write(tmp_path / "out")
    found = dc.verify(tmp_path)
    assert found.holds
    part = sorted(place for place in out.iterdir() if place.is_dir())[1]
    rewritten(part, "csv", printed)
    assert all(part.name in finding.file for finding in dc.verify(out).broken)


def test_a_code_that_looks_like_a_formula_stays_a_code(tmp_path):
    codes = ["Total", "=1+1", "#N/A", "01", " x"]
    cells = pd.DataFrame({"code": codes, "value": [20.0, 5, 5, 5, 5], "count": [20, 5, 5, 5, 5]})
    table = dc.Table.from_cells(cells, by=["code"], value="value", count="count")
    made = table.protect(rules=[dc.MinimumFrequency(3)], method=dc.Suppression())
    assert dc.verify(made.write(tmp_path / "out")).holds


def _workbook(folder):
    out = release().write(folder)
    assert dc.verify(out).holds
    return out


def _changed_part(file, name, old, new):
    with zipfile.ZipFile(file) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in parts.items():
            archive.writestr(part, content.replace(old, new) if part == name else content)


def test_nothing_is_hidden_in_a_workbook(tmp_path):
    sheet = "xl/worksheets/sheet1.xml"
    appended = _workbook(tmp_path / "appended") / "cells.xlsx"
    appended.write_bytes(appended.read_bytes() + b"7777.137")
    prefixed = _workbook(tmp_path / "prefixed") / "cells.xlsx"
    prefixed.write_bytes(b"7777.137" + prefixed.read_bytes())
    commented = _workbook(tmp_path / "commented") / "cells.xlsx"
    _changed_part(commented, sheet, b"</sheetData>", b"<!-- 7777.137 --></sheetData>")
    for file in (appended, prefixed, commented):
        assert [f.promise for f in dc.verify(file.parent).broken] == ["nothing besides the rows"]


def test_a_workbook_that_unpacks_to_far_more_than_it_is_is_not_read(tmp_path):
    file = _workbook(tmp_path / "out") / "cells.xlsx"
    many = b"<!--" + bytes(40_000_000) + b"--></sheetData>"
    _changed_part(file, "xl/worksheets/sheet1.xml", b"</sheetData>", many)
    (broken,) = dc.verify(file.parent).broken
    assert broken.promise == "can be read"


def test_evidence_without_promises_shows_nothing(tmp_path):
    out = _workbook(tmp_path / "out")
    stated = json.loads((out / "evidence.json").read_text())
    (out / "evidence.json").write_text(json.dumps({**stated, "promises": []}))
    assert dc.verify(out).verdict.startswith("not shown")
    (out / "evidence.json").write_text("[" * 100_000)
    with pytest.raises(dc.InputError) as caught:
        dc.verify(out)
    assert caught.value.code == "malformed-evidence"


def test_the_file_that_cannot_be_read_is_named(tmp_path):
    out = _workbook(tmp_path / "out")
    with (out / "cells.csv").open("a") as file:
        file.write("a note\n")
    assert [finding.file for finding in dc.verify(out).broken] == ["cells.csv"]
