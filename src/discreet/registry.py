"""Families of methods, found by looking into folders.

A *family* (sensitivity rules, table methods, masking methods, privacy models, guards, attacks …)
is a folder whose package says `FAMILY = Family("rule", Rule)`. A *member* is one file in that
folder holding one frozen dataclass below the family's base class: its fields are its parameters,
its class attributes `name` and `reference` say how it is typed and where it comes from, its
docstring says what it does. Nothing lists the members: the command line, the policy file, the
manual and the contract tests all ask the registry, which looks.

Extensions are members installed elsewhere under the entry-point group ``discreet.<family>``. Only
those named in a policy's or a caller's `enable` list are loaded: installing a package must not be
enough to run its code on other people's secrets.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.metadata
import pkgutil
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from discreet.errors import InputError, nearest

__all__ = ["Family", "Member", "Parameter", "build", "families", "lazy", "parameter"]

Base = TypeVar("Base", bound="Member")
_MISSING = dataclasses.MISSING


def parameter(
    default: Any = _MISSING,
    *,
    help: str = "",
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    below: float | None = None,
    choices: Sequence[Any] | None = None,
) -> Any:
    """Declare a parameter of a member: default, meaning and allowed range beside the field.

    `low` and `high` are included in the range, `above` and `below` are not. Any: what it returns
    stands where a value of the field's own type stands, as with `dataclasses.field`.
    """
    rules = {"low": low, "high": high, "above": above, "below": below, "choices": choices}
    metadata = {"help": help, **{key: rule for key, rule in rules.items() if rule is not None}}
    if isinstance(default, list | dict | set):
        return dataclasses.field(default_factory=lambda: default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a member, for forms, manual pages and the policy's JSON Schema."""

    name: str
    type: Any
    required: bool
    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[Any, ...] | None = None

    @property
    def range(self) -> str:
        """The allowed values in words; empty where anything of the type goes."""
        if self.choices is not None:
            return "one of " + ", ".join(str(choice) for choice in self.choices)
        bounds = (
            ("at least", self.low),
            ("above", self.above),
            ("at most", self.high),
            ("below", self.below),
        )
        return " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)

    def allows(self, value: Any) -> bool:
        """Whether a value lies in the declared range."""
        if value is None:
            return True
        if self.choices is not None:
            return value in self.choices
        if not isinstance(value, int | float):
            return True
        return (
            value == value
            and (self.low is None or value >= self.low)
            and (self.above is None or value > self.above)
            and (self.high is None or value <= self.high)
            and (self.below is None or value < self.below)
        )

    def require(self, value: Any, *, owner: str) -> None:
        """Raise an InputError if a value is not of the declared type or range."""
        wanted, code = "", ""
        if not _fits(value, self.type):
            wanted, code = describe_type(self.type), "parameter-type"
        elif not self.allows(value):
            wanted, code = self.range, "parameter-range"
        if code:
            message = f"{owner}: {self.name} must be {wanted}, found {value!r}"
            raise InputError(message, code=code, parameter=self.name)


@dataclasses.dataclass(frozen=True)
class Member:
    """Base of the base class of every family: checks parameters when made.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class MinimumSize(Member):
    ...     '''A group is safe when it is large enough.'''
    ...
    ...     name: ClassVar[str] = "minimum-size"
    ...     n: int = parameter(3, help="smallest safe size", low=1)
    >>> MinimumSize(5).n
    5
    >>> MinimumSize(0)
    Traceback (most recent call last):
    discreet.errors.InputError: minimum-size: n must be at least 1, found 0 [parameter-range]
    """

    name: ClassVar[str] = ""
    reference: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for item in self.parameters():
            value = getattr(self, item.name)
            if isinstance(value, list) and _fits(tuple(value), item.type):
                # People write lists; a frozen member keeps what nobody can change.
                value = tuple(value)
                object.__setattr__(self, item.name, value)
            item.require(value, owner=self.name)

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        """Return the member's parameters in the order of its fields."""
        return _parameters(cls)  # type: ignore[arg-type]  # classes hash, whatever mypy thinks

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the docstring."""
        return (cls.__doc__ or "").strip().splitlines()[0]

    def settings(self) -> dict[str, Any]:
        """Return name and parameters as plain data: what evidence and the ledger record."""
        from discreet.report import plain

        fields = {item.name: getattr(self, item.name) for item in self.parameters()}
        return {
            "name": self.name,
            **{
                key: value.settings() if isinstance(value, Member) else plain(value)
                for key, value in fields.items()
            },
        }


@functools.cache
def _parameters(cls: type[Member]) -> tuple[Parameter, ...]:
    hints = typing.get_type_hints(cls)
    found = []
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        required = field.default is _MISSING and field.default_factory is _MISSING
        default = None
        if field.default is not _MISSING:
            default = field.default
        elif field.default_factory is not _MISSING:
            default = field.default_factory()
        rules = dict(field.metadata)
        if rules.get("choices") is not None:
            rules["choices"] = tuple(rules["choices"])
        elif get_origin(hints[field.name]) is Literal:
            rules["choices"] = get_args(hints[field.name])
        meaning = rules.pop("help", "")
        found.append(Parameter(field.name, hints[field.name], required, default, meaning, **rules))
    return tuple(found)


class Family(typing.Generic[Base]):
    """Members of one kind, found in the folder of the package that declares it."""

    def __init__(self, name: str, base: type[Base], package: str) -> None:
        self.name = name
        self.base = base
        self.package = package
        base.family_name = name  # type: ignore[attr-defined]  # lets `build` go from a field's type to its family

    def files(self) -> list[str]:
        """Return the module names in the folder, without importing them."""
        path = importlib.import_module(self.package).__path__
        return sorted(m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_"))

    def members(self, enable: Sequence[str] = ()) -> dict[str, type[Base]]:
        """Return the members by name; extensions only where `enable` names them."""
        found: dict[str, type[Base]] = {}
        for file in self.files():
            module = importlib.import_module(f"{self.package}.{file}")
            for thing in vars(module).values():
                if self._is_member(thing) and thing.__module__ == module.__name__:
                    found[thing.name] = thing
        # Looking for extensions reads the metadata of every installed package: only when wanted.
        entries = importlib.metadata.entry_points(group=f"discreet.{self.name}") if enable else ()
        for entry in entries:
            if entry.name in enable:
                found[entry.name] = entry.load()
        return dict(sorted(found.items()))

    def get(self, name: str, enable: Sequence[str] = ()) -> type[Base]:
        """Return the member of that name, or say which there are."""
        members = self.members(enable)
        if name in members:
            return members[name]
        guess = nearest(name, members)
        raise InputError(
            f"there is no {self.name} named {name!r}",
            code="unknown-member",
            hint=f"write {guess!r}" if guess else "choose one of " + ", ".join(members),
            family=self.name,
            available=list(members),
        )

    def _is_member(self, thing: Any) -> bool:
        return (
            isinstance(thing, type)
            and issubclass(thing, self.base)
            and thing is not self.base
            and "name" in vars(thing)
            and bool(thing.name)
        )


@functools.cache
def families() -> dict[str, tuple[Family[Any], ...]]:
    """Return every family by name; several folders may hold members of one family."""
    found: dict[str, tuple[Family[Any], ...]] = {}
    for package in _packages("discreet"):
        family = getattr(importlib.import_module(package), "FAMILY", None)
        if isinstance(family, Family):
            found[family.name] = (*found.get(family.name, ()), family)
    return dict(sorted(found.items()))


def _packages(root: str) -> Iterator[str]:
    # `discreet.app` holds no family, and its packages import web frameworks.
    for item in pkgutil.iter_modules(importlib.import_module(root).__path__, f"{root}."):
        if item.ispkg and item.name != "discreet.app":
            yield item.name
            yield from _packages(item.name)


def members(family: str, enable: Sequence[str] = ()) -> dict[str, type[Member]]:
    """Return all members of a family, from all of its folders."""
    if family not in families():
        guess = nearest(family, families())
        raise InputError(
            f"there is no family named {family!r}",
            code="unknown-family",
            hint=f"write {guess!r}" if guess else "choose one of " + ", ".join(families()),
        )
    found: dict[str, type[Member]] = {}
    for folder in families()[family]:
        found |= folder.members(enable)
    return dict(sorted(found.items()))


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
    if data is None and _is_optional(kind):
        return None
    known = [option for option in _options(kind) if option is not type(None)]
    if len(known) == 1 and known[0] is not kind:  # what may be missing is otherwise as it is
        return build(known[0], data, path=path, enable=enable, mistakes=mistakes)
    for option in known:
        if isinstance(option, type) and issubclass(option, Member) and not isinstance(data, option):
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
        # As commands and people write short lists; a name with a comma stands in a real list.
        return build(kind, [part.strip() for part in data.split(",")], path=path, enable=enable)
    if origin is tuple and not isinstance(data, list | tuple | dict):
        return (build(get_args(kind)[0], data, path=path, enable=enable),)
    if origin is Mapping and isinstance(data, Mapping):
        inner = get_args(kind)[1]
        return {
            key: build(inner, value, path=(*path, str(key)), enable=enable)
            for key, value in data.items()
        }
    if isinstance(data, list) and not _fits(data, kind):
        return tuple(data)
    if isinstance(data, str) and not _fits(data, kind):
        return _from_text(data, kind)
    if isinstance(data, float) and data.is_integer() and not _fits(data, kind):
        return int(data)  # JSON does not tell 5.0 from 5
    return data


def _build_member(
    base: type[Member],
    data: Any,
    path: tuple[str | int, ...],
    enable: Sequence[str],
    mistakes: list[InputError] | None,
) -> Member | None:
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
    base: type[Member],
    data: Any,
    path: tuple[str | int, ...],
    enable: Sequence[str],
    mistakes: list[InputError],
) -> Member | None:
    """Return a member, or None where its parameters have mistakes, which are collected."""
    name, given, inner = _spelled(base, data, path)
    folder = getattr(base, "family_name", None)
    if folder is None or (base.name and base.name == name):
        cls: type[Member] = base
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
                expected[field].require(values[field], owner=name)
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
    base: type[Member], data: Any, path: tuple[str | int, ...]
) -> tuple[str, Any, tuple[str | int, ...]]:
    if isinstance(data, str):
        return data, {}, path
    if isinstance(data, Mapping) and "name" in data:
        return str(data["name"]), {k: v for k, v in data.items() if k != "name"}, path
    if isinstance(data, Mapping) and len(data) == 1:
        name, given = next(iter(data.items()))
        return str(name), {} if given is None else given, (*path, str(name))
    kind = getattr(base, "family_name", base.name)
    raise InputError(
        f"a {kind} is needed here, found {data!r}",
        code="malformed-member",
        hint="write its name, or name: {parameter: value}",
        path=path,
    )


def _from_text(text: str, kind: Any) -> Any:
    # The command line gives every value as text; the annotation says what was meant.
    for option in _options(kind):
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


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _is_optional(kind: Any) -> bool:
    return type(None) in _options(kind)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of an annotated type, as far as a parameter needs."""
    if kind is Any:
        return True
    if len(_options(kind)) > 1:
        return any(_fits(value, option) for option in _options(kind))
    origin = get_origin(kind)
    if origin is Literal:
        return value in get_args(kind)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is None or kind is type(None):
        return value is None
    if origin is tuple:
        inner = get_args(kind)
        if not isinstance(value, tuple):
            return False
        if len(inner) == 2 and inner[1] is Ellipsis:
            return all(_fits(item, inner[0]) for item in value)
        return len(value) == len(inner) and all(map(_fits, value, inner))
    if origin is Callable or origin is getattr(types, "FunctionType", None):
        return callable(value)
    checked = origin or kind
    return not isinstance(checked, type) or isinstance(value, checked)


def describe_type(kind: Any) -> str:
    """Return an annotated type in words.

    >>> describe_type(int | None), describe_type(tuple[str, ...])
    ('a whole number or nothing', 'a list of text')
    """
    names = {
        int: "a whole number",
        float: "a number",
        str: "text",
        bool: "true or false",
        type(None): "nothing",
    }
    if len(_options(kind)) > 1:
        return " or ".join(describe_type(option) for option in _options(kind))
    if kind in names:
        return names[kind]
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if get_origin(kind) in (tuple, list, Sequence):
        return f"a list of {describe_type(get_args(kind)[0])}"
    if get_origin(kind) in (dict, Mapping):
        return "a mapping"
    return str(getattr(kind, "family_name", getattr(kind, "__name__", kind)))


def lazy(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], list[str]]:
    """Return `__getattr__` and `__all__` for a package that imports its parts when first used.

    `names` maps a public name to the module that holds it. Importing `discreet` must stay cheap:
    the command line shows its help without loading a solver.
    """

    def get(name: str) -> Any:
        if name in names:
            return getattr(importlib.import_module(names[name]), name)
        try:  # a module of the package itself
            if not name.startswith("_") and name in _submodules(package):
                return importlib.import_module(f"{package}.{name}")
        except ModuleNotFoundError:
            pass
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    class Package(types.ModuleType):
        """A package in which a public name stays what it is when a module is called the same.

        Importing `discreet.data.describe` would put the module in the place of the function.
        """

        def __setattr__(self, name: str, value: Any) -> None:
            same = isinstance(value, types.ModuleType) and value.__name__ == names.get(name)
            super().__setattr__(name, getattr(value, name, value) if same else value)

    sys.modules[package].__class__ = Package
    return get, sorted(names)


def _submodules(package: str) -> set[str]:
    return {m.name for m in pkgutil.iter_modules(importlib.import_module(package).__path__)}


def class_file(name: str) -> str:
    """Return the file name a class of that name lives in.

    >>> (
    ...     class_file("PPercent"),
    ...     class_file("RankSwapping"),
    ...     class_file("KAnonymity"),
    ...     class_file("PRAM"),
    ... )
    ('p_percent', 'rank_swapping', 'k_anonymity', 'pram')
    """
    words = ""
    for place, letter in enumerate(name):
        after_lower = place > 0 and not name[place - 1].isupper()
        before_lower = 0 < place < len(name) - 1 and name[place + 1].islower()
        words += "_" if letter.isupper() and (after_lower or before_lower) and place else ""
        words += letter.lower()
    return words


def find_class(name: str) -> type[Member] | None:
    """Return the member class of that name, by its file if possible: others are not imported then."""
    file = class_file(name)
    for folders in families().values():
        for folder in folders:
            path = importlib.import_module(folder.package).__file__
            if path is not None and (Path(path).parent / f"{file}.py").exists():
                found = getattr(importlib.import_module(f"{folder.package}.{file}"), name, None)
                if found is not None:
                    return typing.cast("type[Member]", found)
    # A file may be called by what is typed (`table.py` holds `TableJob`): then all are looked at.
    for family in families():
        for member in members(family).values():
            if member.__name__ == name:
                return member
    return None
