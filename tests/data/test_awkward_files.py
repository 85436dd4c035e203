"""Files as people have them are read rightly, or refused with a hint that works when followed."""

from __future__ import annotations

import ast
import contextlib
import re

import pandas
import pytest
from tests.data.awkward_files import CORPUS, workbook

from discreet.data.dataset import read
from discreet.errors import InputError

#: What a hint says to write: name=value, as in Python.
_SAID = re.compile(r"(\w+)=('[^']*'|True|False|\d+|\{[^}]*\})")
_PANDAS = re.compile(r"pandas\..*\)")
_SUFFIX = re.compile(r"name with (\.\w+)")


def follow(path, hint, options):
    """Read again with what the hint says to write, or under the name that it says."""
    suffix = _SUFFIX.search(hint)
    if suffix:
        path = path.rename(path.with_name(path.name + suffix.group(1)))
    said = {name: ast.literal_eval(value) for name, value in _SAID.findall(hint)}
    if made := _PANDAS.search(hint):
        with contextlib.chdir(path.parent):
            eval(made.group(), {"pandas": pandas})
        return read(path.with_suffix(".csv"), **options)
    assert said or suffix, f"the hint says nothing to write: {hint}"
    return read(path, **{**options, **said})


def opened(path, case):
    """Return what is read, at once or after the hint is followed."""
    if case.refused is None:
        found = read(path, **case.options)
        asked = () if found.reading is None else found.reading.questions
        assert len(asked) == (case.asks is not None)
        if case.asks is None:
            return found
        assert case.asks in asked[0]
        return read(path, **case.options, **case.answer)
    with pytest.raises(InputError) as caught:
        read(path, **case.options)
    assert caught.value.code == case.refused
    return follow(path, caught.value.hint, case.options)


@pytest.mark.parametrize("name", CORPUS)
def test_awkward_files_are_read_rightly(name, tmp_path):
    case = CORPUS[name]
    found = opened(case.make(tmp_path), case)
    assert found.arrow().to_pydict() == case.expected
    told = str(found.reading)
    for word in case.shown:
        assert word in told


def test_a_text_that_the_sample_does_not_show_is_asked_about_with_its_line(tmp_path):
    file, words = tmp_path / "long.csv", "some words " * 10
    lines = [f"{n};{n % 97};{words}" for n in range(12_000)]
    lines[8_123] = "8123;n.b.;some words"
    file.write_text("id;pay;words\n" + "\n".join(lines) + "\n")
    (asked,) = read(file).reading.questions
    assert asked.startswith("pay: line 8,125 holds a text")
    assert read(file, na=["n.b."]).reading.questions == ()


def test_the_total_of_a_long_file_is_asked_about(tmp_path):
    file, words = tmp_path / "long.csv", "some words " * 10
    lines = [f"firm {n};{n % 97};{words}" for n in range(12_000)]
    file.write_text("id;pay;words\n" + "\n".join([*lines, ";2873521;"]) + "\n")
    (asked,) = read(file).reading.questions
    assert asked.startswith("line 12,002: a total")
    assert len(read(file, footer=1)) == 12_000


def test_records_are_no_totals():
    from discreet.data.totals import find_totals

    # Codes and small counts, a record without a name in the middle, a first value that is missing.
    rows = [(n + 2, ["a", float(n % 3), float(n * n % 17)]) for n in range(40)]
    rows[7] = (9, [None, 2.0, 3.0])
    assert find_totals(rows) == (None, ())
    assert find_totals([*rows[:7], *rows[8:], (50, [None, 1.0, 3.0])]) == (50, ())


def test_questions_survive_a_copy():
    import copy
    import pickle

    from discreet.data.reading import Question

    asked = Question("seen", "day first?", (("dates", "day"),))
    for again in (copy.deepcopy(asked), pickle.loads(pickle.dumps(asked))):
        assert (again, again.about, again.answers) == (asked, "seen", asked.answers)


def test_the_corpus_is_large_enough():
    assert len(CORPUS) >= 60


def test_failed_formulas_are_named_and_refused(tmp_path):
    rows = [["a", "n", "m"], ["x", "#REF!", 1], ["y", 2, "#DIV/0!"], ["z", "#N/A", 3]]
    book = workbook({"Cover": [["About"]], "A & B": rows})(tmp_path)
    with pytest.raises(InputError, match=r"sheet 'A & B' has 2 cells .* B2, C3") as caught:
        read(book)
    assert caught.value.code == "error-cells"


def test_one_mark_cannot_be_that_of_thousands_and_of_decimals(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("a;b\n12.5;x\n")
    with pytest.raises(InputError, match="before thousands and before decimals"):
        read(file, decimal=".", thousands=".")


@pytest.mark.slow
def test_ten_million_rows_with_dates_and_marks_as_people_write_them(tmp_path):
    import duckdb

    file = tmp_path / "large.csv"
    duckdb.sql(
        "COPY (SELECT i AS id, strftime(DATE '2000-01-01' + CAST(i % 9000 AS INTEGER), '%d/%m/%Y') "
        "AS day, replace(CAST(i / 7.0 AS DECIMAL(18, 2))::VARCHAR, '.', ',') AS pay "
        f"FROM range(10000000) t(i)) TO '{file}' (HEADER, DELIMITER ';')"
    )
    found = read(file)
    assert len(found) == 10_000_000
    assert [str(field.type) for field in found.relation.schema] == [
        "int64",
        "date32[day]",
        "double",
    ]
    assert "dd/mm/yyyy" in str(found.reading)


def labelled(folder, **more):
    import pandas as pd
    import pyreadstat

    rows = pd.DataFrame(
        {"sex": [1.0, 2.0, 1.0], "educ": [3.0, 1.0, 2.0], "age": [30.0, 99.0, 41.0]}
    )
    labels = {
        "sex": {1: "male", 2: "female"},
        "educ": {1: "none", 2: "school", 3: "degree"},
        "age": {99: "refused"},
    }
    path = folder / "s.sav"
    measures = {"educ": "ordinal"}
    pyreadstat.write_sav(rows, path, variable_value_labels=labels, variable_measure=measures)
    return read(path, **more)


def test_labels_of_codes_are_kept_and_make_categories(tmp_path):
    found = labelled(tmp_path)
    assert found.arrow().to_pydict()["educ"] == [3, 1, 2]
    assert found.reading.labels["educ"] == {"1": "none", "2": "school", "3": "degree"}
    # One labelled number among ages does not make them codes.
    assert "age" not in found.reading.labels
    kinds = {column.name: column.type.value for column in found.schema.columns}
    assert kinds == {"sex": "nominal", "educ": "ordinal", "age": "numeric"}
    from discreet.data.describe import describe

    assert "educ: 1 none, 2 school, 3 degree" in str(describe(found))


def test_labels_stand_in_tables_in_the_order_of_their_codes(tmp_path):
    import discreet as dc

    found = labelled(tmp_path, labels=True, roles={"educ": "quasi"})
    cells = dc.tabulate(found, by=["educ"]).to_frame()
    assert list(cells["educ"]) == ["Total", "none", "school", "degree"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_ordered_categories_of_frames_keep_their_order(library):
    import discreet as dc

    sizes = ["small", "medium", "large"]
    if library == "pandas":
        frame = pandas.DataFrame({"size": pandas.Categorical(sizes, sizes, ordered=True)})
    else:
        import polars

        frame = polars.DataFrame({"size": sizes}, schema={"size": polars.Enum(sizes)})
    data = read(frame, roles={"size": "quasi"})
    assert data.schema["size"].type == "ordinal"
    cells = dc.tabulate(data, by=["size"]).to_frame()
    assert list(cells["size"]) == ["Total", *sizes]


def test_metadata_of_argus_are_found_beside_the_file_and_believed(tmp_path):
    from discreet.data.describe import describe
    from discreet.data.suggestion import suggest_hierarchy

    lines = [f"{n // 2:03}A1{n % 3}{n:>4}" for n in range(60)]
    (tmp_path / "m.asc").write_text("\n".join(lines) + "\n")
    (tmp_path / "m.rda").write_text(
        "HH 1 3\n <HOUSE_ID>\nXA 4 3\n <RECODEABLE>\n <IDLEVEL> 1\n <HIERLEVELS> 1 1 1\n"
        "AMOUNT 7 4\n <NUMERIC>\n"
    )
    data = read(tmp_path / "m.asc")
    found = describe(data)
    roles = {column.name: (column.role, column.reason) for column in found.columns}
    assert found.unit == "HH"
    assert roles["HH"] == ("identifier", "the metadata say HOUSE_ID")
    assert roles["XA"] == ("quasi", "the metadata say IDLEVEL")
    assert suggest_hierarchy(data, "XA") == {"prefixes": [2, 1]}
    # A workspace of R beside a text is none.
    (tmp_path / "m.rda").write_bytes(b"\x1f\x8b\x08\x00" + bytes(range(1, 27)) * 20)
    assert read(tmp_path / "m.asc").reading.format == "csv"


def test_a_catalogue_of_labels_for_sas_is_looked_for(tmp_path, monkeypatch):
    """SAS keeps labels in a file of its own; no library here writes one."""
    import types

    import pyreadstat

    from discreet.data.statistical import read_statistical

    none = types.SimpleNamespace(
        variable_value_labels={}, variable_to_label={"sex": "SEXF"}, variable_measure={}
    )
    listed = types.SimpleNamespace(value_labels={"SEXF": {1.0: "male", 2.0: "female"}})
    monkeypatch.setattr(pyreadstat, "read_sas7bdat", lambda *_, **__: ({"sex": [1.0, 2.0]}, none))
    monkeypatch.setattr(pyreadstat, "read_sas7bcat", lambda *_, **__: ({}, listed))
    for name in ("a.sas7bdat", "a.sas7bcat"):
        (tmp_path / name).write_bytes(b"x" * 100)
    rows, reading = read_statistical(tmp_path / "a.sas7bdat", "sas", labels=True)
    assert rows.to_pydict() == {"sex": ["male", "female"]}
    assert "a.sas7bcat" in str(reading)


def test_a_cover_beside_a_table_is_no_table(tmp_path):
    rows = [["a", "n"], ["x", 1], ["y", 2]]
    book = workbook({"Cover": [["Survey"], ["Contact: the office"]], "Data": rows})(tmp_path)
    assert "'Data' (of 2)" in str(read(book).reading)
    more = [*rows, ["z", 3]]
    book = workbook({"One": rows, "Two": more}, name="b.xlsx")(tmp_path)
    with pytest.raises(InputError) as refused:
        read(book)
    assert "sheet='Two'" in refused.value.hint
