"""From a policy file to a checked `Policy`; every mistake with its line and column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic

from discreet.app.policy.document import LARGEST, Document, Place, parse, require_size
from discreet.app.policy.model import SHARED, About, Policy, Server, UserEntry
from discreet.data.file_names import no_file_name
from discreet.data.source import Source
from discreet.errors import EngineError, InputError, nearest
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.search.declaration import SearchPolicy
from discreet.registry import Declaration, Member, Record, declare, members

__all__ = [
    "APART",
    "HANDOVER",
    "REPORTS",
    "SECTIONS",
    "kinds",
    "load_policy",
    "misnamed",
    "read_policy",
]

#: The folder in which reports are written, beside the folders of the releases.
REPORTS = "reports"
#: The folder of the documents that go with the releases.
HANDOVER = "handover"
#: What `discreet release` writes beside the folders of the releases.
_TAKEN = {REPORTS, HANDOVER, "record.json", "policy.yaml"}
#: The sections that are lists, and the family whose members may stand there.
SECTIONS = {
    "releases": "job",
    "reports": "job",
    "gateways": "service",
    "retrieval": "service",
}
#: Sections of parties that need no data of their own.
APART: dict[str, type[Record]] = {"joint": JointPolicy, "search": SearchPolicy}
#: Sections whose entries are opened, not written, and are named among themselves.
#: Mistakes that are told; of more only their number.
_TOLD = 100
_OPENED = ("gateways", "retrieval")


def load_policy(path: str | Path) -> Policy:
    """Read and validate a policy file.

    Raises
    ------
    InputError
        With `mistakes`: one line for each, `file:line:column: what; what to write`.
    """
    return validate(parse(read_policy(path), file=path))


def read_policy(path: str | Path) -> str:
    """Return the text of a policy file; no more of it is read than a policy may have."""
    try:
        with Path(path).open("rb") as file:
            held = file.read(4 * LARGEST + 1)
        require_size(len(held) // 4, path)
        return held.decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
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
    except OSError as error:
        raise EngineError(
            f"the policy file cannot be read: {error.strerror}", code="cannot-read", file=path
        ) from None


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
    extensions = _words(data.get("extensions"))
    names: dict[str, str] = {}
    shared = {name: data[name] for name in SHARED if data.get(name) is not None}
    listed = {
        section: _listed(section, data.pop(section, None), extensions, names, mistakes, shared)
        for section in SECTIONS
    }
    for section, cls in APART.items():
        if data.get(section) is not None:
            made = _built(cls, data[section], (section,), extensions, mistakes)
            data[section] = made if isinstance(made, cls) else None
            # An analyst, an independent node and whoever searches hold no records.
            data.setdefault("data", Source(""))
    source = _source(data.pop("data", None), mistakes)
    policy = None
    try:
        if source is not None:
            policy = Policy(**data, **listed, data=source)
        else:  # what else is wrong shall be told, too
            Policy(**data, **listed, data=Source(""))
    except pydantic.ValidationError as error:
        wrong = error.errors()
        mistakes += [_pydantic_mistake(item) for item in wrong[:_TOLD]]
        if len(wrong) > _TOLD:
            mistakes.append(((), f"there are {len(wrong) - _TOLD:,} mistakes more"))
    except TypeError:
        mistakes.append(((), "a key of the policy is not a word"))
    if mistakes or policy is None:
        raise _all(document, mistakes)
    return policy


def kinds(section: str, extensions: Sequence[str] = ()) -> dict[str, type[Member]]:
    """Return the jobs or services that a section may list, by name."""
    found = members(SECTIONS[section], extensions)
    return {name: cls for name, cls in found.items() if getattr(cls, "section", "") == section}


def _source(data: Any, mistakes: list[tuple[Place, str]]) -> Source | None:
    """Build the section `data`; mistakes in different settings are all told."""
    if data is None:
        mistakes.append(((), "data is missing"))
        return None
    if isinstance(data, Source):
        return data
    source = _built(Source, data, ("data",), [], mistakes)
    if isinstance(source, Source) and not source.source.strip():
        # An empty path is the folder one happens to stand in.
        mistakes.append((("data",), "data names no source: write a file or an address"))
    return source  # type: ignore[return-value]  # of the class given


def _words(given: Any) -> list[str]:
    """Return a list of texts, or none of them where it is something else, which pydantic tells.

    Any: what the policy says.
    """
    is_list = isinstance(given, list) and all(isinstance(word, str) for word in given)
    return list(given) if is_list else []


def misnamed(name: Any, section: str, taken: Mapping[str, str]) -> str:
    """Return why a name cannot be that of an entry and of the folder or file made for it.

    `taken` has the names of earlier entries as file systems that ignore case compare them. Any: what
    the policy says.
    """
    if not isinstance(name, str) or not name.strip():
        return "an entry needs a `name` that can be a folder's"
    if wrong := no_file_name(name):
        return wrong
    same = name.casefold()
    if section not in _OPENED and same in _TAKEN:
        return f"{name!r} is written by discreet itself; choose another"
    if section == "reports" and same.endswith("-explained"):
        return f"{name!r} may be what explains a release; choose another"
    if same in taken:
        return f"the name {name!r} is used twice"
    return ""


def _listed(
    section: str,
    entries: Any,
    extensions: list[str],
    names: dict[str, str],
    mistakes: list[tuple[Place, str]],
    shared: Mapping[str, Any],
) -> dict[str, Any]:
    """Build the jobs of one section; entries are a list of mappings with `name` and `kind`.

    Releases and reports share their names. `shared` is said once for all. Any: what the policy says; jobs and services.
    """
    if entries is None:
        return {}
    if not isinstance(entries, list):
        mistakes.append(((section,), f"{section} is a list; start each entry with `- name:`"))
        return {}
    found: dict[str, Any] = {}
    known = kinds(section, extensions)
    for number, entry in enumerate(entries):
        place: Place = (section, number)
        if len(mistakes) > _TOLD:
            mistakes.append((place, "there are more mistakes from here on"))
            break
        if not isinstance(entry, Mapping):
            mistakes.append((place, "an entry is a mapping with `name` and `kind`"))
            continue
        name, kind = entry.get("name"), entry.get("kind")
        # Reports and releases are named together by `--only`; what is opened is not.
        taken = names if section not in _OPENED else {one.casefold(): one for one in found}
        wrong = misnamed(name, section, taken)
        if wrong or not isinstance(name, str):
            mistakes.append(((*place, "name"), wrong))
            continue
        taken[name.casefold()] = name
        if not isinstance(kind, str) or kind not in known:
            guess = nearest(str(kind), known)
            hint = f"write {guess!r}" if guess else "kinds are " + (", ".join(known) or "none yet")
            mistakes.append(
                ((*place, "kind"), f"{str(kind)[:40]!r} is not a kind of {section}; {hint}")
            )
            continue
        settings = {key: value for key, value in entry.items() if key not in ("name", "kind")}
        taken_over = {item.name for item in known[kind].parameters()} & shared.keys()
        settings = {key: shared[key] for key in SHARED if key in taken_over} | settings
        built = _built(known[kind], settings, place, extensions, mistakes)
        if built is not None:
            found[name] = built
    return found


def _built(
    kind: type[Declaration],
    settings: Any,
    place: Place,
    extensions: list[str],
    mistakes: list[tuple[Place, str]],
) -> Declaration | None:
    """Build one declaration; mistakes in different settings are all told, not only the first."""
    wrong: list[InputError] = []
    made: Declaration | None = None
    try:
        made = declare(kind, settings, path=place, enable=extensions, mistakes=wrong)
    except InputError as error:
        wrong.append(error)
    mistakes += [_registry_mistake(error, place) for error in wrong]
    return None if wrong else made


def _registry_mistake(error: InputError, place: Place) -> tuple[Place, str]:
    where = error.facts.get("path", place)
    parameter = error.facts.get("parameter")
    if parameter is not None and where == place:
        where = (*place, parameter)
    return where, error.message + (f"; {error.hint}" if error.hint else "")


def _pydantic_mistake(item: Any) -> tuple[Place, str]:
    # Any: pydantic's own error record.
    place = tuple(item["loc"])
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        parts: dict[Place, type[pydantic.BaseModel]] = {
            (): Policy,
            ("server",): Server,
            ("about",): About,
        }
        model = parts.get(place[:-1], UserEntry)
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
