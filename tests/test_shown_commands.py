"""What the manual shows of a command is what the command prints."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path

import pytest

from discreet import demo
from discreet.app.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md"), ROOT / "README.md"])
_FENCE = re.compile(r"^```text\n(\$ discreet .*?)^```", re.DOTALL | re.MULTILINE)
#: A policy whose sixteenth line misspells a rule.
_POLICY = """\
data:
  source: people.csv
  rest: other
  roles:
    id: identifier
    sector: quasi
    region: quasi
    salary: confidential
releases:
  - name: salaries
    kind: table
    by: [sector, region]
    measure: salary
    rules:
      - minimum-frequency: 3
      - p-precent: 10
"""


def shown(text: str) -> list[tuple[str, list[str]]]:
    """Return each command of a page with the lines that are shown below it."""
    found = []
    for block in _FENCE.findall(text):
        joined = block.replace("\\\n", " ")
        for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            found.append((command, lines))
    return found


CASES = [
    pytest.param(command, lines, id=f"{page.stem}: {' '.join(command.split()[1:3])}")
    for page in PAGES
    for command, lines in shown(page.read_text(encoding="utf-8"))
]


def agree(wanted: list[str], printed: list[str]) -> bool:
    """Whether lines are printed, one after the other; … stands for any lines at the end."""
    if wanted and wanted[-1] == "…":
        return printed[: len(wanted) - 1] == wanted[:-1]
    return printed == wanted


@pytest.mark.parametrize(("command", "lines"), CASES)
def test_commands_print_what_the_manual_shows(command, lines, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("salaries.csv", "people.csv"):
        demo.salaries().frame.to_csv(name, index=False)
    (tmp_path / "policy.yaml").write_text(_POLICY)
    monkeypatch.setattr("sys.argv", shlex.split(command))
    with contextlib.suppress(SystemExit):
        main()
    output, errors = capsys.readouterr()
    told = output or errors
    assert agree([line.rstrip() for line in lines], [line.rstrip() for line in told.splitlines()])


def test_the_check_notices():
    assert shown("```text\n$ discreet a \\\n  b\nx\n```\n") == [("discreet a    b", ["x"])]
    assert not agree(["x"], ["y"])
    assert not agree(["x"], ["x", "y"])
    assert agree(["x", "…"], ["x", "y"])
    assert len(CASES) >= 4
