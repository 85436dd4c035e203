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
