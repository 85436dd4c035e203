"""Texts that a spreadsheet would run are named in the evidence of every release."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli.main import build
from discreet.data.formulas import released_formulas, stated_cautions

SIZE = 40


def people(**columns):
    source = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "region": source.choice(["=cmd|' /C calc'!A0", "south"], SIZE),
            "age": source.integers(20, 40, SIZE),
            "pay": source.permutation(SIZE) * 10 - 100,
        }
    ).assign(**columns)
    roles = {"region": "quasi", "age": "quasi", "pay": "confidential"}
    return dc.read(frame, roles=roles, name="people")


RELEASES = {
    "anonymised": lambda data: dc.anonymize(data, dc.KAnonymity(2), method=dc.Mondrian()),
    "masked": lambda data: dc.mask(data, dc.Microaggregation("age", k=3)),
    "synthetic": lambda data: dc.synthesize(data, dc.CART(min_leaf=5)),
    "table": lambda data: dc.tabulate(data, by=["region"]).protect(
        rules=[dc.MinimumFrequency(3)], method=dc.Suppression()
    ),
}


@pytest.mark.parametrize("name", RELEASES)
def test_every_release_says_which_columns_hold_formulas(name, tmp_path):
    RELEASES[name](people()).write(tmp_path / "out")
    told = stated_cautions(tmp_path / "out")
    assert any("region: some texts begin with =" in caution for caution in told)
    assert "calc" not in " ".join(told), "a caution names columns and no value"
    assert dc.verify(tmp_path / "out").holds


def test_files_that_no_spreadsheet_runs_need_no_caution(tmp_path):
    dc.permute(people(), sensitive="pay", k=3).write(tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*.csv"))
    assert not stated_cautions(tmp_path / "out")


def test_numbers_and_lone_signs_are_no_formulas(tmp_path):
    data = people(region=np.where(np.arange(SIZE) % 2, "-", "+"))
    dc.mask(data, dc.Microaggregation("age", k=3)).write(tmp_path / "out")
    assert "cautions" not in json.loads((tmp_path / "out/evidence.json").read_text())


def test_commands_show_the_caution(tmp_path):
    data = people()
    data.frame.to_csv(tmp_path / "people.csv", index=False)
    typed = ["microdata", "mask", str(tmp_path / "people.csv"), "-m", "microaggregation=age k=3"]
    typed += ["--role", "region=quasi", "--role", "age=quasi", "--role", "pay=confidential"]
    typed += ["-o", str(tmp_path / "out")]
    found = CliRunner().invoke(build(typed), typed)
    assert found.exit_code == 0, found.output
    assert "may run them as formulas" in " ".join(found.output.split())


@pytest.mark.parametrize("text", ['a\n"=1+1"\n', "a,b\n1,@SUM(A1)\n", "a\n-x\n", 'a\n"x\ny",=z\n'])
def test_formulas_are_found_wherever_they_stand(text, tmp_path):
    (tmp_path / "x.csv").write_text(text)
    assert bool(released_formulas(tmp_path)) == ("=z" not in text)


def test_a_field_across_two_pieces_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.data.formulas._PIECE", 4)
    (tmp_path / "x.csv").write_text("abc\n12\n=1\n")
    assert released_formulas(tmp_path)
