"""Rules, methods and hierarchies as they are typed on the command line."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.data.hierarchy import Hierarchy
from discreet.errors import InputError
from discreet.registry import build

__all__ = ["parse_hierarchies", "parse_member", "parse_roles"]


def parse_member(kind: Any, text: str) -> Any:
    """Make a member from `name`, `name=value` or `name parameter=value …`.

    A value is that of the first parameter; several with commas are those of the first ones. Any:
    the family's base class, and a member of it.

    >>> from discreet.audit.rules import Rule
    >>> parse_member(Rule, "p-percent=10").p, parse_member(Rule, "dominance n=2 k=85").k
    (10.0, 85.0)
    >>> parse_member(Rule, "dominance=2,85").n
    2
    """
    words = shlex.split(text)
    if not words or any("=" not in word for word in words[1:]):
        raise InputError(
            f"{text!r} is not a name with parameters",
            code="malformed-member",
            hint="write name, name=value or 'name parameter=value …'",
        )
    name, _, first = words[0].partition("=")
    settings: dict[str, str] = dict(word.split("=", 1) for word in words[1:])
    if first:
        from discreet.registry import members

        found = members(kind.family_name).get(name)
        expected = [] if found is None else list(found.parameters())
        values = first.split(",")
        if expected and "tuple" in str(expected[0].type):
            values = [first]
        if expected and len(values) > len(expected):
            raise InputError(
                f"{name} has {len(expected)} parameters, found {len(values)} values",
                code="malformed-member",
                hint="name them: 'name parameter=value …'",
            )
        names = [item.name for item in expected] or ["value"]
        settings = dict(zip(names, values, strict=False)) | settings
    return build(kind, {"name": name, **settings})


def parse_roles(given: Sequence[str]) -> dict[str, str] | None:
    """Read `column=role` options; None where there are none, so that roles are guessed.

    >>> parse_roles(["district=quasi"])
    {'district': 'quasi'}
    """
    found: dict[str, str] = {}
    for text in given:
        name, _, role = text.partition("=")
        if not name or not role:
            raise InputError(
                f"{text!r} does not give a column its role",
                code="malformed-role",
                hint="write column=role, such as age=quasi",
            )
        found[name] = role
    return found or None


def parse_hierarchies(given: Sequence[str]) -> dict[str, Hierarchy]:
    """Read `attribute=file` options: .hrc, or a file of child,parent pairs or of ARX lines."""
    found: dict[str, Hierarchy] = {}
    for text in given:
        name, _, file = text.partition("=")
        if not name or not file:
            raise InputError(
                f"{text!r} does not name a hierarchy",
                code="malformed-hierarchy",
                hint="write attribute=file, such as region=region.hrc",
            )
        found[name] = _read(Path(file))
    return found


def _read(path: Path) -> Hierarchy:
    if path.suffix.lower() == ".hrc":
        return Hierarchy.from_hrc(path)
    if not path.is_file():
        raise InputError(f"there is no file {path}", code="file-not-found", file=path)
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = file.readline()
    return Hierarchy.from_pairs(path) if "parent" in first.lower() else Hierarchy.from_arx(path)
