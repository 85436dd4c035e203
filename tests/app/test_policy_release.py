"""From a policy over a CSV file to releases and their record, by the commands people type."""

from __future__ import annotations

import hashlib
import json

import pytest
from typer.testing import CliRunner

from discreet.app.cli.main import build
from discreet.data.keys import write_key_file
from discreet.errors import InputError

POLICY = """\
data:
  source: people.csv
  unit: id
  roles: {id: identifier, region: quasi, age: quasi, sector: other, salary: confidential}
  hierarchies:
    region: {file: region.hrc, total: Land}
    age: {widths: [10, 20]}
    sector: {rare: 2}
releases:
  - name: salaries
    kind: table
    by: [sector, region]
    measure: salary
    rules: [{minimum-frequency: 3}, {p-percent: {p: 10}}]
  - name: records
    kind: anonymize
    models: [{k-anonymity: 2}]
    quasi: [region, age]
"""


@pytest.fixture
def folder(tmp_path):
    lines = ["id,region,age,sector,salary"]
    for n in range(60):
        sector = ["IT", "Fin", "Agr"][n % 7 % 3]
        lines.append(f"{n},0{1 + n % 4},{20 + n % 40},{sector},{1000 + (n * 7919) % 5000}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "region.hrc").write_text("North\n@01\n@02\nSouth\n@03\n@04\n")
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def run(*arguments: object, code: int = 0):
    done = CliRunner().invoke(build(), [str(a) for a in arguments], catch_exceptions=True)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done


def test_check_releases_nothing(folder):
    done = json.loads(run("check", folder / "policy.yaml", "--json").stdout)
    assert [item["name"] for item in done["done"]] == ["salaries", "records"]
    assert {item["verdict"] for item in done["done"]} == {"can be done"}
    assert {path.name for path in folder.iterdir()} == {"people.csv", "region.hrc", "policy.yaml"}


def test_release_writes_everything_and_its_record(folder):
    out = folder / "out"
    done = json.loads(run("release", folder / "policy.yaml", "-o", out, "--json").stdout)
    record = json.loads((out / "record.json").read_text())
    assert record == done
    assert (out / "policy.yaml").read_text() == POLICY
    read = {item["file"]: item["fingerprint"] for item in record["inputs"]}
    assert set(read) == {"people.csv", "region.hrc"}
    plain = hashlib.sha256((folder / "people.csv").read_bytes()).hexdigest()
    assert plain not in json.dumps(record)
    for name, kind in (("salaries", "table"), ("records", "anonymize")):
        assert (out / name / "evidence.json").exists()
        assert next(d for d in record["done"] if d["name"] == name)["kind"] == kind
    cells = (out / "salaries" / "cells.csv").read_text()
    assert "Land" in cells
    assert "North" in cells


def test_the_release_folder_is_enough_to_do_it_again(folder):
    first, second = folder / "out", folder / "again"
    key = write_key_file(folder / "fingerprints.key")
    # Which cells are withheld beside the sensitive ones is drawn, or decided by a key.
    write_key_file(folder / "ties.key")
    keyed = POLICY.replace("measure: salary\n", "measure: salary\n    key: ties.key\n")
    (folder / "policy.yaml").write_text(keyed)
    run("release", folder / "policy.yaml", "-o", first, "--fingerprint-key", key)
    place = json.loads((first / "record.json").read_text())["folder"]
    run("release", first / "policy.yaml", "--folder", place, "-o", second, "--fingerprint-key", key)
    for name in ("salaries/cells.csv",):
        assert (second / name).read_bytes() == (first / name).read_bytes()
    one, two = (json.loads((f / "record.json").read_text()) for f in (first, second))
    assert one["inputs"] == two["inputs"]
    assert one["fingerprint"] == two["fingerprint"]


def test_one_release_of_several(folder):
    run("release", folder / "policy.yaml", "-o", folder / "out", "--only", "salaries")
    assert not (folder / "out" / "records").exists()
    with pytest.raises(InputError) as caught:
        run("release", folder / "policy.yaml", "-o", folder / "none", "--only", "salary")
    assert caught.value.code == "unknown-release"
    assert "salaries" in str(caught.value.hint)
    assert not (folder / "none").exists()


def test_releases_without_a_memory_are_judged_one_by_one_and_that_is_told(folder):
    """Four tables of one policy, each safe, told a count together, and nothing was said."""
    told = "salaries, records: each is judged by itself"
    for command in (["check"], ["release", "-o", folder / "out"]):
        record = json.loads(run(command[0], folder / "policy.yaml", *command[1:], "--json").stdout)
        assert [text for text in record["cautions"] if text.startswith(told)]
    with_memory = "ledger: memory.db\n" + POLICY
    (folder / "policy.yaml").write_text(with_memory)
    assert json.loads(run("check", folder / "policy.yaml", "--json").stdout)["cautions"] == []


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("measure: salary", "measure: sallary", "unknown-column"),
        ("file: region.hrc", "file: nowhere.hrc", "no-file"),
        ("source: people.csv", "source: nobody.csv", "no-file"),
        ("quasi: [region, age]", "quasi: [region, ages]", "unknown-column"),
        ("k-anonymity: 2", "k-anonymity: 2000", None),
    ],
)
def test_when_one_release_fails_nothing_is_written(folder, old, new, code):
    (folder / "policy.yaml").write_text(POLICY.replace(old, new))
    with pytest.raises(Exception) as caught:  # noqa: PT011  # two branches of our errors
        run("release", folder / "policy.yaml", "-o", folder / "out")
    assert code is None or caught.value.code == code
    assert not (folder / "out").exists()
    assert {p.name for p in folder.iterdir()} == {"people.csv", "region.hrc", "policy.yaml"}


def test_every_mistake_is_shown_with_line_and_column(folder):
    text = POLICY.replace("p-percent", "p-precent").replace("k-anonymity: 2", "k-anonymity: 0")
    text = text.replace("measure:", "mesure:").replace("quasi: [region, age]", "quasi: 7")
    (folder / "policy.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        run("check", folder / "policy.yaml")
    assert caught.value.code == "policy-invalid"
    found = {(m["line"], m["column"]): m["message"] for m in caught.value.facts["positions"]}
    assert "write 'measure'" in found[13, 5]
    assert any(line == 14 and "p-percent" in said for (line, _), said in found.items())
    assert any(line == 17 and "at least" in said for (line, _), said in found.items())
    assert any(line == 18 for line, _ in found)


def test_the_record_holds_no_hash_of_a_password(folder):
    served = POLICY + "server:\n  users:\n    ana: {roles: [analyst], password: $argon2id$secret}\n"
    (folder / "policy.yaml").write_text(served)
    run("release", folder / "policy.yaml", "-o", folder / "out")
    assert (folder / "out" / "policy.yaml").read_text() == POLICY
