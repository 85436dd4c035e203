"""`discreet hierarchy`: made from a column, checked against a file, drawn."""

import json

import pytest
from typer.testing import CliRunner

from discreet.app.cli.main import build
from discreet.errors import InputError


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "people.csv"
    codes = ["01067", "01069", "80331"]
    path.write_text("zip,age\n" + "".join(f"{codes[n % 3]},{n}\n" for n in range(60)))
    return path


def run(*words):
    result = CliRunner().invoke(build([str(word) for word in words]), [str(word) for word in words])
    if result.exception is not None and isinstance(result.exception, InputError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_made_checked_and_drawn(file, tmp_path):
    tree = tmp_path / "zip.csv"
    told = run("hierarchy", "new", file, "zip", "--as", "prefixes=3,2", "-o", tree)
    assert "010*" in told
    assert tree.read_text().startswith("01067;010*;01*;Total")
    assert "levels" in run("hierarchy", "check", tree, "--file", file, "--column", "zip")
    drawn = run("hierarchy", "show", tree, "--lines", "3")
    assert "more lines of 8" in drawn
    assert json.loads(run("hierarchy", "show", tree, "--json"))[0] == {
        "child": "Total",
        "parent": "",
    }


def test_a_value_that_is_missing_is_told(file, tmp_path):
    tree = tmp_path / "zip.csv"
    tree.write_text("01067;01*;*\n01069;01*;*\n")
    with pytest.raises(InputError) as caught:
        run("hierarchy", "check", tree, "--file", file, "--column", "zip")
    assert caught.value.code == "hierarchy-incomplete"
    assert "1 of 3 values" in caught.value.message
    assert "80331" not in str(caught.value)


def test_suggested_where_nothing_is_said(file):
    assert "0-4" in run("hierarchy", "new", file, "age")


def test_unknown_columns_are_told(file):
    with pytest.raises(InputError) as caught:
        run("hierarchy", "new", file, "zap")
    assert caught.value.code == "unknown-column"
