"""The jobs synthesize and judge: from the command line, with domains, ledger and pages."""

import json

import numpy as np
import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from discreet.app.cli.main import build


def discreet(*arguments):
    return CliRunner().invoke(build(), [str(a) for a in arguments])


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(1)
    sex = rng.choice(["f", "m"], 400)
    frame = pd.DataFrame(
        {
            "name": [f"Ms Xanthippe {n}" for n in range(400)],
            "sex": sex,
            "job": np.where(sex == "f", "nurse", "pilot"),
            "age": rng.integers(18, 90, 400),
        }
    )
    place = tmp_path / "people.csv"
    frame.to_csv(place, index=False)
    return place


def test_files_evidence_and_page(people, tmp_path):
    out = tmp_path / "out"
    done = discreet(
        "microdata", "synthesize", people, "-m", "cart min_leaf=20", "--role", "name=identifier",
        "--rest", "quasi", "--sets", 2, "--records", 50, "-o", out,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    names = sorted(path.name for path in out.iterdir())
    assert names == ["evidence.json", "people-1.csv", "people-2.csv", "report.html"]
    assert len(pd.read_csv(out / "people-1.csv")) == 50
    evidence = json.loads((out / "evidence.json").read_text())
    assert evidence["settings"]["inference"] == "simple"
    assert evidence["risk"]["membership"]["AUC"] > 0
    page = (out / "report.html").read_text()
    assert "Telling who is in the file" in page
    assert "Columns drawn independently of each other" in page
    lost = evidence["loss"]
    assert lost["marginals of independent columns"] > 0.1
    assert "<svg" in page
    assert "Xanthippe" not in page + (out / "people-1.csv").read_text() + str(evidence)


def test_private_records_by_a_policy(people, tmp_path):
    policy = {
        "data": {
            "source": "people.csv",
            "roles": {"name": "identifier"},
            "rest": "quasi",
            "domains": {"sex": ["f", "m"], "job": ["nurse", "pilot"]},
            "bounds": {"age": [0, 100]},
        },
        "releases": [
            {
                "name": "private",
                "kind": "synthesize",
                "method": {"mst": {"epsilon": 1.0, "delta": 1e-6}},
                "ledger": "ledger.db",
            }
        ],
    }
    place = tmp_path / "policy.yaml"
    place.write_text(yaml.safe_dump(policy))
    granted = discreet(
        "ledger", "grant", tmp_path / "ledger.db", "people", "--epsilon", "1", "--delta", "1e-6",
        "--accountant", "zcdp",
    )  # fmt: skip
    assert granted.exit_code == 0, granted.output
    done = discreet("release", place, "-o", tmp_path / "out")
    assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    (found,) = (tmp_path / "out").rglob("evidence.json")
    stated = json.loads(found.read_text())
    assert stated["risk"]["privacy"]["epsilon"] == 1.0
    again = discreet("release", place, "-o", tmp_path / "out2")
    assert again.exit_code != 0  # the budget is spent
    assert not list((tmp_path / "out2").rglob("*.csv"))


def test_a_missing_domain_is_told(people):
    done = discreet(
        "microdata", "synthesize", people, "-m", "aim epsilon=1", "--role", "name=identifier",
        "--rest", "quasi",
    )  # fmt: skip
    assert done.exit_code != 0
    assert "declared domain" in str(done.exception)


def test_domains_are_typed_or_stand_in_a_file(people, tmp_path):
    known = tmp_path / "domains.yaml"
    known.write_text("job: [nurse, pilot]\nage: {cuts: [0, 30, 60, 100]}\n")
    common = ["microdata", "synthesize", people, "-m", "mst epsilon=1", "--rest", "quasi"]
    common += ["--role", "name=identifier", "--domains", "sex=f,m"]
    for place, more in (
        ("one", ["--domains", f"@{known}"]),
        ("two", ["--domains", "job=nurse,pilot", "--bounds", "age=0,100"]),
    ):
        done = discreet(*common, *more, "-o", tmp_path / place)
        assert done.exit_code == 0, done.output
        assert set(pd.read_csv(tmp_path / place / "people.csv").sex) <= {"f", "m"}
    (tmp_path / "list.yaml").write_text("- 3")
    for wrong in (["--domains", f"@{tmp_path}/list.yaml"], ["--bounds", "age=low,high"]):
        assert discreet(*common, *wrong).exit_code != 0


def test_a_file_is_judged(people, tmp_path):
    used, others = tmp_path / "used.csv", tmp_path / "others.csv"
    rows = pd.read_csv(people)
    rows.iloc[:200].to_csv(used, index=False)
    rows.iloc[200:].to_csv(others, index=False)
    command = ("microdata", "judge", str(used), "--original", str(used), "--holdout")
    done = discreet(*command, str(others))
    assert done.exit_code == 0, done.output
    assert "membership" in done.output
    assert "independent columns" in done.output
    # People who are in the file are no holdout.
    refused = discreet(*command, str(used))
    assert refused.exit_code != 0
    assert "200 of the 200 records" in str(refused.exception)
