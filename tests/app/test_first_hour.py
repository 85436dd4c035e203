"""The first hour: from a raw file to a document to hand over, with few commands."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import json
import random
import re
import secrets
import shlex
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli.main import build
from discreet.app.policy.run import run_policy
from discreet.app.policy.starting import starting_policy
from discreet.data.source import Source
from discreet.errors import DiscreetError
from tests.data.awkward_files import CORPUS, workbook


def hospital(folder: Path) -> Path:
    """Discharges as a custodian has them: semicolons, decimal commas, dates with the day first."""
    draw = random.Random(1)
    lines = ["patient_id;birth;postcode;sex;icd;cost;note"]
    for number in range(1500):
        born = f"{draw.randint(1, 28):02}/{draw.randint(1, 12):02}/{draw.randint(1930, 2005)}"
        zip_code = draw.choice(["01067", "01069", "80331", "80333", "80335"])
        icd = draw.choice(["I25.1", "I20", "J18.9", "C50", "E11.9"])
        note = f"came on day {number} by ambulance with chest pain"
        cost = f"{draw.randint(500, 9000)},{draw.randint(0, 99):02}"
        lines.append(f"{number};{born};{zip_code};{draw.choice('mf')};{icd};{cost};{note}")
    (folder / "discharges.csv").write_text("\n".join(lines) + "\n", encoding="latin-1")
    return folder / "discharges.csv"


def business(folder: Path) -> Path:
    """A business survey in a workbook, with a title and notes."""
    draw = random.Random(2)
    rows = [["Survey of businesses 2024"], [], ["firm_id", "sector", "region", "size", "turnover"]]
    for number in range(400):
        size = draw.choice(["0-9", "10-49", "50-249", "250+"])
        row = [draw.choice(["IT", "Food", "Steel"]), draw.choice(["north", "south"]), size]
        rows.append([f"F{number:05}", *row, round(draw.lognormvariate(8, 2), 1)])
    return workbook({"Data": [*rows, [], ["Source: the office"]]}, name="survey.xlsx")(folder)


def run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *commands: str, apart: bool = False
) -> tuple[str, float]:
    """Type commands; return what they print, and the minutes that a person needs for all of it.

    `apart` runs each in a process of its own, whose end closes its connections.
    """
    monkeypatch.chdir(folder)
    told, seconds = "", 0.0
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "discreet"
        started = time.monotonic()
        if apart:
            done = subprocess.run(
                [sys.executable, "-m", *words], capture_output=True, text=True, cwd=folder
            )
            code, output = done.returncode, done.stdout + done.stderr
        else:
            result = CliRunner().invoke(build(words[1:]), words[1:])
            code, output = result.exit_code, f"{result.output}{result.exception or ''}"
        seconds += time.monotonic() - started
        assert code == 0, f"{command}: {output}"
        told += output
    read = len(told.split()) / 200
    typed = sum(map(len, commands)) / 200
    return told, read + typed + seconds / 60


def filled_in(policy: Path) -> None:
    """Write what the release is about, as the comments in the policy ask for."""
    text = policy.read_text(encoding="utf-8")
    text = re.sub(r'(?m)^  (\w+): ""$', r'  \1: "as agreed"', text)
    policy.write_text(text, encoding="utf-8")


def test_a_custodian_hands_over_discharges(tmp_path, monkeypatch, capsys):
    hospital(tmp_path)
    start, before = run(
        tmp_path,
        monkeypatch,
        "discreet describe discharges.csv",
        "discreet init discharges.csv -o policy.yaml",
    )
    assert "dd/mm/yyyy" in start
    assert "note" in start.split("column ")[0], "free text comes first"
    assert all(len(line) <= 80 for line in start.splitlines())
    filled_in(tmp_path / "policy.yaml")
    told, after = run(tmp_path, monkeypatch, "discreet release policy.yaml -o out")
    assert "safe under: every class has at least 5 people" in " ".join(told.split())
    released = (tmp_path / "out/records/discharges.csv").read_text(encoding="utf-8")
    assert "ambulance" not in released
    assert "patient_id" not in released
    page = (tmp_path / "out/handover/records.html").read_text(encoding="utf-8")
    for words in ("as agreed", "made coarser", "removed", "Signatures"):
        assert words in page
    assert (tmp_path / "out/handover/records.pdf").read_bytes().startswith(b"%PDF")
    assert before + after <= 10
    with capsys.disabled():
        sys.stdout.write(f" [3 commands, {before + after:.1f} minutes] ")


def test_a_statistician_hands_over_a_table(tmp_path, monkeypatch, capsys):
    business(tmp_path)
    started, before = run(
        tmp_path,
        monkeypatch,
        "discreet describe survey.xlsx",
        "discreet init survey.xlsx --kind table -o policy.yaml",
    )
    filled_in(tmp_path / "policy.yaml")
    told, after = run(tmp_path, monkeypatch, "discreet release policy.yaml -o out")
    assert "safe" in told
    assert "would leave unchanged" not in started, "no value leaves by itself in a table"
    assert (tmp_path / "out/handover/table.pdf").read_bytes().startswith(b"%PDF")
    page = (tmp_path / "out/handover/table.html").read_text(encoding="utf-8")
    assert "cells" in page
    assert "p-percent" in page
    # Columns that are in no cell are not named to who receives the table.
    assert "firm_id" not in page
    assert "all other columns" in page
    assert before + after <= 10
    with capsys.disabled():
        sys.stdout.write(f" [3 commands, {before + after:.1f} minutes] ")


def test_an_engineer_hands_over_from_a_database(tmp_path, monkeypatch, capsys, postgres_database):
    import psycopg

    draw = random.Random(4)
    curator = f"curator_{secrets.token_hex(4)}"  # roles belong to the server, not the database
    with psycopg.connect(postgres_database, autocommit=True) as server:
        server.execute(
            "CREATE TABLE stays (stay_id integer, patient_id integer, birth date, region text, "
            "sex text, diagnosis text, cost numeric(10,2), remark text)"
        )
        with server.cursor().copy("COPY stays FROM STDIN") as copy:
            for number in range(1200):
                born = f"{draw.randint(1940, 2005)}-{draw.randint(1, 12):02}-01"
                region = draw.choice(["north", "south", "east"])
                ill = draw.choice(["flu", "asthma", "angina"])
                row = (number, number // 2, born, region, draw.choice("mf"), ill)
                copy.write_row(
                    (
                        *row,
                        draw.randint(50, 9000) / 100,
                        f"called his son from the ward on day {number}",
                    )
                )
        server.execute(f"CREATE ROLE {curator} LOGIN PASSWORD 'a long secret'")
        server.execute(f"GRANT SELECT ON stays TO {curator}")
    place = postgres_database.partition("@")[2] or postgres_database.partition("://")[2]
    address = f"postgresql://{curator}@{place}"
    monkeypatch.setenv("PGPASSWORD", "a long secret")
    start, before = run(
        tmp_path,
        monkeypatch,
        f"discreet describe {address}#stays",
        f"discreet init {address}#stays -o policy.yaml",
        apart=True,
    )
    assert "remark" in start.split("column ")[0], "free text comes first"
    text = (tmp_path / "policy.yaml").read_text(encoding="utf-8")
    assert "secret" not in text + start
    assert 'unit: "patient_id"' in text
    filled_in(tmp_path / "policy.yaml")
    told, after = run(
        tmp_path,
        monkeypatch,
        f"discreet release policy.yaml --allow {address} --password-from PGPASSWORD -o out",
        "discreet verify out",
        apart=True,
    )
    assert "safe under: every class has at least 5 people" in " ".join(told.split())
    released = (tmp_path / "out/records/stays.csv").read_text(encoding="utf-8")
    assert "called his son" not in released
    assert not {"patient_id", "stay_id"} & set(released.splitlines()[0].split(","))
    page = (tmp_path / "out/handover/records.html").read_text(encoding="utf-8")
    for words in ("as agreed", "Attacks tried", "finds 0 of", "Columns released unchanged"):
        assert words in page
    assert (tmp_path / "out/handover/records.pdf").read_bytes().startswith(b"%PDF")
    assert before + after <= 10
    with capsys.disabled():
        sys.stdout.write(f" [4 commands, {before + after:.1f} minutes] ")


def test_only_one_release_again_keeps_the_documents(tmp_path, monkeypatch):
    hospital(tmp_path)
    (tmp_path / "p.yaml").write_text(
        "data:\n  source: discharges.csv\n  rest: identifier\n  roles: {sex: quasi, icd: quasi}\n"
        "releases:\n"
        "  - {name: a, kind: table, by: [sex], rules: [{minimum-frequency: 3}]}\n"
        "  - {name: b, kind: table, by: [icd], rules: [{minimum-frequency: 3}]}\n"
        "about: {purpose: x, period: 2024, pdf: false}\n"
    )
    run_policy(tmp_path / "p.yaml", tmp_path / "out")
    run_policy(tmp_path / "p.yaml", tmp_path / "out", only=("a",))
    assert {file.name for file in (tmp_path / "out/handover").iterdir()} == {"a.html", "b.html"}


def test_a_document_escapes_what_the_policy_says(tmp_path):
    hospital(tmp_path)
    (tmp_path / "p.yaml").write_text(
        "data:\n  source: discharges.csv\n  rest: identifier\n  roles: {sex: quasi}\n"
        "releases:\n  - {name: a, kind: table, by: [sex], rules: [{minimum-frequency: 3}]}\n"
        "about: {purpose: '<img src=\"file:///etc/passwd\"><script>x</script>'}\n"
    )
    run_policy(tmp_path / "p.yaml", tmp_path / "out")
    page = (tmp_path / "out/handover/a.html").read_text(encoding="utf-8")
    assert "<script>" not in page
    assert "<img" not in page


def test_advice_proposes_and_releases_nothing(tmp_path, monkeypatch):
    hospital(tmp_path)
    told, _ = run(tmp_path, monkeypatch, "discreet advise discharges.csv -o advice --seconds 0")
    assert "1 ways were tried; 11 were not reached" in told
    assert "1. classes of at least 3 people with 2 values" in told
    assert {file.name for file in tmp_path.iterdir()} == {"discharges.csv", "advice"}
    assert "Candidates" in (tmp_path / "advice/advice.html").read_text(encoding="utf-8")
    run(
        tmp_path,
        monkeypatch,
        f"discreet release advice/policy-1.yaml --folder {tmp_path} -o out",
    )
    checks = json.loads((tmp_path / "out/records/evidence.json").read_text())["risk"]["checks"]
    assert all(check["holds"] for check in checks)


def test_advice_on_tables_compares_breakdowns(tmp_path, monkeypatch):
    business(tmp_path)
    told, _ = run(tmp_path, monkeypatch, "discreet advise survey.xlsx --kind table --json")
    advice = json.loads(told)
    assert len(advice["candidates"]) == 3
    setups, losses = ([one[key] for one in advice["candidates"]] for key in ("setup", "loss"))
    assert len({setup.partition(";")[0] for setup in setups}) == 2
    assert any("controlled-tabular-adjustment" in setup for setup in setups)
    assert all("withheld" in loss or "changed" in loss for loss in losses)
    assert all("sensitive" in one["risk"] for one in advice["candidates"])


def test_of_two_candidates_that_come_to_the_same_the_stronger_stands():
    from discreet.app.policy.advice import Candidate, _chosen_records, _chosen_tables

    def tried(setup: str, lost: float, **known: object) -> Candidate:
        words = f"{lost:.0%} lost"
        return Candidate(setup, words, words, lost, lost, policy="", **known)

    def of_records(least: int, different: int, lost: float) -> Candidate:
        name = f"{least}, {different}"
        return tried(name, lost, strength=(least, different), group=(name,), kept=1 - lost)

    done = [of_records(3, 2, 0.3), of_records(5, 2, 0.4), of_records(5, 3, 0.4)]
    assert [one.strength for one in _chosen_records(done)] == [(3, 2), (5, 3)]
    done += [of_records(10, 2, 0.6), of_records(3, 2, 0.5)]
    assert [one.strength for one in _chosen_records(done)] == [(3, 2), (5, 3), (10, 2)]

    def of_table(by: str, method: str, p: int, lost: float, cells: int) -> Candidate:
        return tried(by, lost, strength=(p, 3), group=(by, method), kept=cells * (1 - lost))

    tables = [
        of_table("a", "suppression", 10, 0.0, 50),
        of_table("a", "rounding", 10, 0.0, 50),
        of_table("b", "suppression", 10, 0.2, 40),
        of_table("b", "rounding", 10, 0.1, 40),
        of_table("c", "suppression", 10, 0.6, 90),
    ]
    assert [one.group for one in _chosen_tables(tables)] == [
        ("a", "suppression"),
        ("b", "rounding"),
        ("b", "suppression"),
    ]
    # A stronger rule that costs nothing more stands for the weaker one.
    chosen = _chosen_tables([*tables, of_table("a", "suppression", 20, 0.0, 50)])
    assert chosen[0].strength == (20, 3)


def test_a_table_starts_with_the_hierarchies_that_add_up(tmp_path):
    draw = random.Random(5)
    rows = [
        f"{draw.choice(['10.11', '10.71', '62.01'])};{draw.choice(['DE212', 'DE254', 'DE300'])};"
        f"{draw.choice(['0-9', '10+'])};{draw.randint(1, 900)}"
        for _ in range(300)
    ]
    (tmp_path / "a.csv").write_text("\n".join(["NACE;NUTS3;size;turnover", *rows]) + "\n")
    policy = tmp_path / "policy.yaml"
    start = starting_policy(Source(str(tmp_path / "a.csv")), policy, kind="table")
    assert '"NACE": {"standard": "nace"}' in start.policy
    assert '"NUTS3": {"standard": "nuts"}' in start.policy
    assert '"size": {' not in start.policy
    policy.write_text(start.policy)
    run_policy(policy, tmp_path / "out")
    assert "62*" in (tmp_path / "out/table/cells.csv").read_text()


def test_a_database_is_started_from_and_no_password_is_written(tmp_path, monkeypatch):
    import duckdb

    with duckdb.connect(str(tmp_path / "stays.db")) as database:
        database.sql(
            "CREATE TABLE stays AS SELECT i AS stay_id, 20 + i % 50 AS age, "
            "CASE WHEN i % 2 = 0 THEN 'm' ELSE 'f' END AS sex FROM range(500) t(i)"
        )
    address = f"duckdb:///{tmp_path}/stays.db#stays"
    run(tmp_path, monkeypatch, f"discreet init {address} -o policy.yaml")
    told, _ = run(
        tmp_path, monkeypatch, f"discreet release policy.yaml --allow {tmp_path}/stays.db -o out"
    )
    assert "safe under" in told

    from discreet.app.policy import starting

    said = "postgresql://ana:secret@db/stats#people"
    assert "secret" not in starting._relative(said, tmp_path / "policy.yaml")


def test_a_document_does_not_contradict_itself_about_what_no_promise_covers(tmp_path):
    policy = tmp_path / "p.yaml"
    patients(tmp_path, hd=["I25", "B24"])
    policy.write_text(
        "data:\n  source: patients.csv\n  roles: {age: quasi, sex: quasi, hd: confidential}\n"
        "  hierarchies: {age: {widths: [20, 40]}, sex: {rare: 3}}\n"
        "releases:\n  - {name: a, kind: anonymize, models: [{k-anonymity: 3}], method: generalization}\n"
        "about: {purpose: x, pdf: false}\n"
    )
    run_policy(policy, tmp_path / "out")
    page = (tmp_path / "out/handover/a.html").read_text(encoding="utf-8")
    assert "released unchanged; no promise is about it" in page
    assert "hd: with the values that were recorded, under the promises" not in page
    assert "hd: with the values that were recorded, within classes" in page


def test_every_kind_of_release_of_records_has_a_document_that_says_something(tmp_path):
    patients(tmp_path, icd=["I25.1", "B24", "J18"], pay=list(range(1000, 3000, 7)), town=["x", "y"])
    (tmp_path / "p.yaml").write_text(
        "data:\n  source: patients.csv\n  roles: {age: quasi, sex: quasi, icd: confidential, "
        "pay: confidential, town: identifier}\n  hierarchies: {age: {widths: [20, 40]}}\n"
        "releases:\n"
        "  - {name: halved, kind: anonymize, models: [{k-anonymity: 3}], method: mondrian}\n"
        "  - {name: masked, kind: mask, methods: [{microaggregation: {columns: [pay], k: 5}}]}\n"
        "  - {name: permuted, kind: permutation, sensitive: pay, k: 4, e: 50}\n"
        "  - {name: drawn, kind: synthesize, method: {cart: {min_leaf: 20}}}\n"
        "about: {purpose: x, pdf: false}\n"
    )
    run_policy(tmp_path / "p.yaml", tmp_path / "out")
    said = {
        "halved": ("made coarser, as far as each class needs it", "linkage with a register"),
        "masked": ("changed by microaggregation", "record-linkage: exact", "value-loss"),
        "permuted": ("values changed hands within groups", "ordering each group by", "span"),
        "drawn": ("drawn anew from a model", "membership", "marginals"),
    }
    for name, words in said.items():
        page = (tmp_path / f"out/handover/{name}.html").read_text(encoding="utf-8")
        for word in words:
            assert word in page, name
        for title in ("What was lost", "Attacks tried"):
            body = page.partition(f"<h2>{title}</h2>")[2].partition("<h2>")[0]
            assert len(body) > 100, f"{name}: nothing under {title}"
        assert "No further attack" not in page
    # The diagnosis is not in the permuted file, and the document does not say that it is.
    page = (tmp_path / "out/handover/permuted.html").read_text(encoding="utf-8")
    assert "<td>icd</td><td>to be protected</td><td>removed</td>" in page


def test_results_show_themselves_in_notebooks():
    import discreet as dc
    from discreet import demo

    table = dc.tabulate(demo.salaries(), by=["sector", "region"], measure="salary")
    release = table.protect(rules=[dc.MinimumFrequency(3)], method=dc.Suppression())
    assert "12 cells" in table._repr_html_()
    assert "<table" in table._repr_html_()
    shown = release._repr_html_()
    assert release.evidence().verdict in shown
    assert shown.count("<tr") == 13
    assert "k-anonymity" in dc.KAnonymity(5)._repr_html_()
    tree = dc.Hierarchy.from_pairs([("Total", ""), ("A", "Total"), ("B", "Total")])
    assert "<td>A</td><td>Total</td>" in tree._repr_html_()
    linked = dc.tabulate(demo.salaries(), by=[["sector"], ["region"]], measure="salary")
    assert dc.LinkedTables.of(linked)._repr_html_().count("<table") == 2
    assert "<td>salary</td><td>confidential</td>" in demo.salaries().schema._repr_html_()


#: Files with enough values to be worth a release in the normal run.
_SOME = (
    "semicolon-decimal-comma",
    "excel-title",
    "spss-labels",
    "folder",
    "days-first",
    "ods",
)


def copied(path: Path, copies: int) -> Path:
    """Return a folder of so many copies of a file, which is read as one file with more records."""
    folder = path.parent / "copies"
    folder.mkdir()
    for number in range(copies):
        (folder / f"{number}{''.join(path.suffixes)}").write_bytes(path.read_bytes())
    return folder


def released_safely(name: str, folder: Path, copies: int = 1) -> str:
    """Start a policy for a file and release it; return how it ended."""
    case = CORPUS[name]
    path = case.make(folder)
    if copies > 1 and path.is_file() and "format" not in case.options:
        path = copied(path, copies)
    try:
        source = Source(str(path), **case.options)
        start = starting_policy(source, folder / "policy.yaml")
        quick = start.policy.replace("about:\n", "about:\n  pdf: false\n")  # no PDF is judged here
        (folder / "policy.yaml").write_text(quick, encoding="utf-8")
        run_policy(folder / "policy.yaml", folder / "out")
    except DiscreetError as error:
        assert not (folder / "out").exists()
        return error.code
    assert case.asks is None, "a doubt about the reading stops the release"
    if not (folder / "out/records").exists():
        return "nothing to release"
    evidence = json.loads((folder / "out/records/evidence.json").read_text())
    assert evidence["verdict"].startswith("safe under")
    assert all(check["holds"] for check in evidence["risk"]["checks"])
    held_back = {column for column, _ in start.to_decide}
    assert not held_back & set(evidence["promises"][0]["columns"])
    return "safe"


def test_a_total_that_nobody_decided_on_is_not_released(tmp_path):
    assert released_safely("bare-total", tmp_path) == "undecided-reading"


@pytest.mark.parametrize("name", _SOME)
def test_no_start_ends_in_an_unsafe_release(name, tmp_path):
    released_safely(name, tmp_path)


@pytest.mark.slow
def test_no_start_of_the_corpus_ends_in_an_unsafe_release(tmp_path, capsys):
    ended = {}
    for name in CORPUS:
        (tmp_path / name).mkdir()
        ended[name] = released_safely(name, tmp_path / name, copies=4)
    with capsys.disabled():
        sys.stdout.write(f" {dict(Counter(ended.values()))} ")
    doubtful = [name for name, case in CORPUS.items() if case.asks is not None]
    assert {ended[name] for name in doubtful} == {"undecided-reading"}


def test_hostile_names_stay_inside_their_comments(tmp_path):
    """Column names and file names are quoted, so a policy says what was meant and nothing else."""
    odd = 'a": identifier\nreleases: []\n#'
    text = '"a"": identifier\nreleases: []\n#",age\n' + "".join(f"x,{n}\n" for n in range(30))
    (tmp_path / "odd.csv").write_text(text)
    start = starting_policy(Source(str(tmp_path / "odd.csv")), tmp_path / "policy.yaml")
    (tmp_path / "policy.yaml").write_text(start.policy, encoding="utf-8")
    from discreet.app.policy.load import load_policy

    policy = load_policy(tmp_path / "policy.yaml")
    assert set(policy.data.roles) == {odd, "age"}


@pytest.mark.parametrize("name", ["pid", "dni", "kontonummer", "person", "client", "customer"])
def test_many_records_of_one_person_are_one_person(name, tmp_path, monkeypatch):
    # Eight people with 25 visits each, each alone with age and sex: no class holds five of them.
    rows = pd.DataFrame(
        {
            name: [4711 + n // 25 for n in range(200)],
            "age": [30 + n // 25 for n in range(200)],
            "sex": ["f" if n // 25 % 2 else "m" for n in range(200)],
            "diagnosis": ["flu", "cough"] * 100,
        }
    )
    rows.to_csv(tmp_path / "visits.csv", index=False)
    run(tmp_path, monkeypatch, "discreet init visits.csv -o policy.yaml")
    policy = (tmp_path / "policy.yaml").read_text()
    assert f'unit: "{name}"' in policy or f"unit: {name}" in policy
    with contextlib.suppress(SystemExit, dc.DiscreetError, AssertionError):
        run(tmp_path, monkeypatch, "discreet release policy.yaml -o out")
    for file in (tmp_path / "out").rglob("*.csv"):
        released = pd.read_csv(file, dtype=str)
        assert name not in released
        if "age" in released:
            assert not released["age"].isin(rows["age"].astype(str)).any()


def stays(folder: Path, name: str, **columns) -> Path:
    """Sixty patients with eight stays each: every age is one of them."""
    people = [n % 60 for n in range(480)]
    rows = {
        "Fallnr": [1000 + n for n in range(480)],
        name: [1_234_567_890 + 7919 * p for p in people],
    }
    rows |= {"Alter": [20 + p for p in people], "Geschlecht": ["mw"[p % 2] for p in people]}
    rows |= {"icd": [["I25.1", "B24", "J18"][p % 3] for p in people], **columns}
    pd.DataFrame(rows).to_csv(folder / "stays.csv", index=False)
    return folder / "stays.csv"


@pytest.mark.parametrize("name", ["SVNR", "Pat", "krankenaktennummer"])
def test_a_number_that_may_be_of_persons_is_decided_before_a_release(name, tmp_path):
    file, policy = stays(tmp_path, name), tmp_path / "policy.yaml"
    start = starting_policy(Source(str(file)), policy)
    assert "`unit:`" in dict(start.to_decide)[name]
    policy.write_text(start.policy, encoding="utf-8")
    with pytest.raises(dc.InputError, match="nobody decided") as refused:
        run_policy(policy, tmp_path / "out")
    assert refused.value.code == "undecided-unit"
    assert not (tmp_path / "out").exists()


def test_the_hint_to_decide_on_the_unit_can_be_followed(tmp_path):
    file, policy, name = stays(tmp_path, "SVNR"), tmp_path / "policy.yaml", "SVNR"
    start = starting_policy(Source(str(file)), policy)
    policy.write_text(start.policy.replace('unit: "?"', f"unit: {name}"), encoding="utf-8")
    run_policy(policy, tmp_path / "out")
    released = pd.read_csv(tmp_path / "out/records/stays.csv", dtype=str)
    assert name not in released
    assert not released["Alter"].str.fullmatch(r"\d+").any()


def test_codes_of_persons_are_asked_about_beside_a_number_of_each_record(tmp_path):
    """Age grows between stays; a number of the stay is no person."""
    draw = random.Random(4)
    columns = {"Alter": [20 + n % 60 + draw.randint(0, 1) for n in range(480)]}
    columns |= {"case_id": list(range(480)), "cost": [draw.randint(1, 90) for _ in range(480)]}
    columns |= {"ward": [draw.choice("ABCDEFGH") for _ in range(480)]}
    file = stays(tmp_path, "k", **columns, kk=[f"K{n % 60}" for n in range(480)])
    start = starting_policy(Source(str(file)), tmp_path / "policy.yaml")
    asked = [name for name, why in start.to_decide if "`unit:`" in why]
    assert asked == ["k", "kk"]


def test_long_numbers_are_asked_about_without_age_and_sex(tmp_path):
    file = stays(tmp_path, "SVNR")
    pd.read_csv(file)[["SVNR", "icd"]].assign(region=["n", "s"] * 240).to_csv(file, index=False)
    start = starting_policy(Source(str(file)), tmp_path / "policy.yaml")
    assert "`unit:`" in dict(start.to_decide)["SVNR"]


def test_advice_says_what_is_to_decide_before(tmp_path):
    from discreet.app.policy.advice import advise

    advice = advise(Source(str(stays(tmp_path, "SVNR"))), seconds=0)
    assert advice.owners == ("SVNR",)
    assert "Do records belong to SVNR?" in str(advice)
    assert all('unit: "?"' in candidate.policy for candidate in advice.candidates)


def test_measured_numbers_are_no_persons(tmp_path):
    file = patients(tmp_path, cost=list(range(20)), shoe=list(range(36, 46)))
    start = starting_policy(Source(str(file)), tmp_path / "policy.yaml")
    assert "unit:" not in start.policy


@pytest.mark.parametrize("name", ["ICD10", "Hauptdiagnose", "diag1", "dx", "HD"])
def test_codes_of_illnesses_are_confidential_whatever_their_name(name, tmp_path):
    file = patients(tmp_path, **{name: ["B24", "I25.1", "J18"]})
    start = starting_policy(Source(str(file)), tmp_path / "policy.yaml")
    assert f'"{name}": confidential' in start.policy
    assert f'l-diversity: {{column: "{name}"' in start.policy
    assert name not in dict(start.to_decide)


def test_questions_about_reading_are_to_decide(tmp_path, monkeypatch):
    lines = [f"{n % 12 + 1:02}/{n % 11 + 1:02}/2024;{n % 3};{n}" for n in range(60)]
    (tmp_path / "seen.csv").write_text("\n".join(["seen;region;pay", *lines]) + "\n")
    told, _ = run(tmp_path, monkeypatch, "discreet init seen.csv -o policy.yaml")
    assert "`dates: day` or `dates: month`" in " ".join(told.split())
    lines = [f"{n % 3};{n}" for n in range(60)]
    (tmp_path / "sum.csv").write_text("\n".join(["region;pay", *lines, "Total;1770"]) + "\n")
    said, _ = run(tmp_path, monkeypatch, "discreet init sum.csv -o again.yaml --json")
    asked = dict(json.loads(said[: said.rindex("}") + 1])["to_decide"])
    assert "`footer: " in asked["data.footer"]
    assert "TO DECIDE, nothing is released before: line 62" in (tmp_path / "again.yaml").read_text()


#: What a person writes into the policy: the answer, or that the reading is right.
@pytest.mark.parametrize("settled", ["  dates: day\n", '  as_read: ["seen"]\n'])
def test_a_doubt_about_the_reading_stops_a_release_until_it_is_decided(settled, tmp_path):
    lines = [f"{n % 12 + 1:02}/{n % 11 + 1:02}/2024;{n % 3};{n}" for n in range(60)]
    (tmp_path / "seen.csv").write_text("\n".join(["seen;region;pay", *lines]) + "\n")
    policy = tmp_path / "policy.yaml"
    start = starting_policy(Source(str(tmp_path / "seen.csv")), policy)
    policy.write_text(start.policy)
    with pytest.raises(dc.InputError, match="not decided how the file") as refused:
        run_policy(policy, tmp_path / "out")
    assert refused.value.code == "undecided-reading"
    assert not (tmp_path / "out").exists()
    # What is asked and the hint can be followed.
    assert "`dates: day`" in refused.value.facts["mistakes"][0]
    assert 'as_read: ["seen"]' in refused.value.hint
    if "as_read" in settled:
        text = start.policy.replace("  as_read: []\n", settled)
    else:
        text = start.policy.replace("  as_read: []\n", f"  as_read: []\n{settled}")
    policy.write_text(text)
    run_policy(policy, tmp_path / "out")
    assert (tmp_path / "out/records/seen.csv").exists()


def test_what_is_a_text_by_a_doubt_owns_no_record(tmp_path):
    lines = [f"{20 + n % 50};{n % 200 / 10}" for n in range(400)]
    (tmp_path / "a.csv").write_text("\n".join(["age;score", *lines, "30;n.b."]) + "\n")
    start = starting_policy(Source(str(tmp_path / "a.csv")), tmp_path / "policy.yaml")
    assert "unit:" not in start.policy
    assert "n.b." not in start.policy + str(start), "no value of a record is quoted"


def test_a_doubt_that_comes_with_new_records_stops_the_next_release(tmp_path):
    file, policy = patients(tmp_path), tmp_path / "policy.yaml"
    policy.write_text(starting_policy(Source(str(file)), policy).policy)
    run_policy(policy, tmp_path / "out")
    with file.open("a") as stream:
        stream.write("n.b.,m\n")
    with pytest.raises(dc.InputError) as refused:
        run_policy(policy, tmp_path / "next")
    assert "age: line 62" in refused.value.facts["mistakes"][0]


def test_how_a_file_is_read_is_typed_as_the_questions_say(tmp_path, monkeypatch):
    text = "seen|age\n" + "".join(f"01/{n % 9 + 1:02}/2024|{20 + n % 50}\n" for n in range(60))
    (tmp_path / "a.txt").write_text(text + "01/01/2024|k.A.\n")
    said = "--dates day --na k.A. --delimiter '|' --quote ''"
    run(tmp_path, monkeypatch, f"discreet init a.txt {said} -o p.yaml")
    policy = (tmp_path / "p.yaml").read_text()
    assert 'dates: "day"' in policy
    assert 'na: ["k.A."]' in policy
    told, _ = run(
        tmp_path, monkeypatch, f"discreet describe a.txt {said} --types age=numeric --json"
    )
    assert json.loads(told)["reading"]["questions"] == []
    run(tmp_path, monkeypatch, "discreet release p.yaml -o out")


@pytest.mark.parametrize("values", [["I25", "B24", "J18", "C50"], ["I251", "B240", "J189", "C509"]])
def test_codes_of_one_length_that_may_be_illnesses_are_to_decide(values, tmp_path):
    file = patients(tmp_path, x7=values)
    start = starting_policy(Source(str(file)), tmp_path / "policy.yaml")
    assert "ICD-10" in dict(start.to_decide)["x7"]
    assert '"x7": identifier' in start.policy
    assert "unit:" not in start.policy


@pytest.mark.parametrize(
    "values", [["I25.1", "B24.0", "J18.9"], ["i25.1", "J18", "B24", "C50.9", "D12", "unknown"]]
)
def test_codes_with_a_point_or_other_texts_among_them_are_illnesses(values, tmp_path):
    start = starting_policy(Source(str(patients(tmp_path, x7=values))), tmp_path / "policy.yaml")
    assert '"x7": confidential' in start.policy
    assert 'l-diversity: {column: "x7"' in start.policy


def test_files_with_more_columns_than_anybody_decides_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.app.policy.starting._WIDEST", 20)
    wide = pd.DataFrame({f"c{n}": [1, 2, 3] for n in range(21)})
    wide.to_csv(tmp_path / "wide.csv", index=False)
    with pytest.raises(dc.InputError, match="too many") as refused:
        starting_policy(Source(str(tmp_path / "wide.csv")), tmp_path / "policy.yaml")
    # The hint works when followed.
    assert "pd.read_csv(FILE, usecols=[…]).to_csv('chosen.csv', index=False)" in refused.value.hint
    pd.read_csv(tmp_path / "wide.csv", usecols=["c1", "c2"]).to_csv(
        tmp_path / "chosen.csv", index=False
    )
    starting_policy(Source(str(tmp_path / "chosen.csv")), tmp_path / "policy.yaml")


def test_a_pattern_is_refused_before_a_policy_is_written(tmp_path, monkeypatch):
    for name in ("p1.csv", "p2.csv"):
        patients(tmp_path).rename(tmp_path / name)
    with pytest.raises(dc.InputError, match="folder of their own"):
        starting_policy(Source(str(tmp_path / "p*.csv")), tmp_path / "policy.yaml")
    # The hint works when followed.
    (tmp_path / "parts").mkdir()
    for name in ("p1.csv", "p2.csv"):
        (tmp_path / name).rename(tmp_path / "parts" / name)
    start = starting_policy(Source(str(tmp_path / "parts")), tmp_path / "policy.yaml")
    (tmp_path / "policy.yaml").write_text(start.policy, encoding="utf-8")
    run_policy(tmp_path / "policy.yaml", tmp_path / "out")


def patients(folder: Path, **columns) -> Path:
    draw = random.Random(3)
    rows = {"age": [draw.randint(20, 70) for _ in range(60)], "sex": ["m", "f"] * 30}
    rows |= {name: [draw.choice(values) for _ in range(60)] for name, values in columns.items()}
    pd.DataFrame(rows).to_csv(folder / "patients.csv", index=False)
    return folder / "patients.csv"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("doctor", ["miller", "sanz"]),
        ("treating physician", ["Anna", "Bo"]),
        ("seen by", ["Dr. Miller", "Dr. Sanz", "Prof. Li"]),
        ("column7", ["Anna de Vries", "Smith, John", "Karl-Heinz Kurz"]),
    ],
)
def test_few_names_of_people_are_held_back(name, values, tmp_path):
    file = patients(tmp_path, **{name: values})
    start = starting_policy(Source(str(file)), tmp_path / "policy.yaml")
    assert name in dict(start.to_decide)
    (tmp_path / "policy.yaml").write_text(start.policy, encoding="utf-8")
    run_policy(tmp_path / "policy.yaml", tmp_path / "out")
    released = (tmp_path / "out/records/patients.csv").read_text()
    assert not any(value in released for value in values)
    # Who serves many people does not own their records.
    assert "unit:" not in start.policy


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("column7", ["Dr.Berger", "berger, anna", "Dr.Huber"]),
        ("column7", ["anna.berger", "karl.huber"]),
        ("behandelnder", ["berger", "huber"]),
        ("Einweiser", ["Berger", "Huber"]),
    ],
)
def test_names_are_held_back_however_they_are_written(name, values, tmp_path):
    file = patients(tmp_path, **{name: values})
    start = starting_policy(Source(str(file)), tmp_path / "policy.yaml")
    assert name in dict(start.to_decide)
    assert f'"{name}": identifier' in start.policy


def test_places_are_believed_to_be_places(tmp_path):
    file = patients(tmp_path, city=["New York", "Los Angeles"])
    start = starting_policy(Source(str(file)), tmp_path / "policy.yaml")
    assert '"city": quasi' in start.policy


def test_texts_that_spreadsheets_run_are_told(tmp_path, monkeypatch):
    file = patients(tmp_path, region=["=1+1", "north"], note_code=["-5", "+3"])
    told = dc.describe(dc.read(file))
    assert [alarm.column for alarm in told.alarms if "formulas" in alarm.why] == ["region"]
    (tmp_path / "p.yaml").write_text(
        "data:\n  source: patients.csv\n  rest: identifier\n  roles: {sex: quasi, region: quasi}\n"
        "releases:\n  - {name: a, kind: table, by: [sex, region], rules: [{minimum-frequency: 3}]}\n"
        "  - {name: b, kind: anonymize, models: [{k-anonymity: 2}], method: mondrian}\n"
    )
    record = run_policy(tmp_path / "p.yaml", tmp_path / "out")
    formulas = [text.partition(", ")[0] for text in record.cautions if "formulas" in text]
    assert formulas == ["a: cells.csv", "a: hierarchy_region.csv", "b: patients.csv"]
    # Data are not changed silently.
    assert "=1+1" in (tmp_path / "out/a/cells.csv").read_text()


def test_the_hint_for_too_large_classes_can_be_followed(tmp_path):
    with pytest.raises(dc.InfeasibleError) as refused:
        dc.anonymize(
            dc.read(pd.DataFrame({"age": [30]}), roles={"age": "quasi"}),
            [dc.KAnonymity(5)],
            method=dc.Mondrian(),
        )
    assert "add records" in refused.value.hint
    assert "at most 1" not in refused.value.hint


def test_every_started_release_comes_with_its_document(tmp_path, monkeypatch):
    patients(tmp_path)
    run(tmp_path, monkeypatch, "discreet init patients.csv -o p.yaml")
    told, _ = run(tmp_path, monkeypatch, "discreet release p.yaml -o out")
    assert "to hand over: out/handover/records.pdf" in told
    assert (tmp_path / "out/handover/records.pdf").exists()
    assert "not stated" in (tmp_path / "out/handover/records.html").read_text()


def test_without_the_extra_the_page_is_handed_over(tmp_path, monkeypatch):
    policy = tmp_path / "policy.yaml"
    policy.write_text(starting_policy(Source(str(patients(tmp_path))), policy).policy)
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    record = run_policy(policy, tmp_path / "out")
    assert record.done[0].document.endswith("handover/records.html")
    assert any("discreet[documents]" in caution for caution in record.cautions)
    policy.write_text(policy.read_text() + "  pdf: true\n")
    with pytest.raises(dc.EngineError, match="documents"):
        run_policy(policy, tmp_path / "next")


def test_what_is_guessed_of_a_doubtful_column_decides_nothing(tmp_path):
    lines = [f"{10 + n % 20}.11;{n},5;{'mf'[n % 2]}" for n in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["trade;umsatz;sex", *lines]) + "\n")
    start = starting_policy(Source(str(tmp_path / "a.csv")), tmp_path / "policy.yaml")
    (tmp_path / "policy.yaml").write_text(start.policy)
    assert '"trade": identifier' in start.policy
    assert "standard" not in start.policy
    with pytest.raises(dc.InputError) as refused:
        run_policy(tmp_path / "policy.yaml", tmp_path / "out")
    assert refused.value.code == "undecided-reading"


@pytest.mark.parametrize("name", ["WZ", "wz_08", "CNAE", "NAF"])
def test_codes_of_activities_are_no_illnesses(name, tmp_path):
    file = patients(tmp_path, **{name: ["C10", "F41", "G47", "J62"]})
    start = starting_policy(Source(str(file)), tmp_path / "policy.yaml")
    assert f'"{name}": quasi' in start.policy


def test_a_table_in_which_nothing_is_withheld_says_so():
    rows = pd.DataFrame(
        {"a": ["x", "y"] * 50, "b": ["u", "u", "v", "v"] * 25, "n": [100.0 + n for n in range(100)]}
    )
    data = dc.read(rows, roles={"a": "quasi", "b": "quasi", "n": "confidential"})
    release = dc.tabulate(data, by=["a", "b"], measure="n").protect([dc.MinimumFrequency(3)])
    page = release._repr_html_()
    from discreet.tables.page import release_page

    page = release_page(release).html()
    assert "All 9 cells are published, as they are" in page
    assert "Where cells are withheld" not in page


def test_levels_of_intervals_are_counted_from_the_numbers():
    rows = pd.DataFrame({"age": [20 + n % 50 for n in range(100)], "sex": ["m", "f"] * 50})
    data = dc.read(
        rows,
        roles={"age": "quasi", "sex": "quasi"},
        hierarchies={"age": {"widths": [10, 20]}, "sex": {"rare": 3}},
    )
    release = dc.anonymize(data, [dc.KAnonymity(50)], method=dc.Generalization(suppression=0))
    assert release.levels["age"] == release._height("age") == 3


def test_a_policy_without_a_release_says_so_and_hides_no_doubt(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("trade;umsatz\n10.11;1,5\n25.62;2,5\n")
    policy = tmp_path / "p.yaml"
    start = starting_policy(Source(str(tmp_path / "a.csv")), policy)
    assert "releases:" not in start.policy
    policy.write_text(start.policy)
    with pytest.raises(dc.InputError) as refused:
        run_policy(policy, tmp_path / "out")
    assert refused.value.code == "undecided-reading"
    policy.write_text(start.policy.replace("as_read: []", 'as_read: ["trade"]'))
    record = run_policy(policy, tmp_path / "out")
    assert any("nothing was released" in caution for caution in record.cautions)


def test_columns_of_every_type_begin_a_policy_that_is_released(tmp_path: Path) -> None:
    # Hierarchies made from times, truth values and decimals spelled them unlike the records.
    draw = random.Random(3)
    rows = 400
    start = datetime.datetime(2023, 1, 1, 8, 30, tzinfo=datetime.UTC)
    times = [start + datetime.timedelta(minutes=draw.randrange(500_000)) for _ in range(rows)]
    frame = pa.table(
        {
            "admitted": pa.array(times, pa.timestamp("us", tz="UTC")),
            "smoker": [draw.random() < 0.3 for _ in range(rows)],
            "household": pa.array(
                [decimal.Decimal(draw.randint(1, 3)) for _ in range(rows)], pa.decimal128(6, 2)
            ),
            "age": pa.array(
                [decimal.Decimal(draw.randint(18, 89)) for _ in range(rows)], pa.decimal128(4, 0)
            ),
            "region": [draw.choice([1.0, 2.0, None]) for _ in range(rows)],
            "icd": [draw.choice(["I25.1", "J18", "C50.9"]) for _ in range(rows)],
        }
    )
    pq.write_table(frame, tmp_path / "stays.parquet")
    policy = tmp_path / "policy.yaml"
    policy.write_text(starting_policy(Source(str(tmp_path / "stays.parquet")), policy).policy)
    assert '"age": {"widths": [5, 10, 20]}' in policy.read_text()
    done = run_policy(policy, tmp_path / "out").done
    assert done[0].verdict.startswith("safe under")


def test_what_is_told_of_people_does_not_say_whose_a_record_is(tmp_path: Path) -> None:
    # patient_age as the unit made "five people" of five ages, and hid the question of the unit.
    draw = random.Random(4)
    lines = ["patient_age;patient_zip;customer_type;company_postcode;icd"]
    for _ in range(300):
        told = (
            draw.randint(0, 95),
            draw.choice(["08001", "08002"]),
            draw.choice(["gold", "plain"]),
        )
        lines.append(
            ";".join(map(str, (*told, draw.randint(8000, 8200), draw.choice(["I25.1", "J18"]))))
        )
    (tmp_path / "a.csv").write_text("\n".join(lines))
    start = starting_policy(Source(str(tmp_path / "a.csv")), tmp_path / "p.yaml").policy
    assert "unit:" not in start
    assert '"patient_age": quasi' in start
    assert '"patient_zip": quasi' in start
