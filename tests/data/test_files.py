"""Files: how a CSV file is written is found, whatever it is; and other formats are read."""

import csv
import io
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.data.files import CsvFormat, file_format, read_arrow, read_rows, sniff, write_utf8
from discreet.errors import DiscreetError, InputError

DATA = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[2] / "../shared/data"))
needs_data = pytest.mark.skipif(not DATA.exists(), reason=f"no public data in {DATA}")


def write(folder, content, encoding="utf-8", name="a.csv"):
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return file


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", ", "])
def test_encodings_and_delimiters(tmp_path, encoding, delimiter):
    price = "€uro" if encoding != "latin-1" else "Møre"
    rows = [["name", "age", "town"], ["Ágnes", "31", "Győr"[:2] + "r"], [price, "47", "Århus"]]
    text = "\n".join(delimiter.join(row) for row in rows) + "\n"
    found = sniff(write(tmp_path, text, encoding))
    assert found.delimiter == delimiter
    assert found.encoding == encoding
    assert found.names == ("name", "age", "town")
    assert found.types == ("text", "integer", "text")
    table = read_arrow(tmp_path / "a.csv")
    assert table["name"].to_pylist() == ["Ágnes", price]


def test_decimal_commas(tmp_path):
    found = sniff(write(tmp_path, "a;b\n1,5;x\n2;y\n-3,25;z\n"))
    assert (found.decimal, found.types) == (",", ("number", "text"))
    assert read_arrow(tmp_path / "a.csv")["a"].to_pylist() == [1.5, 2.0, -3.25]
    found = sniff(write(tmp_path, 'a,b\n"1,5",x\n"2,5",y\n'))
    assert (found.decimal, found.delimiter) == (",", ",")


def test_quoted_text_over_lines(tmp_path):
    file = write(tmp_path, 'id,note\n1,"first\nsecond, with ""quotes"""\n2,plain\n')
    assert sniff(file).types == ("integer", "text")
    assert read_arrow(file)["note"].to_pylist() == ['first\nsecond, with "quotes"', "plain"]
    assert [line for line, _ in read_rows(file)] == [1, 2, 4]


def test_no_header(tmp_path):
    found = sniff(write(tmp_path, "39,State-gov\n50,Private\n"))
    assert (found.header, found.names) == (False, ("column_1", "column_2"))
    assert sniff(tmp_path / "a.csv", header=True).names == ("39", "State-gov")
    assert sniff(write(tmp_path, "a,b\nx,y\n"), header=False).names == ("column_1", "column_2")


def test_missing_tokens_and_leading_zeros(tmp_path):
    found = sniff(write(tmp_path, "zip,age,job\n08001,NA,?\n43002,31,x\n43003,,y\n"))
    assert found.types == ("text", "integer", "text")
    assert found.na == ("", "?", "NA")
    table = read_arrow(tmp_path / "a.csv")
    assert table["zip"].to_pylist() == ["08001", "43002", "43003"]
    assert table["age"].to_pylist() == [None, 31, None]
    assert sniff(tmp_path / "a.csv", na=()).types == ("text", "text", "text")


def test_dates_booleans_and_numbers(tmp_path):
    text = "d,t,b,x\n2020-02-29,2020-01-01T10:00:00,true,1e3\n2021-12-31,2020-01-02 11:30:00,false,-.5\n"
    assert sniff(write(tmp_path, text)).types == ("date", "datetime", "boolean", "number")
    table = read_arrow(tmp_path / "a.csv")
    assert table.schema.types == [pa.date32(), pa.timestamp("us"), pa.bool_(), pa.float64()]


def test_one_column(tmp_path):
    found = sniff(write(tmp_path, "age\n1\n2\n"))
    assert (found.names, found.types) == (("age",), ("integer",))


def test_large_files_are_sampled_not_read(tmp_path):
    """The sample does not reach a lone odd value; a thorough look does."""
    lines = [f"{i},{i % 7}" for i in range(200_000)]
    lines[100_123] = "100123,2.5"
    file = write(tmp_path, "id,x\n" + "\n".join(lines) + "\n")
    assert sniff(file).types == ("integer", "integer")
    assert sniff(file, thorough=True).types == ("integer", "number")
    lines[100_123] = "100123"
    file = write(tmp_path, "id,x\n" + "\n".join(lines) + "\n")
    sniff(file)
    with pytest.raises(InputError) as caught:
        sniff(file, thorough=True)
    assert (caught.value.code, caught.value.line) == ("ragged-row", 100_125)
    lines[100_123] = "100123,\0"
    file = write(tmp_path, "id,x\n" + "\n".join(lines) + "\n")
    with pytest.raises(InputError) as caught:
        sniff(file, thorough=True)
    assert (caught.value.code, caught.value.line) == ("nul-byte", 100_125)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_a_format_or_an_input_error(tmp_path_factory, content):
    file = write(tmp_path_factory.mktemp("f"), content)
    try:
        found = sniff(file)
    except DiscreetError as error:
        outcome: object = error
    else:
        outcome = found
    if isinstance(outcome, CsvFormat):
        assert len(outcome.names) == len(outcome.types) > 0
        assert read_arrow(file).num_columns == len(outcome.names)
    else:
        assert isinstance(outcome, InputError)
        assert outcome.file == str(file)


words = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufeff"),
    max_size=8,
)


@settings(max_examples=80, deadline=None)
@given(
    st.integers(2, 4).flatmap(
        lambda width: st.lists(
            st.lists(words, min_size=width, max_size=width), min_size=1, max_size=8
        )
    ),
    st.sampled_from(",;\t|"),
)
def test_what_a_csv_writer_writes_is_read_back(tmp_path_factory, rows, delimiter):
    """Given the delimiter, any text survives quoting, whatever it holds."""
    names = [f"c{i}" for i in range(len(rows[0]))]
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([names, *rows])
    file = write(tmp_path_factory.mktemp("f"), stream.getvalue())
    found = sniff(file, delimiter=delimiter, header=True, na=(), encoding="utf-8", decimal=".")
    assert found.names == tuple(names)
    assert [fields for _, fields in read_rows(file, delimiter=delimiter)][1:] == rows


@needs_data
def test_public_files():
    found = sniff(DATA / "adult/adult.data")
    assert (found.delimiter, found.header, found.na) == (", ", False, ("", "?"))
    assert found.types.count("integer") == 6
    assert len(found.names) == 15
    table = read_arrow(DATA / "adult/adult.data")
    assert table.num_rows == 32_561
    assert table["column_2"].null_count == 1836
    assert sniff(DATA / "adult/adult.csv").delimiter == ";"
    assert set(sniff(DATA / "casc/census.csv").types) == {"integer"}


def test_other_formats(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat", reason="needs the extra 'files'")
    frame = pd.DataFrame({"age": [31.0, 40.0, None], "job": ["x", "", "ż"], "pay": [1.5, 2.0, 3.0]})
    pyreadstat.write_sav(frame, str(tmp_path / "a.sav"))
    pyreadstat.write_dta(frame, str(tmp_path / "a.dta"))
    pyreadstat.write_xport(frame.assign(job=["x", "", "z"]), str(tmp_path / "a.xpt"))
    for suffix in ("sav", "dta", "xpt"):
        table = read_arrow(tmp_path / f"a.{suffix}")
        assert table["age"].to_pylist() == [31, 40, None]
        assert table["job"].to_pylist()[:2] == ["x", None]
        assert table["pay"].to_pylist() == [1.5, 2.0, 3.0]


def test_arrow_and_parquet(tmp_path):
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "a.feather")
    with pa.ipc.new_stream(tmp_path / "a.ipc", table.schema) as writer:
        writer.write_table(table)
    for suffix in ("parquet", "feather", "ipc"):
        assert read_arrow(tmp_path / f"a.{suffix}").equals(table)


def test_formats_by_suffix():
    assert file_format("A.TSV") == "csv"
    assert file_format("a.bin", "parquet") == "parquet"
    for arguments in (("a.xyz",), ("a.csv", "exel")):
        with pytest.raises(InputError) as caught:
            file_format(*arguments)
        assert caught.value.code == "unknown-format"


def test_copy_into_utf8(tmp_path):
    source = write(tmp_path, "å" * 700_000 + "\n€\n", "utf-16")
    write_utf8(source, tmp_path / "b.csv", "utf-16")
    assert (tmp_path / "b.csv").read_text(encoding="utf-8") == "å" * 700_000 + "\n€\n"
    bad = write(tmp_path, b"a\nb\n\xff\n")
    with pytest.raises(InputError) as caught:
        write_utf8(bad, tmp_path / "c.csv", "utf-8")
    assert (caught.value.code, caught.value.line) == ("wrong-encoding", 3)
