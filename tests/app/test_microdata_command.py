"""`discreet microdata`: the commands do what the library does, and say what is wrong."""

import json

import numpy as np
import pandas as pd
import pytest

from discreet.app.cli.main import main


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "name": [f"p{i}" for i in range(120)],
            "age": rng.integers(18, 90, 120),
            "pay": rng.normal(3000, 400, 120).round(2),
        }
    )
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    return path


ROLES = ["--role", "name=identifier", "--role", "age=quasi", "--role", "pay=confidential"]


@pytest.fixture
def run(monkeypatch):
    """Run the command as a shell would and return its exit code."""

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["discreet", *map(str, arguments)])
        try:
            return main() or 0
        except SystemExit as end:
            return end.code or 0

    return call


def test_mask_writes_a_release_in_the_input_format(run, file, tmp_path, capsys):
    out = tmp_path / "out"
    method = "microaggregation=age k=4"
    assert run("microdata", "mask", file, "-m", method, *ROLES, "-o", out) == 0
    assert "k-anonymity with k = " in capsys.readouterr().out
    assert list(pd.read_csv(out / "people.csv").columns) == ["age", "pay"]


def test_risk_and_utility_print_reports(run, file, capsys):
    assert run("microdata", "risk", file, *ROLES, "--json") == 0
    measures = {f["measure"] for f in json.loads(capsys.readouterr().out)["findings"]}
    assert "record-linkage: distance" in measures
    assert run("microdata", "utility", file, file, *ROLES) == 0
    assert "value-loss" in capsys.readouterr().out


def test_explore_spreads_parameters(run, file, tmp_path, capsys):
    method = "rank-swapping=age,pay p=5|20"
    assert run("microdata", "explore", file, "-m", method, *ROLES, "-o", tmp_path / "map") == 0
    text = capsys.readouterr().out
    assert "rank-swapping p=5" in text
    assert "rank-swapping p=20" in text
    assert (tmp_path / "map" / "map.html").exists()


def test_strengthen_reaches_the_demand(run, file, tmp_path):
    arguments = ["-m", "microaggregation=age k=2", "--below", "0.3"]
    demand = ["--measure", "re-identification"]
    out = tmp_path / "out"
    assert run("microdata", "strengthen", file, *arguments, *demand, *ROLES, "-o", out) == 0
    evidence = json.loads((out / "evidence.json").read_text())
    assert evidence["risk"]["re-identification"] < 0.3


@pytest.mark.parametrize(
    ("method", "code"),
    [
        ("top-coding=agee value=3", "unknown-column"),
        ("top-codingg=age value=3", "unknown-member"),
        ("top-coding age", "malformed-member"),
        ("microaggregation=age k=1", "parameter-range"),
        ("rounding=name", "not-numeric"),
    ],
)
def test_mistakes_end_with_code_two_and_write_nothing(run, file, tmp_path, capsys, method, code):
    out = tmp_path / "out"
    assert run("microdata", "mask", file, "-m", method, *ROLES, "-o", out) == 2
    assert code in capsys.readouterr().err
    assert not out.exists()
