"""Commands are made from jobs: none lost an option, and a new job or member needs one file."""

from __future__ import annotations

import dataclasses
import importlib
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import jsonschema
import pytest
import typer.main
from typer.testing import CliRunner

from discreet import registry
from discreet.app.cli.main import build
from discreet.app.policy.json_schema import policy_schema
from discreet.app.policy.run import run_policy
from discreet.data.service import Service
from discreet.registry import families, members

#: What every command took before commands were made from jobs.
BEFORE = json.loads((Path(__file__).parent / "options.json").read_text())
DOCS = Path(__file__).resolve().parents[2] / "docs"


def options(command, path="") -> dict[str, set[str]]:
    found = {path: {o for p in command.params for o in (*p.opts, *p.secondary_opts)}}
    for name, inner in getattr(command, "commands", {}).items():
        found |= options(inner, f"{path} {name}".strip())
    return found


def test_every_command_still_takes_every_option():
    now = options(typer.main.get_command(build()))
    arguments = {"file": "source"}
    for path, known in BEFORE.items():
        assert path in now, f"the command {path!r} is gone"
        lost = {o for o in known if o not in now[path] and arguments.get(o) not in now[path]}
        assert not lost, f"{path!r} lost {lost}"


def test_a_command_takes_every_parameter_of_its_job():
    now = options(typer.main.get_command(build()))
    for job in members("job").values():
        taken = {o.lstrip("-").replace("-", "_") for o in now[job.command]}
        for item in job.parameters():
            spelled = {part.lstrip("-").replace("-", "_") for part in item.option.split("/")}
            assert {item.name, *spelled} & taken, f"{job.command}: {item.name}"


JOB = """
    import dataclasses
    from typing import ClassVar
    from discreet.data.job import ReportJob
    from discreet.registry import parameter
    from discreet.report import Report

    @dataclasses.dataclass(frozen=True)
    class Size(Report):
        records: int

    @dataclasses.dataclass(frozen=True)
    class CountJob(ReportJob):
        '''Count the records of a file, several times over.

        Examples
        --------
        >>> 1
        1
        '''

        name: ClassVar[str] = "count"
        command: ClassVar[str] = "table count"

        times: int = parameter(1, help="how often each record counts", low=1)

        def perform(self, data, *, rng, progress):
            return Size(self.times * len(data))
"""


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Put a file into the folder of a family; it is gone after the test."""
    before = set(sys.modules)

    def plant(package: str, file: str, text: str):
        folder = tmp_path / package
        folder.mkdir(exist_ok=True)
        (folder / f"{file}.py").write_text(textwrap.dedent(text))
        loaded = importlib.import_module(package)
        monkeypatch.setattr(loaded, "__path__", [*loaded.__path__, str(folder)])
        importlib.invalidate_caches()

    yield plant
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_a_new_job_is_one_file(planted, tmp_path):
    planted("discreet.tables.jobs", "count", JOB)
    (tmp_path / "people.csv").write_text("age\n20\n30\n")
    words = ["table", "count", str(tmp_path / "people.csv"), "--times", "3", "--json"]
    done = CliRunner().invoke(build(), words)
    assert json.loads(done.stdout) == {"records": 6}
    assert "Count the records" in CliRunner().invoke(build(["table"]), ["table", "--help"]).stdout
    policy = {
        "data": {"source": "people.csv"},
        "reports": [{"name": "n", "kind": "count", "times": 2}],
    }
    (tmp_path / "policy.yaml").write_text(json.dumps(policy))
    run_policy(tmp_path / "policy.yaml", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "reports" / "n.json").read_text()) == {"records": 4}
    schema = policy_schema()
    jsonschema.validate(policy, schema)
    policy["reports"][0]["times"] = 0
    assert not jsonschema.Draft202012Validator(schema).is_valid(policy)
    assert "how often each record counts" in reference("job")
    wrong = CliRunner().invoke(build(), [*words[:3], "--times", "0"])
    assert wrong.exception.code == "parameter-range"


def reference(family: str) -> str:
    sys.path.insert(0, str(DOCS))
    try:
        import reference_pages

        return reference_pages._family(family)
    finally:
        sys.path.remove(str(DOCS))


@pytest.mark.parametrize("family", sorted(families()))
def test_a_new_member_of_a_family_is_one_file(family, planted):
    folder = families()[family][0]
    base = folder.base
    planted(
        folder.package,
        "planted_member",
        f"""
        import dataclasses
        from typing import ClassVar
        from {base.__module__} import {base.__name__}
        from discreet.registry import parameter

        @dataclasses.dataclass(frozen=True)
        class PlantedMember({base.__name__}):
            '''Stand for a member that somebody adds.'''
            name: ClassVar[str] = "planted-member"
            strength: int = parameter(2, help="how strong it is", low=1)
        """,
    )
    assert members(family)["planted-member"].__name__ == "PlantedMember"
    assert "how strong it is" in reference(family)
    told = CliRunner().invoke(build(), ["methods", "planted-member"])
    assert "how strong it is" in told.stdout
    assert "planted-member" in json.dumps(policy_schema()["$defs"][f"family-{family}"])


def test_what_serves_is_not_a_job():
    assert "gateway" in members("service")
    assert "gateway" not in members("job")
    assert all(issubclass(cls, Service) for cls in members("service").values())


def test_help_imports_no_job():
    code = (
        "import sys; sys.argv = ['discreet', *sys.argv[1:]]\n"
        "from discreet.app.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = ('numpy', 'pandas', 'pyarrow', 'numba', 'discreet.registry', 'discreet.data')\n"
        "print([m for m in heavy if m in sys.modules], file=sys.stderr)"
    )
    for words in (["--help"], ["table", "--help"], ["--version"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
        )
        assert done.stderr.strip().splitlines()[-1] == "[]", words


def test_a_table_without_a_ledger_loads_no_compiler(tmp_path):
    # The auditor of ledgers is compiled, and loading a compiler takes as long as all the rest.
    (tmp_path / "rows.csv").write_text("a,b\n" + "x,p\ny,q\nx,q\ny,p\n" * 20)
    code = (
        "import sys; sys.argv = ['discreet', *sys.argv[1:]]\n"
        "from discreet.app.cli.main import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code\n"
        "heavy = ('numba', 'scipy.optimize', 'discreet.ledger', 'discreet.queries')\n"
        "print([m for m in heavy if m in sys.modules], file=sys.stderr)"
    )
    words = ["table", str(tmp_path / "rows.csv"), "--by", "a,b", "--rule", "minimum-frequency=3"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.stderr.strip().splitlines()[-1] == "[]", done.stderr[-500:]


def test_a_command_imports_its_own_jobs_alone():
    code = (
        "import sys\nfrom discreet.app.cli.main import build\nbuild(['permute', 'people.csv'])\n"
        "print([m for m in sys.modules if '.jobs.' in m and 'permut' not in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_paths_of_a_declaration_start_from_a_folder():
    job = members("job")["table"](by=("a",), argus="t.rda", key="secret.key")
    assert job.located("x").argus == str(Path("x/t.rda"))
    assert job.files("read") == ["t.rda"]
    assert job.files("secret") == ["secret.key"]
    assert dataclasses.replace(job, argus=None, value="v").located("x").key == str(
        Path("x/secret.key")
    )
    assert registry.build(
        members("job")["table"], {"table": {"by": [["a", "b"], ["a"]], "value": "v"}}
    ).crossed == (("a", "b"), ("a",))
