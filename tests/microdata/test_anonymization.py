"""The release, the job and the commands; one result on every engine."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli.main import build
from tests.microdata.methods.test_methods import AGE, REGION, dataset, people


def test_a_release_is_written_sorted_with_its_evidence(tmp_path):
    frame = people(100)
    safe = dc.anonymize(dataset(frame, name="people"), [dc.KAnonymity(5), dc.LDiversity("ill", 2)])
    safe.write(tmp_path / "out")
    written = pd.read_csv(tmp_path / "out" / "people.csv", keep_default_na=False)
    assert list(written.columns) == ["age", "region", "ill", "other"]
    assert written.equals(written.sort_values(list(written.columns), ignore_index=True))
    evidence = json.loads((tmp_path / "out" / "evidence.json").read_text())
    assert evidence["settings"]["levels"] == safe.levels
    assert evidence["verdict"].startswith("safe under: every class has at least 5 people")
    assert all(check["holds"] for check in evidence["risk"]["checks"])
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Levels of generalisation" in page
    assert page.count("<svg") == 2
    assert "person 1" not in page + json.dumps(evidence)


def test_risk_and_utility_take_the_release():
    frame = people(200)
    data = dataset(frame)
    safe = dc.anonymize(data, dc.KAnonymity(5), method=dc.Generalization(suppression=0.1))
    assert dc.risk(data, safe)["re-identification"].facts["smallest class"] >= 5


def test_the_job_runs_from_plain_data():
    from discreet.data.job import Job
    from discreet.registry import build as make

    job = make(
        Job,
        {
            "name": "anonymize",
            "models": [{"k-anonymity": 4}, {"l-diversity": {"column": "ill", "l": 2}}],
            "method": {"generalization": {"suppression": 0.1, "highest": {"region": 1}}},
        },
    )
    job.check(dataset(people()))
    safe = job.run(dataset(people()))
    assert safe.levels["region"] <= 1
    assert safe.safe


@pytest.fixture
def files(tmp_path):
    people(100).to_csv(tmp_path / "people.csv", index=False)
    AGE.to_arx(tmp_path / "age.csv")
    REGION.to_arx(tmp_path / "region.csv")
    return tmp_path


def arguments(files, *more):
    roles = {"name": "identifier", "age": "quasi", "region": "quasi", "ill": "confidential"}
    given = [word for c, r in roles.items() for word in ("--role", f"{c}={r}")]
    trees = [word for c in ("age", "region") for word in ("--hierarchy", f"{c}={files / c}.csv")]
    return [
        str(files / "people.csv"),
        *given,
        "--role",
        "other=other",
        "--vouch",
        "other",
        *trees,
        *more,
    ]


def test_the_commands(files):
    run = CliRunner().invoke
    out = files / "out"
    result = run(
        build(),
        [
            "microdata",
            "anonymize",
            *arguments(files, "--model", "k-anonymity=4"),
            *("--method", "generalization suppression=0.1", "-o", str(out)),
        ],
    )
    assert result.exit_code == 0, result.output
    assert "safe under" in result.output
    released = str(out / "people.csv")
    check = ["microdata", "check", released, "--role", "age=quasi", "--role", "region=quasi"]
    result = run(build(), [*check, "--model", "k-anonymity=4", "--json"])
    assert json.loads(result.output)[0]["holds"] is True


@pytest.mark.parametrize("text", ["k-anonimity=5", "k-anonymity=0"])
def test_the_command_explains_a_misspelt_model(files, text):
    result = CliRunner().invoke(
        build(), ["microdata", "anonymize", *arguments(files, "--model", text)]
    )
    assert isinstance(result.exception, dc.InputError)


# -- engines ---------------------------------------------------------------------------------------
def facts(safe):
    rows = safe.dataset.arrow().to_pylist()
    return safe.levels, round(safe.score, 12), safe.suppressed, sorted(map(str, rows))


def on_engine(engine, method, models):
    frame = people(300, seed=9, missing=True)
    data = dataset(frame, engine=engine, name="people")
    return dc.anonymize(data, models, method=method)


ENGINE_CASES = {
    "generalization": (
        dc.Generalization(suppression=0.05),
        [dc.KAnonymity(4), dc.TCloseness("ill", 0.3)],
    ),
    "starred": (
        dc.Generalization(suppression=0.1, keep=True, highest={"age": 2, "region": 1}),
        [dc.KAnonymity(4)],
    ),
    "mondrian": (dc.Mondrian(), [dc.KAnonymity(4), dc.LDiversity("ill", 2)]),
    "local-suppression": (dc.LocalSuppression(), [dc.KAnonymity(3)]),
}


@pytest.mark.parametrize("case", ENGINE_CASES)
def test_every_engine_gives_what_duckdb_gives(engine, case):
    method, models = ENGINE_CASES[case]
    assert facts(on_engine(engine, method, models)) == facts(on_engine(None, method, models))


def test_a_parquet_file_is_never_numbered_beyond_the_limit(tmp_path):
    """Large files go through joins alone; the result is the same."""
    frame = people(400, seed=2)
    frame.to_parquet(tmp_path / "people.parquet")
    small = dc.anonymize(dataset(str(tmp_path / "people.parquet")), dc.KAnonymity(5))
    again = dataset(str(tmp_path / "people.parquet"))
    large = dc.anonymize(again, dc.KAnonymity(5), numbered_up_to=10)
    assert "__row" not in large.dataset.relation.columns
    assert facts(small) == facts(large)
    assert np.isfinite(large.score)
