"""What a file holds besides its rows is found: marks, notes and bytes that no reader shows."""

from __future__ import annotations

import base64
import dataclasses
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dc
from discreet.demo import salaries

NOBODY = "Ann Smith"


def written(folder: Path, kind: str) -> Path:
    rows = pd.DataFrame(
        {"town": list("aabb") * 3, "ill": ["flu", "gout", None] * 4, "pay": [1.5, 2.5] * 6}
    )
    roles = {"town": "quasi", "ill": "confidential", "pay": "confidential"}
    made = dc.anonymize(
        dc.read(rows, roles=roles, name="people"), dc.KAnonymity(2), method=dc.LocalSuppression()
    )
    return dataclasses.replace(made, format=kind).write(folder / "out") / f"people.{kind}"


def broken(file: Path) -> list[str]:
    return [finding.found for finding in dc.verify(file.parent).broken]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("1.5\n", '"1.5"\n', "values of column 'pay' in quotes, and others without"),
        ('"flu"', "flu", "values of column 'ill' in quotes, and others without"),
        ("1.5\n", "1.5\r\n", "lines that end in two ways"),
        ("1.5\n", f"1.5,{NOBODY}\n", "it cannot (ValueError)"),
        ('"flu",', f'"flu"{NOBODY},', "it cannot (ValueError)"),
        ('"flu"', '"flu', "it cannot (ValueError)"),
    ],
)
def test_a_line_of_a_csv_file_that_is_marked_is_found(old, new, what, tmp_path):
    """Readers take the value for that of all other lines."""
    file = written(tmp_path, "csv")
    assert not broken(file)
    text = file.read_bytes().decode()
    assert old in text
    file.write_bytes(text.replace(old, new, 1).encode())
    assert broken(file) == [what]


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        (['"a, b"', "c", "c", '"x ""y"""'], True),
        (['"a, b"', '"c"', '"c"', '"x ""y"""'], True),
        (['"a, b"', '"c"', "c", '"x ""y"""'], False),
        (["a\x01", "c", "c", "d"], True),
    ],
)
def test_quotes_that_a_value_needs_are_no_marks(values, holds, tmp_path):
    from discreet.verification.leftovers import leftovers
    from discreet.verification.reading import open_file

    (tmp_path / "x.csv").write_text("who,n\n" + "".join(f"{value},1\n" for value in values))
    assert (leftovers(open_file(tmp_path / "x.csv")) == []) == holds


def _footed(file: Path, rows: pa.Table, key: str, value: bytes) -> None:
    with parquet.ParquetWriter(file, rows.schema, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({key: value})


def test_footers_that_claim_to_say_types_say_no_more(tmp_path):
    file = written(tmp_path, "parquet")
    rows = parquet.read_table(file)
    plain = rows.schema
    noted = [
        plain.with_metadata({"who": NOBODY}),
        pa.schema([field.with_metadata({"who": NOBODY}) for field in plain]),
    ]
    forged = [base64.b64encode(schema.serialize().to_pybytes()) for schema in noted]
    forged.append(base64.b64encode(plain.serialize().to_pybytes() + NOBODY.encode() * 20))
    for value in (*forged, NOBODY.encode()):
        _footed(file, rows, "ARROW:schema", value)
        assert broken(file)[0].startswith(("a footer named 'ARROW:schema'", "it cannot (Arrow"))
    _footed(file, rows, "pandas", b'{"columns": [], "creator": {"library": "Ann Smith"}}')
    assert broken(file) == ["a footer named 'pandas'"]
    _footed(file, rows, "ARROW:schema", base64.b64encode(plain.serialize().to_pybytes()))
    assert not broken(file)


def test_ends_of_numbers_that_no_row_has_are_found(tmp_path):
    file = written(tmp_path, "parquet")
    rows = parquet.read_table(file)
    content = bytearray(file.read_bytes())
    most = pa.array([2.5]).buffers()[1].to_pybytes()[:8]
    place = content.rindex(most)  # the greatest value, as the footer states it
    content[place : place + 8] = pa.array([98765.0]).buffers()[1].to_pybytes()[:8]
    file.write_bytes(content)
    assert parquet.read_table(file).equals(rows)
    assert "ends of column 'pay' that no row has" in broken(file)[0]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_bytes_between_columns_and_footer_are_found(kind, tmp_path):
    """Readers go by the places that the footer states."""
    file = written(tmp_path, kind)
    content = file.read_bytes()
    mark, width = (b"PAR1", 4) if kind == "parquet" else (b"ARROW1", 4)
    length = int.from_bytes(content[-len(mark) - width : -len(mark)], "little")
    start = len(content) - len(mark) - width - length
    hidden = (NOBODY * 20).encode().ljust(256)
    file.write_bytes(content[:start] + hidden + content[start:])
    reader = parquet.read_table if kind == "parquet" else pa.ipc.open_file
    assert reader(pa.memory_map(str(file)))
    assert broken(file) == ["bytes that belong to no column"]


def _table(folder: Path) -> Path:
    table = dc.tabulate(salaries(), by=["sector", "region"], measure="salary")
    safe = table.protect(rules=[dc.MinimumFrequency(3)], method=dc.Suppression())
    return safe.write(folder / "out") / "cells.xlsx"


WORDS = (
    '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    f"<si><t>{NOBODY}</t></si></sst>"
)


def _changed(file: Path, part: str, old: str, new: str) -> None:
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert old in parts.get(part, old)
    parts[part] = parts.get(part, "").replace(old, new, 1) if part in parts else new
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("part", "old", "new", "what"),
    [
        ("xl/sharedStrings.xml", "", WORDS, "texts that no cell has"),
        ("docProps/core.xml", "openpyxl", NOBODY, "notes on who made it"),
        ("xl/notes.xml", "", NOBODY, "a part 'xl/notes.xml'"),
        ("xl/worksheets/sheet1.xml", "</row>", '<c r="Z1"><v>7</v></c></row>', "it cannot"),
        ("xl/worksheets/sheet1.xml", "<v>", "<f>7+7</f><v>", "formulas"),
    ],
)
def test_what_no_cell_of_a_workbook_shows_is_found(part, old, new, what, tmp_path):
    file = _table(tmp_path)
    assert not broken(file)
    _changed(file, part, old, new)
    assert what in " ".join(broken(file))


def test_notes_on_the_blocks_of_an_arrow_file_are_found(tmp_path):
    file = written(tmp_path, "arrow")
    with pa.ipc.open_file(file) as reader:
        rows = reader.read_all().combine_chunks()
    for note in (None, {"who": NOBODY}):
        with pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_batch(rows.to_batches()[0], custom_metadata=note)
        assert broken(file) == ([] if note is None else ["notes on its blocks"])
