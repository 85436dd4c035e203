"""From a policy file to a checked `Policy`; every mistake with its line and column."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic

from discreet.app.policy.document import Document, Place, parse
from discreet.app.policy.model import HierarchySource, Policy, Server, Source, UserEntry
from discreet.data.job import Job
from discreet.errors import InputError, nearest
from discreet.registry import build, families, members

__all__ = ["load_policy"]


def load_policy(path: str | Path) -> Policy:
    """Read and validate a policy file.

    Raises
    ------
    InputError
        With `mistakes`: one line for each, `file:line:column: what; what to write`.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(
            "there is no such policy file", code="missing-file", hint="check the path", file=path
        ) from None
    except (UnicodeDecodeError, IsADirectoryError):
        raise InputError(
            "the policy file is not UTF-8 text",
            code="policy-not-text",
            hint="save it as UTF-8",
            file=path,
        ) from None
    return validate(parse(text, file=path))


def validate(document: Document) -> Policy:
    """Return the policy a document declares, or all of its mistakes."""
    if not isinstance(document.data, dict):
        raise InputError(
            "a policy is a mapping",
            code="policy-shape",
            hint="start with `data:` and `releases:`",
            file=document.file,
        )
    mistakes: list[tuple[Place, str]] = []
    data = dict(document.data)
    extensions = data.get("extensions") or []
    jobs = {
        section: _jobs(section, data.pop(section, None), extensions, mistakes)
        for section in ("releases", "gateways")
    }
    policy = None
    try:
        policy = Policy(**data, **jobs)
    except pydantic.ValidationError as error:
        mistakes += [_pydantic_mistake(item) for item in error.errors()]
    except TypeError:
        mistakes.append(((), "a key of the policy is not a word"))
    if mistakes or policy is None:
        raise _all(document, mistakes)
    return policy


def _jobs(
    section: str, entries: Any, extensions: list[str], mistakes: list[tuple[Place, str]]
) -> dict[str, Job]:
    """Build the jobs of one section; entries are a list of mappings with `name` and `kind`."""
    if entries is None:
        return {}
    if not isinstance(entries, list):
        mistakes.append(((section,), f"{section} is a list; start each entry with `- name:`"))
        return {}
    found: dict[str, Job] = {}
    kinds = {n: c for n, c in _job_kinds(extensions).items() if c.section == section}
    for number, entry in enumerate(entries):
        place: Place = (section, number)
        if not isinstance(entry, Mapping):
            mistakes.append((place, "an entry is a mapping with `name` and `kind`"))
            continue
        name, kind = entry.get("name"), entry.get("kind")
        if not isinstance(name, str) or not name.strip() or "/" in name or name.startswith("."):
            mistakes.append((place, "an entry needs a `name` that can be a folder's"))
            continue
        if name in found:
            mistakes.append(((*place, "name"), f"the name {name!r} is used twice"))
            continue
        if kind not in kinds:
            guess = nearest(str(kind), kinds)
            hint = f"write {guess!r}" if guess else "kinds are " + (", ".join(kinds) or "none yet")
            mistakes.append(((*place, "kind"), f"{kind!r} is not a kind of {section}; {hint}"))
            continue
        settings = {key: value for key, value in entry.items() if key not in ("name", "kind")}
        built = _build(kinds[str(kind)], settings, place, extensions, mistakes)
        if built is not None:
            found[name] = built
    return found


def _job_kinds(extensions: list[str]) -> dict[str, type[Job]]:
    return members("job", extensions) if "job" in families() else {}  # type: ignore[return-value]  # the family's base is Job


def _build(
    kind: type[Job],
    settings: dict[str, Any],
    place: Place,
    extensions: list[str],
    mistakes: list[tuple[Place, str]],
) -> Job | None:
    """Build one job; mistakes in different settings are all told, not only the first."""
    before = len(mistakes)
    known = {item.name: item for item in kind.parameters()}
    values = {}
    for key, value in settings.items():
        field = key.replace("-", "_")
        if field not in known:
            guess = nearest(field, known)
            hint = f"write {guess!r}" if guess else "choose one of " + ", ".join(known)
            mistakes.append(((*place, key), f"{kind.name} has no setting {key!r}; {hint}"))
            continue
        wrong: list[InputError] = []
        try:
            values[field] = build(
                known[field].type, value, path=(*place, key), enable=extensions, mistakes=wrong
            )
            if not wrong:
                known[field].require(values[field], owner=kind.name)
        except InputError as error:
            error.facts.setdefault("path", (*place, key))
            wrong.append(error)
        mistakes += [_registry_mistake(error, (*place, key)) for error in wrong]
    given = {key.replace("-", "_") for key in settings}
    missing = [n for n, item in known.items() if item.required and n not in given]
    if missing:
        mistakes.append((place, f"{kind.name} needs {', '.join(missing)}"))
    if len(mistakes) > before:
        return None
    try:
        return kind(**values)
    except InputError as error:
        mistakes.append(_registry_mistake(error, place))
        return None


def _registry_mistake(error: InputError, place: Place) -> tuple[Place, str]:
    where = error.facts.get("path", place)
    parameter = error.facts.get("parameter")
    if parameter is not None and where == place:
        where = (*place, parameter)
    return where, error.message + (f"; {error.hint}" if error.hint else "")


def _pydantic_mistake(item: Any) -> tuple[Place, str]:
    # Any: pydantic's own error record. Places inside a union carry the class name; YAML does not.
    place = tuple(p for p in item["loc"] if p not in ("HierarchySource", "list[HierarchySource]"))
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        parts: dict[Place, type[pydantic.BaseModel]] = {
            (): Policy,
            ("data",): Source,
            ("server",): Server,
        }
        inner = UserEntry if place[:1] == ("server",) else HierarchySource
        model = parts.get(place[:-1], inner)
        guess = nearest(str(place[-1]), model.model_fields)
        message = f"there is no setting {place[-1]!r}"
        message += (
            f"; write {guess!r}" if guess else "; choose one of " + ", ".join(model.model_fields)
        )
    elif item["type"] == "missing":
        message = f"{place[-1]} is missing"
        place = place[:-1]
    return place, message[0].lower() + message[1:]


def _all(document: Document, mistakes: list[tuple[Place, str]]) -> InputError:
    lines = []
    for place, message in mistakes:
        line, column = document.position(place)
        lines.append((line, column, message))
    lines.sort()
    shown = [f"{document.file}:{line}:{column}: {message}" for line, column, message in lines]
    count = f"{len(lines)} mistakes" if len(lines) > 1 else "a mistake"
    return InputError(
        f"the policy has {count}: {lines[0][2]}",
        code="policy-invalid",
        hint="correct it and run `discreet check` again",
        file=document.file,
        line=lines[0][0],
        mistakes=shown,
        positions=[{"line": a, "column": b, "message": c} for a, b, c in lines],
    )
