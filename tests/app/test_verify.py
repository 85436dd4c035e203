"""`discreet verify`: exit codes, and what it says of promises it cannot check."""

from __future__ import annotations

import json

import pandas as pd
from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli.main import build


def run(*words: str):
    return CliRunner().invoke(build(), ["verify", *words])


def test_verify_judges_a_release_and_fails_for_a_changed_one(tmp_path):
    rows = pd.DataFrame({"town": list("aabb"), "ill": list("xyxy")})
    people = dc.read(rows, roles={"town": "quasi", "ill": "confidential"}, name="people")
    method = dc.LocalSuppression()
    out = dc.anonymize(people, [dc.KAnonymity(2)], method=method).write(tmp_path / "out")
    kept = run(str(out), "--json")
    assert kept.exit_code == 0
    found = json.loads(kept.stdout)["findings"]
    assert {
        "file": "people.csv",
        "promise": "k-anonymity by town",
        "verdict": "kept",
        "found": "",
    } in found
    file = out / "people.csv"
    file.write_text(file.read_text().replace("b", "c", 1))
    broken = run(str(tmp_path))
    assert broken.exit_code == 3
    assert "2 of 3 classes" in broken.stdout


def test_verify_needs_a_release(tmp_path):
    found = run(str(tmp_path))
    assert isinstance(found.exception, dc.InputError)
    assert found.exception.code == "no-release"
