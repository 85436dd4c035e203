"""From plain data to declarations: what a policy, a command line and a caller write."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_origin

from discreet.errors import InputError, nearest
from discreet.registry.annotations import fits, is_optional, options
from discreet.registry.declarations import Declaration, Record
from discreet.registry.finding import members

__all__ = [
    "build",
    "declare",
]


def build(
    kind: Any,
    data: Any,
    *,
    path: tuple[str | int, ...] = (),
    enable: Sequence[str] = (),
    mistakes: list[InputError] | None = None,
) -> Any:
    """Make a value of an annotated type from plain data, as a policy file or a command gives it.

    A member may be written ``name``, ``name: value of its first parameter``,
    ``name: {parameter: value, …}`` or ``{name: …, parameter: value, …}``. Errors carry the `path`
    of the mistake, from which the policy file finds line and column; with a list of `mistakes` all
    of them are collected there, and what is returned then means nothing.

    Any: the types come from annotations at run time.
    """
    if data is None and is_optional(kind):
        return None
    known = [option for option in options(kind) if option is not type(None)]
    if len(known) == 1 and known[0] is not kind:  # what may be missing is otherwise as it is
        return build(known[0], data, path=path, enable=enable, mistakes=mistakes)
    lists = [option for option in known if get_origin(option) is tuple]
    if len(known) > 1 and lists and isinstance(data, list):
        # The type allows one value, a list, or a list of lists: take the first that the data fits.
        for option in lists[:-1]:
            if fits(made := build(option, data, path=path, enable=enable), option):
                return made
        return build(lists[-1], data, path=path, enable=enable, mistakes=mistakes)
    if isinstance(kind, type) and issubclass(kind, enum.Enum) and not isinstance(data, kind):
        return _build_choice(kind, data, path, mistakes)
    for option in known:
        if _is_declaration(option) and not isinstance(data, option):
            return _build_member(option, data, path, enable, mistakes)
    origin = get_origin(kind)
    if origin in (tuple, list, Sequence) and isinstance(data, list | tuple):
        inner = get_args(kind)
        if not (origin is tuple and len(inner) > 1 and inner[1] is not Ellipsis):
            items = [
                build(inner[0], item, path=(*path, n), enable=enable, mistakes=mistakes)
                for n, item in enumerate(data)
            ]
            return items if origin is list else tuple(items)
        return tuple(data)
    if origin is tuple and isinstance(data, str) and "," in data:
        # People and commands write "a,b" for a list; a name that holds a comma needs a real list.
        return build(kind, [part.strip() for part in data.split(",")], path=path, enable=enable)
    if origin is tuple and not isinstance(data, list | tuple | dict):
        return (build(get_args(kind)[0], data, path=path, enable=enable),)
    if origin in (dict, Mapping) and isinstance(data, Mapping):
        inner = get_args(kind)[1]
        return {
            key: build(inner, value, path=(*path, str(key)), enable=enable, mistakes=mistakes)
            for key, value in data.items()
        }
    if isinstance(data, list) and not fits(data, kind):
        return tuple(data)
    if isinstance(data, str) and not fits(data, kind):
        return _from_text(data, kind)
    if isinstance(data, float) and data.is_integer() and not fits(data, kind):
        return int(data)  # JSON does not tell 5.0 from 5
    return data


def _is_declaration(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Declaration)


def _build_choice(
    kind: type[enum.Enum],
    data: Any,
    path: tuple[str | int, ...],
    mistakes: list[InputError] | None,
) -> Any:
    words = [str(choice.value) for choice in kind]
    if data in words:
        return kind(data)
    guess = nearest(str(data), words)
    error = InputError(
        f"{data!r} is not a {kind.__name__.lower()}",
        code=f"unknown-{kind.__name__.lower()}",
        hint=f"write {guess!r}" if guess else "choose one of " + ", ".join(words),
        path=path,
    )
    if mistakes is None:
        raise error
    mistakes.append(error)
    return None


def _build_member(
    base: type[Declaration],
    data: Any,
    path: tuple[str | int, ...],
    enable: Sequence[str],
    mistakes: list[InputError] | None,
) -> Declaration | None:
    found: list[InputError] = []
    try:
        made = _made_member(base, data, path, enable, found)
    except InputError as error:
        error.facts.setdefault("path", path)
        found.append(error)
    if not found:
        return made
    if mistakes is None:
        raise found[0]
    mistakes += found
    return None


def _made_member(
    base: type[Declaration],
    data: Any,
    path: tuple[str | int, ...],
    enable: Sequence[str],
    mistakes: list[InputError],
) -> Declaration | None:
    """Find the member that is named, and make it from its settings."""
    name, given, inner = _spelled(base, data, path)
    folder = getattr(base, "family_name", None)
    if folder is None or (base.declared_name() and base.declared_name() == name):
        cls: type[Declaration] = base
    else:
        available = members(folder, enable)
        if name not in available:
            guess = nearest(name, available)
            raise InputError(
                f"there is no {folder} named {name!r}",
                code="unknown-member",
                hint=f"write {guess!r}" if guess else "choose one of " + ", ".join(available),
                path=path,
            )
        cls = available[name]
    return declare(cls, given, path=inner, enable=enable, mistakes=mistakes)


def declare(
    cls: type[Declaration],
    given: Any,
    *,
    path: tuple[str | int, ...],
    enable: Sequence[str],
    mistakes: list[InputError],
) -> Declaration | None:
    """Make a declaration from its settings, or None where they have mistakes, which are collected.

    Any: a mapping of settings, or the value of the first one.
    """
    name, inner = cls.declared_name(), path
    expected = {item.name: item for item in cls.parameters()}
    said = given
    if not isinstance(given, Mapping):
        if not expected:
            raise InputError(f"{name} has no parameters", code="unknown-parameter", path=inner)
        given = {next(iter(expected)): given}
    values = {}
    for key, value in given.items():
        field = str(key).replace("-", "_")
        place = (*inner, str(key)) if given is said else inner
        if field not in expected:
            guess = nearest(field, expected)
            mistakes.append(
                InputError(
                    f"{name} has no parameter {key!r}",
                    code="unknown-parameter",
                    hint=f"write {guess!r}" if guess else "choose one of " + ", ".join(expected),
                    path=place,
                )
            )
            continue
        wrong: list[InputError] = []
        values[field] = build(
            expected[field].type, value, path=place, enable=enable, mistakes=wrong
        )
        try:
            if not wrong:
                expected[field].require(values[field], owner=name, inside=True)
        except InputError as error:
            error.facts["path"] = place
            wrong.append(error)
        mistakes += wrong
    missing = [item.name for item in expected.values() if item.required and item.name not in values]
    if missing:
        text = f"{name} needs {', '.join(missing)}"
        mistakes.append(InputError(text, code="missing-parameter", path=inner))
    if mistakes:
        return None
    try:
        return cls(**values)
    except InputError as error:
        key = error.facts.get("parameter")
        error.facts.setdefault("path", (*inner, key) if key else inner)
        raise


def _spelled(
    base: type[Declaration], data: Any, path: tuple[str | int, ...]
) -> tuple[str, Any, tuple[str | int, ...]]:
    if issubclass(base, Record):
        if isinstance(data, str) and base.spelled:
            return base.declared_name(), {base.spelled: data}, path
        if isinstance(data, Mapping):
            return base.declared_name(), data, path
        raise InputError(
            f"{base.declared_name()} is a mapping, found {data!r}",
            code="parameter-type",
            hint="write `setting: value` lines",
            path=path,
        )
    if isinstance(data, str):
        return data, {}, path
    if isinstance(data, Mapping) and "name" in data:
        return str(data["name"]), {k: v for k, v in data.items() if k != "name"}, path
    if isinstance(data, Mapping) and len(data) == 1:
        name, given = next(iter(data.items()))
        return str(name), {} if given is None else given, (*path, str(name))
    kind = getattr(base, "family_name", base.declared_name())
    raise InputError(
        f"a {kind} is needed here, found {data!r}",
        code="malformed-member",
        hint="write its name, or name: {parameter: value}",
        path=path,
    )


def _from_text(text: str, kind: Any) -> Any:
    # The command line gives every value as text; the annotation says what was meant.
    for option in options(kind):
        if option is bool and text.lower() in ("true", "yes", "false", "no"):
            return text.lower() in ("true", "yes")
        try:
            if option is int:
                return int(text)
            if option is float:
                return float(text)
        except ValueError:
            continue
        if get_origin(option) is tuple:
            return build(
                option, [_from_text(t.strip(), get_args(option)[0]) for t in text.split(",")]
            )
    return text
