"""The command line's frame: light to start, errors in one block, exit codes by branch."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from discreet.app.cli import console
from discreet.app.cli import main as cli
from discreet.errors import EngineError, InfeasibleError, InputError, RefusedError
from discreet.registry import families, members

HEAVY = [
    "pandas",
    "polars",
    "numba",
    "sklearn",
    "fastapi",
    "uvicorn",
    "nicegui",
    "duckdb",
    "highspy",
    "scipy",
]


def test_help_loads_nothing_heavy():
    code = (
        "import sys; sys.argv = ['discreet', '--help']\n"
        "from discreet.app.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.strip().splitlines()[-1] == "[]"
    assert "discreet demo" in done.stdout


def test_every_command_has_help_that_teaches():
    root = cli.typer.main.get_command(cli.build())

    def walk(command, path):
        assert command.help, path
        for name, child in getattr(command, "commands", {}).items():
            walk(child, f"{path} {name}")

    walk(root, "discreet")


def test_methods_lists_every_member_and_tells_one():
    runner = CliRunner()
    listed = runner.invoke(cli.build(), ["methods", "--json"])
    assert listed.exit_code == 0, listed.output
    names = {entry["name"] for entry in json.loads(listed.output)["entries"]}
    assert names == {name for family in families() for name in members(family)}
    if names:
        name = min(names)
        told = runner.invoke(cli.build(), ["methods", name])
        assert name in told.output


@pytest.mark.parametrize(
    ("branch", "exit_code"),
    [(InputError, 2), (RefusedError, 3), (InfeasibleError, 4), (EngineError, 5)],
)
def test_an_error_becomes_a_block_and_an_exit_code(branch, exit_code, monkeypatch, capsys):
    def broken(words=None):
        def command():
            raise branch("found this", code="a-code", hint="write that")

        return command

    monkeypatch.setattr(cli, "build", broken)
    monkeypatch.setattr(sys, "argv", ["discreet"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == exit_code
    shown = capsys.readouterr().err
    assert "found this" in shown
    assert "do:    write that" in shown
    assert "a-code" in shown


def test_errors_are_json_when_asked(capsys):
    assert console.fail(InputError("m", code="c", column="age"), as_json=True) == 2
    assert json.loads(capsys.readouterr().err) == {"error": "c", "message": "m", "column": "age"}


def test_an_unknown_error_does_not_show_its_text(monkeypatch, capsys):
    def broken(words=None):
        def command():
            raise RuntimeError("salary of Ana is 31415")

        return command

    monkeypatch.setattr(cli, "build", broken)
    monkeypatch.setattr(sys, "argv", ["discreet"])
    monkeypatch.delenv("DISCREET_DEBUG", raising=False)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 1
    shown = capsys.readouterr().err
    assert "31415" not in shown
    assert "RuntimeError" in shown


def test_progress_is_quiet_when_not_a_terminal(capsys):
    with console.progress() as progress:
        progress("work", 1, 2)
    assert capsys.readouterr().err == ""


def test_version(capsys):
    assert CliRunner().invoke(cli.build(), ["--version"]).output.startswith("discreet ")
