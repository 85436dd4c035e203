"""One declaration, said in three ways: typed, written in a policy, called from Python.

Settings of members are found by trying: a new member is covered without an edit here.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

from typer.testing import CliRunner

import discreet as dc
from discreet.app.cli.main import build as application
from discreet.app.policy.run import run_policy
from discreet.data.source import Source
from discreet.registry import build, members

ROLES = {"id": "identifier", "household": "other", "region": "quasi", "age": "quasi",
         "sex": "quasi", "asked": "other", "job": "confidential", "pay": "confidential"}  # fmt: skip
DATA: dict[str, Any] = {
    "source": "people.csv",
    "roles": ROLES,
    "hierarchies": {
        "region": "region.hrc",
        "age": {"widths": [10, 40]},
        "sex": "sex.hrc",
    },
    # Private methods need values and bounds that are known without the records.
    "domains": {"region": ["N1", "N2", "S1", "S2"], "sex": ["f", "m"],
                "job": ["clerk", "cook", "smith"], "asked": ["true", "false"]},
    "bounds": {"household": [0, 12], "age": [0, 100], "pay": [0, 2000]},
    "vouch": ["household"],
}  # fmt: skip
#: What is tried for a parameter without a default, by its type.
TEXTS = ["job", "household", "pay", "age", "region"]
LISTS = [["age"], ["pay"], ["job"], ["region"], ["f/N1"]]
NUMBERS = [1, 0.5, 20, 3]


def write_people(folder: Path) -> None:
    """Write 48 people, in 12 households, and the hierarchy of their regions."""
    lines = ["id,household,region,age,sex,job,pay,asked"]
    for n in range(48):
        region = ["N1", "N2", "S1", "S2"][n // 3 % 4]
        job = ["clerk", "cook", "smith"][n * 5 % 7 % 3]
        lines.append(
            f"p{n},{n // 4},{region},{20 + n * 7 % 37},{'fm'[n % 2]},{job},{900 + n * 97 % 801},{n % 9 == 0}"
        )
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    (folder / "region.hrc").write_text("North\n@N1\n@N2\nSouth\n@S1\n@S2\n")
    (folder / "sex.hrc").write_text("f\nm\n")
    (folder / "secret.key").write_text("0123456789abcdef0123456789abcdef\n")


def settings_of(cls: type, people: str) -> Iterator[dict[str, Any]]:
    """Give settings that a member may take: its required ones, and then one more."""
    required = [item for item in cls.parameters() if item.required]
    pools = [_pool(item.type, people) for item in required]
    for values in itertools.product(*pools):
        first = {item.name: value for item, value in zip(required, values, strict=True)}
        yield first
    optional = [item for item in cls.parameters() if not item.required]
    for values in itertools.product(*pools):
        first = {item.name: value for item, value in zip(required, values, strict=True)}
        for item in optional:
            if item.default in (None, (), {}) and item.name != "key_file":
                for value in _pool(item.type, people):
                    yield first | {item.name: value}


def _pool(kind: Any, people: str) -> list[Any]:
    """Return what is tried for a parameter of a type."""
    is_union = get_origin(kind) not in (tuple, Mapping) and get_args(kind)
    for option in get_args(kind) if is_union else (kind,):
        inner = get_args(option)
        if get_origin(option) is Mapping:
            return [{"age": [0, 100]}, {"age": 1}]
        if get_origin(option) is tuple:
            return LISTS if inner[0] is str else [[0, 5000]]
        if option in (int, float):
            return NUMBERS
        if option is str:
            return TEXTS
        if option is Any:
            return [people]
    return []


def jobs_of(family: str, entry, folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give for each member a declaration of a job with it that can be done."""
    people = source(folder).open()
    for name, cls in members(family).items():
        last: dc.DiscreetError | None = None
        tried = (
            declared
            for settings in settings_of(cls, str(folder / "people.csv"))
            for declared in entry({name: settings} if settings else name)
        )
        for declared in tried:
            try:
                job(declared).run(people)
            except dc.DiscreetError as error:
                last = error
                continue
            yield f"{declared['kind']}-{name}", declared
            break
        else:
            if last is not None and last.code == "parameter-type" and _takes_an_object(cls):
                continue
            raise AssertionError(
                f"no settings of {family} {name} were found that can be run: {last}"
            )


def _takes_an_object(cls: type) -> bool:
    """Whether a member is made with what only Python has, such as the release of `permute`."""
    return any(item.required and item.type is Any for item in cls.parameters())


def job(declared: dict[str, Any]):
    """Return the job of a declaration."""
    settings = {key: value for key, value in declared.items() if key != "kind"}
    return build(members("job")[declared["kind"]], {"name": declared["kind"], **settings})


def source(folder: Path) -> Source:
    return build(Source, DATA).located(folder)


# -- typed ------------------------------------------------------------------------------------------
def typed(declared: dict[str, Any], folder: Path) -> list[str]:
    """Return the words of a command that says what a declaration says."""
    cls = members("job")[declared["kind"]]
    words = cls.command.split()
    arguments = [str(folder / DATA["source"])]
    for item in cls.parameters():
        given = declared.get(item.name)
        if given is False and item.default is True:
            words.append(f"--no-{item.name}")
        if given is None or given is False:
            continue
        if item.option.isupper():
            arguments.append(str(folder / given))
            continue
        option = item.option.split("/")[0] or ("-" if len(item.name) == 1 else "--") + item.name
        if given is True:
            words.append(option)
        elif base_of(item.type) is not None:
            for one in given if isinstance(given, list) else [given]:
                words += [option, member_text(one)]
        elif isinstance(given, list) and given and isinstance(given[0], list):
            words += [word for one in given for word in (option, _listed(one))]
        elif isinstance(given, list):
            words += [option, _listed(given)]
        else:
            words += [option, str(folder / given if item.file else given)]
    for column, role in DATA["roles"].items():
        words += ["--role", f"{column}={role}"]
    words += ["--hierarchy", f"region={folder / 'region.hrc'}", "--hierarchy", "age widths=10,40"]
    words += ["--hierarchy", f"sex={folder / 'sex.hrc'}"]
    for option in ("domains", "bounds"):
        for column, values in DATA[option].items():
            words += [f"--{option}", f"{column}={_listed(values)}"]
    words += [word for column in DATA["vouch"] for word in ("--vouch", column)]
    return [*words[: len(cls.command.split())], *arguments, *words[len(cls.command.split()) :]]


def base_of(kind: Any) -> Any:
    """Return the base class of the family whose members a parameter takes; None if it takes none."""
    if isinstance(kind, type) and hasattr(kind, "family_name"):
        return kind
    return next((base for one in get_args(kind) if (base := base_of(one)) is not None), None)


def member_text(written: Any) -> str:
    """Return a member as the command line takes it."""
    if isinstance(written, str):
        return written
    ((name, settings),) = written.items()
    words = [name]
    for key, value in settings.items():
        if isinstance(value, dict):
            words += [f"{key}.{entry}={_listed(one)}" for entry, one in value.items()]
        else:
            words.append(f"{key}={_listed(value)}")
    return " ".join(shlex.quote(word) for word in words)


def _listed(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def by_command(declared: dict[str, Any], folder: Path, place: Path) -> None:
    done = CliRunner().invoke(application(), [*typed(declared, folder), "-o", str(place)])
    if done.exception is not None:
        raise done.exception
    assert done.exit_code == 0, done.output


# -- written ----------------------------------------------------------------------------------------
def by_policy(declared: dict[str, dict[str, Any]], folder: Path, place: Path) -> None:
    """Run all declarations as one policy file."""
    sections: dict[str, list[dict[str, Any]]] = {"releases": [], "reports": []}
    for name, one in declared.items():
        sections[members("job")[one["kind"]].section].append({"name": name, **one})
    # JSON is YAML, and has no aliases, which a policy may not have.
    (folder / "policy.yaml").write_text(json.dumps({"data": DATA, **sections}, indent=1))
    run_policy(folder / "policy.yaml", place)


# -- compared ---------------------------------------------------------------------------------------
def contents(place: Path) -> dict[str, bytes]:
    """Return every file below a folder; times are left out, a workbook is its parts."""
    if place.is_file():
        return {"": _untimed(place)}
    found = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if path.suffix == ".xlsx":
            with zipfile.ZipFile(path) as book:
                for part in sorted(set(book.namelist()) - {"docProps/core.xml"}):
                    found[f"{name}/{part}"] = book.read(part)
        elif path.is_file():
            found[name] = _untimed(path)
    return found


def _untimed(path: Path) -> bytes:
    if path.suffix == ".html":
        return re.sub(rb"\d{4}-\d\d-\d\dT[\d:+]+", b"", path.read_bytes())
    if path.suffix != ".json":
        return path.read_bytes()

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            timed = ("time", "seconds", "median_ms", "p95_ms")
            return {key: without(one) for key, one in value.items() if key not in timed}
        return [without(one) for one in value] if isinstance(value, list) else value

    return json.dumps(without(json.loads(path.read_text()))).encode()
