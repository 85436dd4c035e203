"""One new file in a copy of the whole tree: a member of each family, and a job, appear everywhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from discreet.registry import families, members

ROOT = Path(__file__).resolve().parents[2]
#: A member that does what another one does, under its own name.
MEMBER = """
    import dataclasses
    from typing import ClassVar

    from {module} import {base}


    @dataclasses.dataclass(frozen=True)
    class {cls}({base}):
        '''Stand for a member that somebody adds.

        Examples
        --------
        >>> {cls}.name
        '{name}'
        '''

        name: ClassVar[str] = "{name}"
    {more}
"""
#: What is asked of the copy, in a process that imports discreet from there.
QUESTIONS = """
    import json
    import sys

    from typer.testing import CliRunner

    import discreet as dc
    from discreet.app.cli.main import build as application
    from discreet.app.cli.members import parse_member
    from discreet.app.policy.json_schema import policy_schema
    from discreet.registry import build, families, members
    from tests.laws.test_laws import MEMBERS

    def run(*words):
        return CliRunner().invoke(application(), list(words)).stdout

    schema = policy_schema()["$defs"]
    judged = {one.id.rpartition(":")[0] for one in MEMBERS}
    listed = {(one["family"], one["name"]) for one in json.loads(run("methods", "--json"))["entries"]}
    found = {}
    for family in families():
        name = f"planted-{family}"
        cls = members(family)[name]
        example = {item.name: None for item in cls.parameters() if item.required}
        found[family] = {
            "python": getattr(dc, cls.__name__) is cls,
            "methods": (family, name) in listed,
            "schema": name in json.dumps(schema[f"family-{family}"]),
            "laws": f"{family}:{name}" in judged,
            "a policy reads it": example or type(build(families()[family][0].base, name)) is cls,
            "an option reads it": example or type(parse_member(families()[family][0].base, name)) is cls,
        }
    found["named by guards"] = dc.Perturbation(
        mechanism="planted-mechanism", accountant="zcdp"
    ).mechanism
    found["named by methods"] = dc.Generalization(metric="planted-metric").metric
    found["named by tables"] = dc.RetrievalTableService(key="id", schemes=["planted-scheme"]).schemes
    found["the command"] = "Stand for a member" in run("table", "planted", "--help")
    json.dump(found, sys.stdout)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What a copy of the tree with one new file for each family answers."""
    folder = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    before = sorted(path for path in folder.rglob("*.py"))
    for family in families():
        cls = next(iter(members(family).values()))
        name = f"planted-{family}"
        text = textwrap.dedent(MEMBER).format(
            module=cls.__module__,
            base=cls.__name__,
            cls="".join(word.title() for word in name.split("-")),
            name=name,
            more='    command: ClassVar[str] = "table planted"' if family == "job" else "",
        )
        place = folder.joinpath("src", *cls.__module__.split(".")[:-1])
        (place / f"{name.replace('-', '_')}.py").write_text(text)
    assert len(list(folder.rglob("*.py"))) == len(before) + len(families())
    environment = {**os.environ, "PYTHONPATH": f"{folder / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(QUESTIONS)],
        capture_output=True, text=True, check=False, env=environment, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("family", families())
def test_a_new_member_appears_everywhere(found, family):
    assert [place for place, is_there in found[family].items() if not is_there] == []


def test_a_new_job_is_a_command(found):
    assert found["the command"]


def test_a_member_that_others_name_can_be_named(found):
    assert found["named by guards"] == "planted-mechanism"
    assert found["named by methods"] == "planted-metric"
    assert found["named by tables"] == ["planted-scheme"]
