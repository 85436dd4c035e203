"""Rules, methods, models and other members as they are typed on the command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.errors import InputError
from discreet.registry import build, members

__all__ = ["parse_member"]


def parse_member(kind: Any, text: str) -> Any:
    """Make a member from `name`, `name=value` or `name parameter=value …`.

    A value is that of the first parameter; several with commas are those of the first ones. An
    entry of a parameter that is a mapping is written `parameter.entry=value`, sets of names with a
    plus, and `parameter=@file` takes the value from a JSON or YAML file. Any: the family's base
    class, and a member of it.

    >>> from discreet.audit.rules import Rule
    >>> parse_member(Rule, "p-percent=10").p, parse_member(Rule, "dominance n=2 k=85").k
    (10.0, 85.0)
    >>> parse_member(Rule, "dominance=2,85").n
    2
    >>> from discreet.microdata.methods import Anonymization
    >>> parse_member(Anonymization, "generalization highest.age=2 highest.sex=0").highest
    {'age': 2, 'sex': 0}
    >>> parse_member(Anonymization, "local-suppression key_sets=sex+age,race").key_sets
    (('sex', 'age'), ('race',))
    """
    words = shlex.split(text)
    if not words or any("=" not in word for word in words[1:]):
        raise InputError(
            f"{text!r} is not a name with parameters",
            code="malformed-member",
            hint="write name, name=value or 'name parameter=value …'",
        )
    name, _, first = words[0].partition("=")
    found = members(kind.family_name).get(name)
    expected = {} if found is None else {item.name: item for item in found.parameters()}
    settings: dict[str, Any] = {}
    for word in words[1:]:
        key, _, value = word.partition("=")
        _put(settings, key, read_value(value), expected)
    if first:
        values = first.split(",")
        names = list(expected) or ["value"]
        if expected and "tuple" in str(expected[names[0]].type):
            values = [first]
        if expected and len(values) > len(expected):
            raise InputError(
                f"{name} has {len(expected)} parameters, found {len(values)} values",
                code="malformed-member",
                hint="name them: 'name parameter=value …'",
            )
        settings = dict(zip(names, values, strict=False)) | settings
    return build(kind, {"name": name, **settings})


def _put(settings: dict[str, Any], key: str, value: Any, expected: Mapping[str, Any]) -> None:
    """Set a parameter, or an entry of one: `highest.age`."""
    name, *entries = key.split(".")
    field = expected.get(name.replace("-", "_"))
    if not entries:
        if field is not None and "tuple[tuple" in str(field.type) and isinstance(value, str):
            value = [part.split("+") for part in value.split(",")]
        settings[key] = value
        return
    place = settings.setdefault(name, {})
    for entry in entries[:-1]:
        place = place.setdefault(entry, {})
    place[entries[-1]] = _plain(value) if isinstance(value, str) else value


def _plain(text: str) -> Any:
    """Return a number, a list of numbers, or the text."""
    if "," in text:
        return [_plain(part) for part in text.split(",")]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def read_value(text: str) -> Any:
    """Return what was typed, or what is in the file that was named."""
    if not text.startswith("@"):
        return text
    import yaml

    path = Path(text[1:])
    if not path.is_file():
        raise InputError(f"there is no file {path}", code="file-not-found", file=path)
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError):
        raise InputError(
            "this is neither JSON nor YAML",
            code="bad-file",
            hint="write a mapping, such as {age: 2}",
            file=path,
        ) from None
