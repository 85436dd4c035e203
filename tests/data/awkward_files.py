"""Files as people have them: how each is made, and what must be read from it.

A file is read rightly at once, or refused with a hint that gives the right reading when followed.
"""

from __future__ import annotations

import bz2
import dataclasses
import datetime
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

CORPUS: dict[str, Awkward] = {}
DAY = datetime.date
MIDNIGHT = datetime.datetime.combine(DAY(2024, 1, 31), datetime.time())
AFTERNOON = datetime.datetime.combine(DAY(2024, 1, 31), datetime.time(14, 5))
REGIONS = {
    "region": ["north", "south", "north"],
    "age": [31, 42, 53],
    "pay": [1000.5, 2000.25, 3.0],
}
PLAIN = "region,age,pay\nnorth,31,1000.5\nsouth,42,2000.25\nnorth,53,3.0\n"


@dataclasses.dataclass(frozen=True)
class Awkward:
    """A file, what it says, and with which code it is refused before the hint is followed."""

    make: Callable[[Path], Path]
    expected: dict[str, list[Any]]
    refused: str | None = None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    #: Words that `describe` must show about how it was read.
    shown: tuple[str, ...] = ()
    #: What the one question about it says, and the options that answer it.
    asks: str | None = None
    answer: dict[str, Any] = dataclasses.field(default_factory=dict)


def text(name: str, content: str, encoding: str = "utf-8") -> Callable[[Path], Path]:
    return data(name, content.encode(encoding))


def data(name: str, content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


def several(files: dict[str, bytes], name: str = "") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        home = folder / "parts"
        for file, content in files.items():
            (home / file).parent.mkdir(parents=True, exist_ok=True)
            (home / file).write_bytes(content)
        return home / name if name else home

    return make


def zipped(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def workbook(
    sheets: dict[str, Iterable[Iterable[Any]]],
    merged: tuple[str, ...] = (),
    name: str = "book.xlsx",
) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        import openpyxl

        book = openpyxl.Workbook()
        book.remove(book.active)
        for title, rows in sheets.items():
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(list(row))
            for cells in merged:
                sheet.merge_cells(cells)
        target = io.BytesIO()
        book.save(target)
        (folder / name).write_bytes(target.getvalue())
        return folder / name

    return make


def ods(rows: Iterable[Iterable[Any]]) -> bytes:
    def cell(value: Any) -> str:
        if value is None:
            return "<table:table-cell/>"
        if isinstance(value, int | float):
            return f'<table:table-cell office:value-type="float" office:value="{value}"/>'
        return (
            '<table:table-cell office:value-type="string">'
            f"<text:p>{value}</text:p></table:table-cell>"
        )

    body = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    names = "".join(
        f' xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{long}:1.0"'
        for short, long in (("office", "office"), ("table", "table"), ("text", "text"))
    )
    content = (
        f'<?xml version="1.0"?><office:document-content{names}><office:body><office:spreadsheet>'
        f'<table:table table:name="Data">{body}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        '<?xml version="1.0"?><manifest:manifest '
        'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        "</manifest:manifest>"
    )
    return zipped(
        {
            "mimetype": kind.encode(),
            "content.xml": content.encode(),
            "META-INF/manifest.xml": manifest.encode(),
        }
    )


def parquet(columns: dict[str, list[Any]]) -> bytes:
    target = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns), target)
    return target.getvalue()


def statistical(name: str, writer: str, *, labels: bool = True) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        import pandas as pd
        import pyreadstat

        frame = pd.DataFrame({"sex": [1.0, 2.0, 1.0], "pay": [10.5, 20.0, 30.0]})
        said = {"variable_value_labels": {"sex": {1: "man", 2: "woman"}}} if labels else {}
        getattr(pyreadstat, writer)(frame, str(folder / name), **said)
        return folder / name

    return make


def fixed(rda: str, content: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "people.rda").write_text(rda)
        (folder / "people.asc").write_text(content)
        return folder / "people.asc"

    return make


def add(
    name: str,
    make: Callable[[Path], Path],
    expected: dict[str, list[Any]],
    refused: str | None = None,
    *,
    shown: tuple[str, ...] = (),
    asks: str | None = None,
    answer: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    assert name not in CORPUS
    CORPUS[name] = Awkward(make, expected, refused, options, shown, asks, answer or {})


_ROWS = [
    ["region", "age", "pay"],
    ["north", 31, 1000.5],
    ["south", 42, 2000.25],
    ["north", 53, 3.0],
]
# -- encodings and delimiters --------------------------------------------------------------------
_SEMICOLON = "region;age;pay\nnorth;31;1000,5\nsouth;42;2000,25\nnorth;53;3,0\n"
_NAMES = {"name": ["Ágnes", "Łukasz", "Zoë"], "age": [1, 2, 3]}
_NAMED = "name;age\nÁgnes;1\nŁukasz;2\nZoë;3\n"
_WEST = {"name": ["Ágnes", "Müller"], "pay": [1.5, 2.5]}
_WESTERN = "name;pay\nÁgnes;1,5\nMüller;2,5\n"
add("comma", text("a.csv", PLAIN), REGIONS)
add("semicolon-decimal-comma", text("a.csv", _SEMICOLON), REGIONS, shown=("';'", "','"))
add("tabs", text("a.tsv", PLAIN.replace(",", "\t")), REGIONS)
add("bars", text("a.txt", PLAIN.replace(",", "|")), REGIONS)
add("comma-and-blank", text("a.data", PLAIN.replace(",", ", ")), REGIONS)
add("windows-line-ends", text("a.csv", PLAIN.replace("\n", "\r\n")), REGIONS)
add("no-last-line-end", text("a.csv", PLAIN.rstrip("\n")), REGIONS)
add("utf-8-bom", text("a.csv", _NAMED, "utf-8-sig"), _NAMES)
add("utf-16", text("a.csv", _NAMED, "utf-16"), _NAMES, shown=("utf-16",))
add("utf-16-be-without-mark", text("a.csv", _NAMED, "utf-16-be"), _NAMES)
add("latin-1", text("a.csv", _WESTERN, "latin-1"), _WEST, shown=("latin-1",))
add(
    "windows-1252",
    text("a.csv", _WESTERN.replace("Müller", "Œuvre €"), "cp1252"),
    {"name": ["Ágnes", "Œuvre €"], "pay": [1.5, 2.5]},
)
add("windows-1250", text("a.csv", _NAMED, "cp1250"), _NAMES, encoding="cp1250")
add("no-header", text("a.csv", "1;2\n3;4\n"), {"column_1": [1, 3], "column_2": [2, 4]})
add("one-column", text("a.csv", "age\n1\n2\n"), {"age": [1, 2]})
add("blank-lines-between", text("a.csv", "a,b\n\n1,2\n\n3,4\n"), {"a": [1, 3], "b": [2, 4]})
add("quoted-delimiter", text("a.csv", 'a,b\n"x, y",1\nz,2\n'), {"a": ["x, y", "z"], "b": [1, 2]})
add("quoted-line-end", text("a.csv", 'a,b\n"x\ny",1\nz,2\n'), {"a": ["x\ny", "z"], "b": [1, 2]})
add("doubled-quotes", text("a.csv", 'a,b\n"x ""q""",1\nz,2\n'), {"a": ['x "q"', "z"], "b": [1, 2]})
add("quote-as-text", text("a.csv", 'a,b\n5" pipe,1\nz,2\n'), {"a": ['5" pipe', "z"], "b": [1, 2]})
add(
    "open-quote",
    text("a.csv", 'a,b\n"5 pipe,1\nz,2\n'),
    {"a": ['"5 pipe', "z"], "b": [1, 2]},
    "unclosed-quote",
)
# -- titles, notes, headers ------------------------------------------------------------------------
_TITLED = "Survey of pay\n\n" + PLAIN
add("title-above", text("a.csv", _TITLED), REGIONS, shown=("in line 3",))
add("title-with-delimiters", text("a.csv", "Survey of pay,,\n,,\n" + PLAIN), REGIONS)
add("two-titles", text("a.csv", "Survey of pay\nPeriod: 2024\n" + PLAIN), REGIONS)
add("title-by-hand", text("a.csv", "Pay, 2024\n" + PLAIN), REGIONS, "ragged-row")
add("note-below", text("a.csv", PLAIN + "Source: the office\n"), REGIONS, shown=("in line 4",))
add("notes-below-a-gap", text("a.csv", PLAIN + "\nSource: the office,,\n*provisional,,\n"), REGIONS)
add(
    "duplicate-header",
    text("a.csv", "a,b,a\n1,2,x\n3,4,y\n"),
    {"column_1": [1, 3], "column_2": [2, 4], "column_3": ["x", "y"]},
    "duplicate-columns",
)
add(
    "unnamed-column",
    text("a.csv", "a,,c\n1,2,x\n3,4,y\n"),
    {"column_1": [1, 3], "column_2": [2, 4], "column_3": ["x", "y"]},
    "empty-column-name",
)
add("empty-last-column", text("a.csv", "a,b,\n1,2,\n3,4,\n"), {"a": [1, 3], "b": [2, 4]})
add("empty-named-column", text("a.csv", "a,b\n1,\n3,\n"), {"a": [1, 3], "b": [None, None]})
add("blanks-in-names", text("a.csv", "full name,a b\nx,1\n"), {"full name": ["x"], "a b": [1]})
# -- values --------------------------------------------------------------------------------------
add(
    "leading-zeros",
    text("a.csv", "zip,n\n01067,1\n80331,2\n"),
    {"zip": ["01067", "80331"], "n": [1, 2]},
)
add(
    "missing-words",
    text("a.csv", "a,b\nNA,1\n2,.\n3,n/a\n"),
    {"a": [None, 2, 3], "b": [1, None, None]},
)
add(
    "point-groups",
    text("a.csv", "a;b\n1.234,50;x\n12,00;y\n"),
    {"a": [1234.5, 12.0], "b": ["x", "y"]},
)
add(
    "comma-groups",
    text("a.csv", "a;b\n1,234,567;x\n12;y\n"),
    {"a": [1234567.0, 12.0], "b": ["x", "y"]},
)
add("blank-groups", text("a.csv", "a;b\n1 234,5;x\n12;y\n"), {"a": [1234.5, 12.0], "b": ["x", "y"]})
add(
    "thin-blank-groups",
    text("a.csv", "a;b\n1\u202f234,5;x\n12,5;y\n"),
    {"a": [1234.5, 12.5], "b": ["x", "y"]},
)
add(
    "swiss-groups",
    text("a.csv", "a;b\n1'234.50;x\n12.00;y\n"),
    {"a": [1234.5, 12.0], "b": ["x", "y"]},
)
add(
    "dotted-numbers-of-persons",
    text("a.csv", "dni;pay\n12.345.678;1.234,50\n87.654.321;12,00\n"),
    {"dni": ["12.345.678", "87.654.321"], "pay": [1234.5, 12.0]},
)
add(
    "mixed-decimals",
    text("a.csv", "a;b\n1,5;x\n2.5;y\n"),
    {"a": ["1,5", "2.5"], "b": ["x", "y"]},
    "mixed-decimals",
)
_TRADES = {"nace": ["10.11", "25.62"], "umsatz": [1.5, 2.5]}
add(
    "codes-beside-decimal-commas",
    text("a.csv", "trade;umsatz\n10.11;1,5\n25.62;2,5\n"),
    {"trade": _TRADES["nace"], "umsatz": _TRADES["umsatz"]},
    asks="--type trade=nominal",
    answer={"types": {"trade": "nominal"}},
)
_SALES = {"b": ["x", "y", "x"], "sales": [3906.0, 39967.0, 12.0]}
for _mark in ".,":
    add(
        f"thousands-or-decimals{_mark}",
        text("a.csv", "b;sales\nx;3.906\ny;39.967\nx;12\n".replace(".", _mark)),
        _SALES,
        asks=f"--thousands {_mark}",
        answer={"thousands": _mark},
    )
    add(
        f"decimals-not-thousands{_mark}",
        text("a.csv", "b;sales\nx;3.906\ny;39.967\nx;12\n".replace(".", _mark)),
        {"b": ["x", "y", "x"], "sales": [3.906, 39.967, 12.0]},
        asks=f"--decimal {_mark}",
        answer={"decimal": _mark},
    )
add(
    "thousands-of-one-length-beside-decimals",
    text("a.csv", "sales;pay\n3.906;1,5\n4.123;2,5\n"),
    {"sales": [3906.0, 4123.0], "pay": [1.5, 2.5]},
    asks="--thousands .",
    answer={"thousands": "."},
)
add(
    "excel-thousands-as-texts",
    workbook({"D": [["b", "sales"], ["x", "3.906"], ["y", "39.967"], ["x", "12"]]}),
    _SALES,
    asks="--thousands .",
    answer={"thousands": "."},
)
for _name, _value in {"zero": "0.125", "digits": "12.3405", "long": "1234.567"}.items():
    add(
        f"decimals-by-{_name}",
        text("a.csv", f"b;w\nx;1.234\ny;{_value}\n"),
        {"b": ["x", "y"], "w": [1.234, float(_value)]},
    )
add(
    "decimals-by-another-column",
    text("a.csv", "w;v\n1.234;0.5\n5.678;1.5\n"),
    {"w": [1.234, 5.678], "v": [0.5, 1.5]},
)
add("iso-dates", text("a.csv", "d,n\n2024-01-31,1\n"), {"d": [DAY(2024, 1, 31)], "n": [1]})
_DAYS = {"d": [DAY(2024, 1, 31), DAY(2024, 2, 1)], "n": [1, 2]}
add("days-first", text("a.csv", "d,n\n31/01/2024,1\n01/02/2024,2\n"), _DAYS, shown=("dd/mm/yyyy",))
add(
    "months-first", text("a.csv", "d,n\n01/31/2024,1\n02/01/2024,2\n"), _DAYS, shown=("mm/dd/yyyy",)
)
add(
    "dotted-dates",
    text("a.csv", "d,n\n3.1.2024,1\n1.2.2024,2\n"),
    {"d": [DAY(2024, 1, 3), DAY(2024, 2, 1)], "n": [1, 2]},
)
add("year-first-slashes", text("a.csv", "d,n\n2024/01/31,1\n2024/02/01,2\n"), _DAYS)
add(
    "unsure-dates",
    text("a.csv", "d,n\n01/02/2024,1\n03/02/2024,2\n"),
    {"d": [DAY(2024, 2, 1), DAY(2024, 2, 3)], "n": [1, 2]},
    asks="--dates day",
    answer={"dates": "day"},
)
add(
    "one-column-tells-the-order",
    text("a.csv", "d,e\n01/02/2024,31/01/2024\n"),
    {"d": [DAY(2024, 2, 1)], "e": [DAY(2024, 1, 31)]},
)
add(
    "dates-with-time",
    text("a.csv", "d,n\n31.01.2024 14:05,1\n"),
    {"d": [AFTERNOON], "n": [1]},
)
add("no-such-date", text("a.csv", "d,n\n31/02/2024,1\n"), {"d": ["31/02/2024"], "n": [1]})
add("iso-weeks", text("a.csv", "w,n\n2024-W05,1\n"), {"w": ["2024-W05"], "n": [1]})
add("years", text("a.csv", "year,n\n2024,1\n1999,2\n"), {"year": [2024, 1999], "n": [1, 2]})
add(
    "size-classes",
    text("a.csv", "s,n\n250+,1\n50-249,2\n0-9,3\n"),
    {"s": ["250+", "50-249", "0-9"], "n": [1, 2, 3]},
)
add(
    "long-numbers",
    text("a.csv", "id,n\n12345678901234567890,1\n"),
    {"id": ["12345678901234567890"], "n": [1]},
)
add("told-delimiter", text("a.csv", "sep=;\na;b\n1;2\n3;4\n"), {"a": [1, 3], "b": [2, 4]})
add(
    "total-below",
    text("a.csv", PLAIN + "Total,126,3003.75\n"),
    REGIONS,
    asks="--footer 1",
    answer={"footer": 1},
)
add(
    "total-and-note-below",
    text("a.csv", PLAIN + "Summe,,3003.75\n\nQuelle: Amt\n"),
    REGIONS,
    asks="--footer 3",
    answer={"footer": 3},
)
add("note-right-below", text("a.csv", PLAIN + "Source: the office,,\n"), REGIONS)
add(
    "records-of-one-value",
    text("a.csv", "city,n,m\nNew York,,\nRome,1,2\nLos Angeles,,\n"),
    {"city": ["New York", "Rome", "Los Angeles"], "n": [None, 1, None], "m": [None, 2, None]},
)
_PARTS = {"a": ["x", "Zwischensumme A", "z"], "n": [1, 1, 3], "m": [1, 1, 2]}
add(
    "subtotals",
    text("a.csv", "a,n,m\nx,1,1\nZwischensumme A,1,1\nz,3,2\n"),
    _PARTS,
    asks="line 3: a total",
)
add(
    "excel-subtotals",
    workbook({"D": [["a", "n", "m"], ["x", 1, 1], ["Zwischensumme A", 1, 1], ["z", 3, 2]]}),
    _PARTS,
    asks="row 3: a total",
)
add(
    "excel-total-below",
    workbook({"D": [*_ROWS, ["Total", 126, 3003.75]]}),
    REGIONS,
    asks="--footer 1",
    answer={"footer": 1},
)
add(
    "excel-total-and-note-right-below",
    workbook({"D": [*_ROWS, ["Total", 126, 3003.75], ["Source: the office"]]}),
    REGIONS,
    asks="--footer 2",
    answer={"footer": 2},
)
add(
    "excel-note-right-below",
    workbook({"D": [*_ROWS, ["Source: the office"]]}),
    REGIONS,
    shown=("left out below",),
)
add(
    "json",
    text("a.json", '[{"region": "north", "age": 31}, {"region": "south", "age": 42}]'),
    {"region": ["north", "south"], "age": [31, 42]},
    "unknown-format",
)
add(
    "json-lines",
    text("a.jsonl", '{"region": "north", "age": 31}\n{"region": "south", "age": 42}\n'),
    {"region": ["north", "south"], "age": [31, 42]},
    "unknown-format",
)
add("truths", text("a.csv", "t,n\ntrue,1\nfalse,2\n"), {"t": [True, False], "n": [1, 2]})
# -- archives and several files --------------------------------------------------------------------
add("gzip", data("a.csv.gz", gzip.compress(PLAIN.encode())), REGIONS)
add("bzip2", data("a.csv.bz2", bz2.compress(PLAIN.encode())), REGIONS)
add("xz", data("a.csv.xz", lzma.compress(PLAIN.encode())), REGIONS)
add("zip", data("a.zip", zipped({"people.csv": PLAIN.encode(), "__MACOSX/x": b"1"})), REGIONS)
add("gzip-called-csv", data("a.csv", gzip.compress(PLAIN.encode())), REGIONS, "binary-file")
_BOTH = {key: [*values, *values] for key, values in REGIONS.items()}
_TURNED = "pay,region,age\n1000.5,north,31\n2000.25,south,42\n3.0,north,53\n"
add(
    "folder",
    several({"1.csv": PLAIN.encode(), "2.csv": PLAIN.encode(), ".x": b"1"}),
    _BOTH,
    shown=("2 as one",),
)
add(
    "pattern",
    several({"p1.csv": PLAIN.encode(), "p2.csv": PLAIN.encode(), "q.csv": b"a\n1\n"}, "p*.csv"),
    _BOTH,
)
add("turned-columns", several({"1.csv": PLAIN.encode(), "2.csv": _TURNED.encode()}), _BOTH)
add(
    "zip-of-two", data("a.zip", zipped({"1.csv": PLAIN.encode(), "2.csv": _TURNED.encode()})), _BOTH
)
add(
    "widened-types",
    several({"1.csv": b"a,b\n1,2\n", "2.csv": b"a,b\nx,2.5\n"}),
    {"a": ["1", "x"], "b": [2.0, 2.5]},
)
add(
    "parquet-folder",
    several({"1.parquet": parquet({"a": [1]}), "2.parquet": parquet({"a": [2]})}),
    {"a": [1, 2]},
)
add(
    "parquet-by-year",
    several(
        {"year=2023/1.parquet": parquet({"a": [1]}), "year=2024/1.parquet": parquet({"a": [2]})}
    ),
    {"a": [1, 2], "year": [2023, 2024]},
)
add(
    "folder-of-two-formats",
    several({"1.csv": PLAIN.encode(), "2.csv": PLAIN.encode(), "x.parquet": parquet({"a": [1]})}),
    _BOTH,
    "several-formats",
)
# -- workbooks -----------------------------------------------------------------------------------
add("excel", workbook({"Data": _ROWS}), REGIONS, shown=("'Data'",))
add(
    "excel-title",
    workbook({"Data": [["Survey of pay"], [], *_ROWS]}, merged=("A1:C1",)),
    REGIONS,
    shown=("in row 3",),
)
add(
    "excel-notes",
    workbook({"Data": [*_ROWS, [], ["Source: the office"]]}),
    REGIONS,
    shown=("left out below",),
)
add("excel-two-sheets", workbook({"Data": _ROWS, "More": _ROWS}), REGIONS, "several-sheets")
add("excel-cover-sheet", workbook({"Read me": [["About this file"]], "Data": _ROWS}), REGIONS)
add(
    "excel-merged-down",
    workbook({"D": [["r", "n", "m"], ["north", 1, 2], [None, 3, 4]]}, merged=("A2:A3",)),
    {"r": ["north", "north"], "n": [1, 3], "m": [2, 4]},
)
add(
    "excel-two-header-rows",
    workbook({"D": [["r", "men", None], [None, "n", "m"], ["a", 1, 2]]}, merged=("B1:C1",)),
    {"r": ["a"], "men n": [1], "men m": [2]},
)
add(
    "excel-dates",
    workbook({"D": [["d", "n"], [MIDNIGHT, 1]]}),
    {"d": [DAY(2024, 1, 31)], "n": [1]},
)
add(
    "excel-zeros",
    workbook({"D": [["zip", "n"], ["01067", 1], ["80331", 2]]}),
    {"zip": ["01067", "80331"], "n": [1, 2]},
)
add(
    "excel-mixed",
    workbook({"D": [["code", "n"], [1, 1], ["A1", 2]]}),
    {"code": ["1", "A1"], "n": [1, 2]},
)
add(
    "excel-errors",
    workbook({"D": [["a", "n"], ["#N/A", 1], [5, 2]]}),
    {"a": [None, 5], "n": [1, 2]},
    asks="sheet 'D': 1 cell with #N/A (A2)",
)
add("excel-empty-column", workbook({"D": [["a", None, "n"], [1, None, 2]]}), {"a": [1], "n": [2]})
add(
    "excel-away-from-corner",
    workbook({"D": [[], [], [None, None, "a", "n"], [None, None, 1, 2]]}),
    {"a": [1], "n": [2]},
)
add("excel-called-csv", workbook({"Data": _ROWS}, name="book.csv"), REGIONS, "binary-file")
add(
    "excel-without-suffix",
    workbook({"Data": _ROWS}, name="book.unknown"),
    REGIONS,
    "unknown-format",
)
add("ods", data("a.ods", ods(_ROWS)), REGIONS)
# -- statistical packages, fixed width, columnar -----------------------------------------------------
_CODES = {"sex": [1, 2, 1], "pay": [10.5, 20.0, 30.0]}
_LABELS = {"sex": ["man", "woman", "man"], "pay": [10.5, 20.0, 30.0]}
add("spss", statistical("a.sav", "write_sav"), _CODES, shown=("codes of sex",))
add(
    "spss-labels", statistical("a.sav", "write_sav"), _LABELS, labels=True, shown=("labels of sex",)
)
add("stata-labels", statistical("a.dta", "write_dta"), _LABELS, labels=True)
add("sas", statistical("a.xpt", "write_xport", labels=False), _CODES)
_RDA = "SEX 1 1 9\n<RECODEABLE>\nAGE 2 2\n<NUMERIC>\nPAY 4 5\n<NUMERIC>\n<DECIMALS> 1\n"
_FIXED = {"SEX": ["1", None], "AGE": [31, 42], "PAY": [100.5, 20.0]}
add("fixed-width", fixed(_RDA, "131100.5\n942 20.0\n"), _FIXED, format="fixed-width")
add(
    "separated-rda",
    fixed(
        '<SEPARATOR> ";"\nSEX 1 9\nAGE 2\n<NUMERIC>\nPAY 5\n<NUMERIC>\n<DECIMALS> 1\n',
        "1;31;100.5\n9;42;20.0\n",
    ),
    _FIXED,
    format="fixed-width",
)
add("feather", lambda folder: _feather(folder / "a.feather"), {"a": [1]})
add("parquet-without-suffix", data("a.unknown", parquet({"a": [1]})), {"a": [1]}, "unknown-format")
add("csv-without-suffix", text("a.unknown", PLAIN), REGIONS, "unknown-format")


def _feather(path: Path) -> Path:
    pyarrow.feather.write_feather(pa.table({"a": [1]}), str(path))
    return path


# -- totals without a label, texts among numbers ---------------------------------------------------
_FIRMS = [f"{'north' if n % 2 else 'south'};{n % 5};{100 + 7 * n}" for n in range(12)]
_SUM = sum(100 + 7 * n for n in range(12))
_FIRM_COLUMNS = {
    "region": ["north" if n % 2 else "south" for n in range(12)],
    "code": [n % 5 for n in range(12)],
    "pay": [100 + 7 * n for n in range(12)],
}
for _name, _last in (("bare-total", f";;{_SUM}"), ("odd-total", f"alle Betriebe;;{_SUM}")):
    add(
        _name,
        text("a.csv", "\n".join(["region;code;pay", *_FIRMS, _last]) + "\n"),
        _FIRM_COLUMNS,
        asks="line 14: a total",
        answer={"footer": 1},
    )
add(
    "excel-bare-total",
    workbook(
        {
            "Data": [
                ["region", "code", "pay"],
                *([r, c, p] for r, c, p in zip(*_FIRM_COLUMNS.values(), strict=True)),
                [None, None, _SUM],
            ]
        }
    ),
    _FIRM_COLUMNS,
    asks="row 14: a total",
    answer={"footer": 1},
)
_STRAYS = [*_FIRMS[:7], "north;3;n.b.", *_FIRMS[7:]]
_STRAY_COLUMNS = {
    name: [*values[:7], {"region": "north", "code": 3, "pay": None}[name], *values[7:]]
    for name, values in _FIRM_COLUMNS.items()
}
add(
    "text-among-numbers",
    text("a.csv", "\n".join(["region;code;pay", *_STRAYS]) + "\n"),
    _STRAY_COLUMNS,
    asks="pay: line 9 holds a text",
    answer={"na": ["n.b."]},
)
add(
    "excel-text-among-numbers",
    workbook(
        {
            "Data": [
                ["region", "code", "pay"],
                *(
                    [r, c, "n.b." if p is None else p]
                    for r, c, p in zip(*_STRAY_COLUMNS.values(), strict=True)
                ),
            ]
        }
    ),
    _STRAY_COLUMNS,
    asks="pay: row 9 holds a text",
    answer={"na": ["n.b."]},
)
add(
    "text-among-decimals",
    text(
        "a.csv",
        "region;pay\n" + "".join(f"n;{n},5\n" for n in range(12)) + "s;k.A.\n",
    ),
    {"region": ["n"] * 12 + ["s"], "pay": [n + 0.5 for n in range(12)] + [None]},
    asks="pay: line 14 holds a text",
    answer={"na": ["k.A."]},
)
add(
    "text-among-dates",
    text(
        "a.csv",
        "region;seen\n" + "".join(f"n;{n + 13}.01.2024\n" for n in range(12)) + "s;unbekannt\n",
    ),
    {"region": ["n"] * 12 + ["s"], "seen": [DAY(2024, 1, n + 13) for n in range(12)] + [None]},
    asks="seen: line 14 holds a text",
    answer={"na": ["unbekannt"]},
)
add(
    "quoted-otherwise",
    text("a.csv", "a;b\n'x;1';2\n'y';3\n"),
    {"a": ["x;1", "y"], "b": [2, 3]},
    quote="'",
)

_CODES = ["86.10", "10.11", "62.01"]
add(
    "codes-of-activities",
    text("a.csv", "nace;pay\n" + "".join(f"{c};1\n" for c in _CODES)),
    {"nace": _CODES, "pay": [1, 1, 1]},
)
add(
    "excel-codes-as-texts",
    workbook({"Data": [["firm", "x", "pay"], *([f"4711{n}", c, n] for n, c in enumerate(_CODES))]}),
    {"firm": ["47110", "47111", "47112"], "x": _CODES, "pay": [0, 1, 2]},
)

add(
    "dollars",
    text("a.csv", 'b,paid\nx,"$1,234.50"\ny,$5.16\nx,-$12\n'),
    {"b": ["x", "y", "x"], "paid": [1234.5, 5.16, -12.0]},
    shown=("read without their mark", "paid"),
)
add(
    "euros-and-shares",
    text("a.csv", "b;paid;share\nx;1.234,50 €;12,5 %\ny;5,00 €;3 %\n"),
    {"b": ["x", "y"], "paid": [1234.5, 5.0], "share": [12.5, 3.0]},
)
add(
    "two-currencies",
    text("a.csv", "b;paid\nx;$5\ny;€6\n"),
    {"b": ["x", "y"], "paid": ["$5", "€6"]},
)
add(
    "euros-thousands-or-decimals",
    text("a.csv", "b;paid\nx;3.906 €\ny;39.967 €\nx;12 €\n"),
    {"b": ["x", "y", "x"], "paid": [3906.0, 39967.0, 12.0]},
    asks="paid: is 1.234 more than a thousand",
    answer={"thousands": "."},
)
add(
    "excel-dollars-as-texts",
    workbook({"Data": [["b", "paid"], ["x", "$5.50"], ["y", "$12.00"]]}),
    {"b": ["x", "y"], "paid": [5.5, 12.0]},
)
add(
    "dollars-with-a-total",
    text(
        "a.csv",
        "b,paid\n" + "".join(f"x{n},${n + 1}.50\n" for n in range(9)) + ",$49.50\n",
    ),
    {"b": [f"x{n}" for n in range(9)], "paid": [n + 1.5 for n in range(9)]},
    asks="total",
    answer={"footer": 1},
)

add(
    "text-among-dollars",
    text("a.csv", "b;paid\n" + "".join(f"x;${n}.25\n" for n in range(20)) + "y;waived\n"),
    {"b": ["x"] * 20 + ["y"], "paid": [n + 0.25 for n in range(20)] + [None]},
    asks="paid: line 22 holds a text",
    answer={"na": ["waived"]},
)
