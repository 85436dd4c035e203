"""`--json` on every command: one value for programs, with names that stay."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from discreet.app.cli.main import build
from discreet.app.cli.man import declared, man_page
from tests.protocols.transport.parties import free_ports

ROOT = typer.main.get_command(build())
COMMANDS = declared(ROOT)
GROUPS = {one["command"].rpartition(" ")[0] for one in COMMANDS}

POLICY = """
data: {{source: people.csv, roles: {{id: other, name: other}}}}
retrieval:
  - name: people
    kind: retrieval-table
    key: id
    columns: [name]
    servers: {{a: "127.0.0.1:{a}", b: "127.0.0.1:{b}"}}
"""


@pytest.mark.parametrize("name", [c["command"] for c in COMMANDS if c["command"] not in GROUPS])
def test_every_command_takes_json(name):
    said = next(one for one in COMMANDS if one["command"] == name)
    assert any("--json" in item["names"] for item in said["parameters"])


#: Commands that do something rather than find something, in the order they need each other, and
#: the names that programs rely on.
DONE = (
    ("key new release.pem", {"private", "public"}),
    ("key new cells.key --for cell-key", {"private"}),
    ("key new --for party hospital", {"private", "certificate", "pin"}),
    ("table new-key other.key", {"private"}),
    ("collect encode answers.txt -m 'randomized-response gamma=0.25' -o r.csv", {"written", "reports"}),
    ("ledger grant ledger.db people --epsilon 2", {"dataset", "epsilon", "delta", "accountant"}),
    ("ledger migrate ledger.db", {"up_to_date"}),
    ("ledger export ledger.db -o ledger.jsonl", {"written"}),
    ("ledger prove ledger.db 1 -o proof.json", {"written", "entry"}),
    ("schema -o schema.json", {"written"}),
    ("search disguise apple --vocabulary words.csv", {"query"}),
    ("user ana --password 'long enough'", {"server"}),
    ("user ana --password 'long enough' --policy policy.yaml", {"user", "roles", "policy"}),
    ("retrieve build policy.yaml", {"table", "version", "rows", "columns", "folder", "publisher", "root"}),
    (
        "retrieve update policy.yaml --deleted 2",
        {"table", "version", "rows", "columns", "folder", "publisher", "root", "changes", "room"},
    ),
    ("man -o discreet.1", {"written"}),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("json")
    (place / "people.csv").write_text("id,name\n1,Ana\n2,Bo\n3,Cy\n")
    (place / "answers.txt").write_text("yes\nno\n" * 20)
    words = "".join(f"w{n},{100 - n}\n" for n in range(60))
    (place / "words.csv").write_text("term,count\napple,50\n" + words)
    a, b = free_ports(2)
    (place / "policy.yaml").write_text(POLICY.format(a=a, b=b))
    return place


def test_what_was_done_is_told_under_names_that_stay(folder, monkeypatch):
    import shlex

    monkeypatch.chdir(folder)
    for typed, names in DONE:
        words = [*shlex.split(typed), "--json"]
        found = CliRunner().invoke(build(words), words)
        assert found.exit_code == 0, f"{typed}: {found.output} {found.exception!r}"
        told = json.loads(found.stdout)
        assert names == set(told[0] if isinstance(told, list) else told), typed


@pytest.mark.parametrize("name", [c["command"] for c in COMMANDS if c["command"] not in GROUPS])
def test_a_mistake_in_typing_is_an_error_under_names_that_stay(name, monkeypatch, capsys):
    from discreet.app.cli.main import main

    monkeypatch.setattr(sys, "argv", [*name.split(), "--no-such-option", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    told = json.loads(capsys.readouterr().err)
    assert ended.value.code == 2
    assert told["error"] == "usage"
    assert "--no-such-option" in told["message"]


def test_no_fact_of_an_error_takes_the_place_of_its_code():
    from discreet.errors import InputError

    told = InputError("x", code="bad-file", error="y").to_dict()
    assert (next(iter(told)), told["error"], told["message"]) == ("error", "bad-file", "x")


def test_refusals_and_unexpected_errors_are_json_too(tmp_path, monkeypatch, capsys):
    from discreet.app.cli import main as command_line

    monkeypatch.setattr(sys, "argv", ["discreet", "describe", str(tmp_path / "no.csv"), "--json"])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert (ended.value.code, json.loads(capsys.readouterr().err)["error"]) == (2, "no-file")

    def broken(words):
        raise ZeroDivisionError("a record")

    monkeypatch.setattr(command_line, "build", broken)
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    told = capsys.readouterr().err
    assert (ended.value.code, json.loads(told)["error"]) == (1, "internal")
    assert "a record" not in told


def test_a_server_prints_one_line_when_it_is_ready(folder):
    command = [sys.executable, "-m", "discreet", "retrieve"]
    subprocess.run([*command, "build", "policy.yaml"], cwd=folder, check=True, capture_output=True)
    with subprocess.Popen(
        [*command, "serve", "policy.yaml", "--server", "a", "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            told = json.loads(server.stdout.readline())
        finally:
            server.terminate()
    assert {"server", "address", "certificate", "pin"} == set(told)


def test_the_manual_page_has_every_command_and_option():
    page = man_page(ROOT)
    for one in COMMANDS:
        assert one["command"].replace("-", "\\-") in page
        for item in one["parameters"]:
            assert item["names"][0].replace("-", "\\-") in page
    assert page.isascii()


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff draws the page")
def test_the_manual_page_is_drawn_without_a_warning():
    drawn = subprocess.run(
        ["groff", "-man", "-Tutf8", "-wall", "-z"],
        input=man_page(ROOT),
        capture_output=True,
        text=True,
        check=True,
    )
    assert drawn.stderr == ""
