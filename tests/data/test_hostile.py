"""Hostile and broken input: each a clear error with its code and place, nothing written.

A case is a file (or a call) as somebody might really hand it in. For files the library and the
command line are both tried: the same code, exit status 2, no traceback, no new file.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet import demo
from discreet.app.cli import main as cli
from discreet.data.dataset import read
from discreet.data.hierarchy import Hierarchy
from discreet.data.linked import LinkedTables
from discreet.data.table import Table
from discreet.errors import InputError

#: name: (file name, content, code, line, column)
FILES: dict[str, tuple[str, bytes, str, int | None, str | None]] = {
    "empty": ("a.csv", b"", "empty-file", None, None),
    "only-empty-lines": ("a.csv", b"\n\n\n", "empty-file", None, None),
    "header-only": ("a.csv", b"age,sex\n", "no-rows", 1, None),
    "ragged-short": ("a.csv", b"a,b,c\n1,2,3\n1,2\n", "ragged-row", 3, None),
    "ragged-long": ("a.csv", b"a,b\n1,2\n3,4,5\n", "ragged-row", 3, None),
    "ragged-after-quoted-lines": ("a.csv", b'a,b\n"x\ny",2\n3\n', "ragged-row", 4, None),
    "duplicate-header": ("a.csv", b"age,sex,age\n1,f,2\n", "duplicate-columns", 1, "age"),
    "nameless-column": ("a.csv", b"age,,sex\n1,2,f\n", "empty-column-name", 1, None),
    "blank-column-name": ("a.csv", b"age, ,sex\n1,2,f\n", "empty-column-name", 1, None),
    "unclosed-quote": ("a.csv", b'a,b\n1,"open\n2,x\n3,y\n', "unclosed-quote", 2, None),
    "endless-value": ("a.csv", b"a,b\n1," + b"x" * 300_000 + b"\n2,y\n", "value-too-long", 2, None),
    "quote-inside": ("a.csv", b'a,b\n1,"a"b"\n2,x\n', "bad-quoting", 2, None),
    "mixed-encodings": (
        "a.csv",
        "n,t\n1,é\n".encode() + b"2,\xe9t\xe9\n",
        "wrong-encoding",
        3,
        None,
    ),
    "nul-byte": ("a.csv", b"a,b\n1,x\n2,y\0z\n3,w\n", "nul-byte", 3, None),
    "mixed-decimals": ("a.csv", b"a;b\n1,5;x\n2.5;y\n", "mixed-decimals", 3, "a"),
    "mixed-decimals-point-first": (
        "a.csv",
        b"a;b\n2.5;y\n1.5;y\n1,5;x\n",
        "mixed-decimals",
        2,
        "a",
    ),
    "beyond 64 bits": ("a.csv", b"x,y\n1.5,2\n1e400,3\n", "not-finite", 3, "x"),
    "infinite": ("a.csv", b"x,y\n1,2\ninf,3\n", "not-finite", 3, "x"),
    "minus-infinity": ("a.csv", b"x,y\n1,2\n3,-Infinity\n", "not-finite", 3, "y"),
    "parquet-as-csv": ("a.csv", b"PAR1\x15\x04\x15\x00PAR1", "binary-file", None, None),
    "excel-as-csv": ("a.csv", b"PK\x03\x04\x14\x00\x06", "binary-file", None, None),
    "gzip-as-csv": ("a.csv", b"\x1f\x8b\x08\x00\x00", "binary-file", None, None),
    "picture-as-csv": ("a.csv", b"\x89PNG\r\n\x1a\n\x00\x00", "binary-file", None, None),
    "noise": ("a.csv", bytes(range(1, 32)) * 20, "binary-file", None, None),
    "csv-as-parquet": ("a.parquet", b"a,b\n1,2\n", "bad-file", None, None),
    "csv-as-arrow": ("a.arrow", b"a,b\n1,2\n", "bad-file", None, None),
    "csv-as-spss": ("a.sav", b"a,b\n1,2\n", "bad-file", None, None),
    "csv-as-stata": ("a.dta", b"a,b\n1,2\n", "bad-file", None, None),
    "csv-as-sas": ("a.sas7bdat", b"a,b\n1,2\n", "bad-file", None, None),
    "cut-parquet": ("a.parquet", b"PAR1" + b"\0" * 64, "bad-file", None, None),
    "unknown-suffix": ("a.xyz", b"a,b\n1,2\n", "unknown-format", None, None),
}


@pytest.mark.parametrize("case", FILES)
def test_broken_files(tmp_path, case):
    name, content, code, line, column = FILES[case]
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(file)
    error = caught.value
    assert error.code == code
    assert error.file == str(file)
    assert error.line == line
    assert error.column == column
    assert str(file) in str(error)
    assert sorted(tmp_path.iterdir()) == [file]
    assert file.read_bytes() == content
    # The command line says the same.
    result = CliRunner().invoke(cli.build(), ["describe", str(file)])
    assert isinstance(result.exception, InputError)
    assert result.exception.code == code


def test_a_broken_line_far_down(tmp_path):
    """Beyond what is sampled: the engine stumbles, and the line is still named."""
    lines = [f"{i},{i % 5},x" for i in range(150_000)]
    lines[100_000] = "100000,1"
    file = tmp_path / "big.csv"
    file.write_text("id,n,t\n" + "\n".join(lines) + "\n")
    with pytest.raises(InputError) as caught:
        read(file)
    assert (caught.value.code, caught.value.line) == ("ragged-row", 100_002)
    assert caught.value.file == str(file)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"encoding": "utf-8"}, "wrong-encoding"),
        ({"encoding": "utf-99"}, "unknown-encoding"),
        ({"delimeter": ";"}, "unknown-option"),
        ({"format": "exel"}, "unknown-format"),
        ({"roles": {"nme": "quasi"}}, "unknown-column"),
        ({"roles": {"name": "quazi"}}, "unknown-role"),
        ({"types": {"name": "texty"}}, "unknown-type"),
        ({"unit": "person"}, "unknown-column"),
        ({"weight": "wt"}, "unknown-column"),
        ({"hierarchies": {"town": Hierarchy.flat(["a"])}}, "unknown-column"),
        ({"engine": "oracle://x"}, "unknown-engine"),
    ],
)
def test_wrong_words_about_a_good_file(tmp_path, options, code):
    file = tmp_path / "a.csv"
    file.write_bytes("name;age\nÁgnes;31\nBo;40\n".encode("latin-1"))
    with pytest.raises(InputError) as caught:
        read(file, **options)
    assert caught.value.code == code
    assert caught.value.hint or caught.value.line
    assert sorted(tmp_path.iterdir()) == [file]


def test_no_such_file_and_a_folder(tmp_path):
    for path, code in ((tmp_path / "none.csv", "no-file"), (tmp_path, "no-file")):
        with pytest.raises(InputError) as caught:
            read(path)
        assert caught.value.code == code


HIERARCHIES: dict[str, tuple[str, str, str, int | None]] = {
    "cycle": ("h.csv", "child,parent\nT,\nA,B\nB,A\n", "hierarchy-cycle", 3),
    "only-a-cycle": ("h.csv", "child,parent\nA,B\nB,A\n", "hierarchy-cycle", None),
    "own-parent": ("h.csv", "child,parent\nT,\nA,A\n", "hierarchy-cycle", 3),
    "orphan": ("h.csv", "child,parent\nT,\nA,T\nx,Y\n", "hierarchy-orphan", 4),
    "two-roots": ("h.csv", "child,parent\nT,\nU,\n", "hierarchy-roots", 3),
    "two-parents": ("h.csv", "child,parent\nT,\nA,T\nB,T\nx,A\nx,B\n", "hierarchy-two-parents", 6),
    "empty": ("h.csv", "", "empty-file", None),
    "three-fields": ("h.csv", "child,parent\nT,,\n", "ragged-row", 2),
    "jump": ("h.hrc", "A\n@@a\n", "hierarchy-depth-jump", 2),
    "twice": ("h.hrc", "A\n@a\n@a\n", "hierarchy-duplicate", 3),
    "lone-lead": ("h.hrc", "A\n@\n", "hierarchy-empty-code", 2),
    "uneven": ("h.arx", "a;A;*\nb;*\n", "ragged-row", 2),
    "no-root": ("h.arx", "a;A\nb;B\n", "hierarchy-roots", None),
    "splits-again": ("h.arx", "a;G;P;*\nb;G;Q;*\n", "hierarchy-two-parents", 2),
}


@pytest.mark.parametrize("case", HIERARCHIES)
def test_broken_hierarchies(tmp_path, case):
    name, content, code, line = HIERARCHIES[case]
    file = tmp_path / name
    file.write_text(content)
    readers = {".csv": "from_pairs", ".hrc": "from_hrc", ".arx": "from_arx"}
    with pytest.raises(InputError) as caught:
        getattr(Hierarchy, readers[file.suffix])(file)
    assert (caught.value.code, caught.value.line) == (code, line)
    assert caught.value.file == str(file)
    assert sorted(tmp_path.iterdir()) == [file]


def test_a_code_missing_from_the_hierarchy():
    people = read(
        demo.salaries_arrow(),
        roles={"sector": "quasi"},
        hierarchies={"sector": Hierarchy.flat(["IT", "HC"])},
    )
    with pytest.raises(InputError) as caught:
        people.cells(["sector"])
    assert caught.value.code == "hierarchy-not-covering"
    assert caught.value.column == "sector"


def test_an_identifier_as_a_dimension():
    people = demo.salaries()
    with pytest.raises(InputError) as caught:
        people.schema.require_dimension("id")
    assert (caught.value.code, caught.value.column) == ("identifier-dimension", "id")


def test_frames_that_cannot_be_data():
    twice = pd.DataFrame(np.ones((2, 2)), columns=["a", "a"])
    mixed = pd.DataFrame({"a": [1, "x", 2.5], "b": [1, 2, 3]})
    for source, code in (
        (twice, "duplicate-columns"),
        (mixed, "mixed-types"),
        (object(), "unknown-source"),
        ([1, 2, 3], "unknown-source"),
        ("postgresql://localhost/db", "no-table"),
    ):
        with pytest.raises(InputError) as caught:
            read(source)
        assert caught.value.code == code


HOSTILE_NAMES = [
    '"; DROP TABLE people; --',
    "'; DELETE FROM people; --",
    "a\nb",
    "`x`",
    "[y]",
    "select",
    "SELECT * FROM people",
    "$1",
    "?",
    "%s",
    "{0}",
    "é" * 100,
    "__row_",
    "\\",
    " lead",
    "n" * 500,
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_column_names_are_only_names(tmp_path, name):
    """Nothing is executed: the column counts and comes back as it was called."""
    table = pa.table({name: ["a", "b", "a"], "salary": [1.0, 2.0, 3.0]})
    data = read(table, roles={name: "quasi", "salary": "confidential"}, name="people")
    cells = data.cells([name], measure="salary").to_pydict()
    assert dict(zip(cells[name], cells["sum"], strict=True)) == {"Total": 6, "a": 4, "b": 2}
    assert data.arrow().column_names == [name, "salary"]
    data.write(tmp_path / "out.parquet")
    assert read(tmp_path / "out.parquet").columns == (name, "salary")


HOSTILE_VALUES = [
    "x" * 10_000,
    "'; DROP TABLE people; --",
    '"',
    "a\0b"[:1],
    "𝔘𝔫𝔦",
    "a\tb",
    "=1+1",
    "",
]


@pytest.mark.parametrize("value", HOSTILE_VALUES)
def test_hostile_values_are_only_values(value):
    data = read(pa.table({"v": [value, "b", value], "n": [1, 2, 3]}), roles={"v": "quasi"})
    found = data.frequencies(["v"]).to_pydict()
    assert dict(zip(found["v"], found["count"], strict=True)) == {value: 2, "b": 1}


def test_nan_and_infinity_as_values():
    for bad in (float("nan"), float("inf"), float("-inf")):
        frame = pd.DataFrame({"a": ["Total", "x"], "v": [1.0, bad]})
        with pytest.raises(InputError) as caught:
            Table.from_cells(frame, ["a"], "v")
        assert (caught.value.code, caught.value.line, caught.value.column) == ("not-finite", 2, "v")


def test_an_infinite_measure_in_records():
    data = read(pa.table({"s": ["a", "b"], "v": [1.0, float("inf")]}), roles={"s": "quasi"})
    with pytest.raises(InputError) as caught:
        data.cells(["s"], measure="v")
    assert caught.value.code == "not-finite"
    assert caught.value.column == "v"


def test_tables_that_do_not_add_up():
    frame = pd.DataFrame({"a": ["Total", "x", "y"], "v": [10.0, 3.0, 3.0]})
    with pytest.raises(InputError) as caught:
        Table.from_cells(frame, ["a"], "v").require_additive()
    assert caught.value.code == "table-not-additive"
    assert caught.value.facts["cells"] == ["Total"]
    one = Table.from_cells(frame, ["a"], "v")
    other = Table.from_cells(frame.assign(v=[11.0, 3.0, 3.0]), ["a"], "v")
    with pytest.raises(InputError) as caught:
        LinkedTables.of([one, other])
    assert caught.value.code == "linked-values-differ"


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"a,b\n1\n2,3\n", "ragged-row"), (b"", "empty-file"), (b"a,a\n1,2\n", "duplicate-columns")],
)
def test_the_program_ends_with_a_block_and_status_2(tmp_path, content, code):
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    run = "from discreet.app.cli.main import main; main()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    for extra in ([], ["--json"]):
        done = subprocess.run(
            [sys.executable, "-c", run, "describe", str(file), *extra],
            capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environment,
        )  # fmt: skip
        assert done.returncode == 2
        assert code in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
        if extra:
            assert json.loads(done.stderr)["file"] == str(file)
    assert [path.name for path in Path(tmp_path).iterdir()] == ["a.csv"]


def test_messages_hold_no_confidential_value(tmp_path):
    """What is wrong is told by its place; the values of the line stay where they are."""
    secret = "Ludwig-Secretname"
    bodies = [
        f"name,pay\n{secret},1,2\nBo,2\n",
        f'name,pay\n{secret},"1\nBo,2\n',
        f"name;pay\n{secret};1,5\nBo;2.5\n",
        f"name,pay\n{secret},inf\nBo,2.5\n",
    ]
    for body in bodies:
        file = tmp_path / "a.csv"
        file.write_text(body)
        with pytest.raises(InputError) as caught:
            read(file)
        assert secret not in str(caught.value)
        assert secret not in json.dumps(caught.value.to_dict())


def test_there_are_more_than_forty_cases():
    assert len(FILES) + len(HIERARCHIES) + len(HOSTILE_NAMES) + len(HOSTILE_VALUES) > 40


def test_a_lone_cell_far_away_does_not_fill_the_memory(tmp_path):
    # In a process of its own: the reader of workbooks ends it when memory runs out.
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, 2], [3, 4]):
        book.active.append(row)
    book.active.cell(1_048_576, 16_384, 5)
    book.save(tmp_path / "far.xlsx")
    code = (
        "import sys, discreet as dc\n"
        "try: dc.read(sys.argv[1])\n"
        "except dc.InputError as error: print(error.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "far.xlsx")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == "too-large", done.stderr[-500:]


def test_whole_numbers_of_more_than_64_bits_in_a_frame():
    with pytest.raises(dc.InputError) as caught:
        dc.read(pd.DataFrame({"age": [10**30] * 3}))
    assert caught.value.code == "number-too-large"


def test_infinite_keys_lie_in_no_interval():
    frame = pd.DataFrame({"age": [1.0] * 8 + [float("inf")], "ill": list("ababababa")})
    people = dc.read(frame, roles={"age": "quasi", "ill": "confidential"})
    with pytest.raises(dc.InputError) as caught:
        dc.anonymize(people, dc.KAnonymity(3), method=dc.Mondrian())
    assert caught.value.code == "not-finite"
