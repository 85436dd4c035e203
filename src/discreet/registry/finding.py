"""Families and their members, found by looking into folders.

Extensions are members installed elsewhere under the entry-point group ``discreet.<family>``. Only
those named in a policy's or a caller's `enable` list are loaded: installing a package must not be
enough to run its code on other people's secrets.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import pkgutil
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from discreet.errors import InputError, nearest
from discreet.registry.declarations import Member

__all__ = [
    "Families",
    "Family",
    "class_file",
    "families",
    "find_class",
    "members",
    "names_of",
]


Base = TypeVar("Base", bound="Member")


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
            found |= self._inside(file)
        # Finding extensions reads the metadata of all installed packages, so only when asked for.
        entries = importlib.metadata.entry_points(group=f"discreet.{self.name}") if enable else ()
        for entry in entries:
            if entry.name in enable:
                found[entry.name] = entry.load()
        return dict(sorted(found.items()))

    def get(self, name: str, enable: Sequence[str] = ()) -> type[Base]:
        """Return the member of that name, or say which there are.

        Most members have the name of their file, so that no other file of the family is imported.
        """
        file = name.replace("-", "_")
        if file in self.files() and name in (alone := self._inside(file)):
            return alone[name]
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

    def _inside(self, file: str) -> dict[str, type[Base]]:
        """Return the members that a file of the folder defines."""
        module = importlib.import_module(f"{self.package}.{file}")
        return {
            thing.name: thing
            for thing in vars(module).values()
            if self._is_member(thing) and thing.__module__ == module.__name__
        }

    def _is_member(self, thing: Any) -> bool:
        return (
            isinstance(thing, type)
            and issubclass(thing, self.base)
            and thing is not self.base
            and "name" in vars(thing)
            and bool(thing.name)
        )


class Families(Mapping[str, tuple[Family[Any], ...]]):
    """Every family by name; several folders may hold members of one family.

    Which folders declare a family is read from their `__init__.py`, so that asking for one family
    imports that family alone.
    """

    def __getitem__(self, name: str) -> tuple[Family[Any], ...]:
        return tuple(importlib.import_module(package).FAMILY for package in _declared()[name])

    def __iter__(self) -> Iterator[str]:
        return iter(_declared())

    def __len__(self) -> int:
        return len(_declared())


def families() -> Families:
    """Return every family by name, each imported when it is looked at."""
    return Families()


#: The package whose folders are looked into.
_ROOT = Path(__file__).parents[1]
_DECLARATION = re.compile(r"""^FAMILY = Family\(\s*["']([^"']+)["']""", re.MULTILINE)


@functools.cache
def _declared() -> dict[str, tuple[str, ...]]:
    """Return the packages that declare each family."""
    found: dict[str, tuple[str, ...]] = {}
    for file in sorted(_ROOT.rglob("__init__.py")):
        declaration = _DECLARATION.search(file.read_text(encoding="utf-8"))
        if declaration is not None:
            name = declaration.group(1)
            package = ".".join((_ROOT.name, *file.parent.relative_to(_ROOT).parts))
            found[name] = (*found.get(name, ()), package)
    return dict(sorted(found.items()))


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


def names_of(family: str) -> Callable[[], Iterable[str]]:
    """Return what finds the names of a family's members, for parameters that choose one by name.

    >>> sorted(names_of("mechanism")())
    ['gaussian', 'laplace']
    """
    return functools.partial(members, family)


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


@functools.cache  # `dc.KAnonymity` in a loop reads no file twice
def find_class(name: str) -> type[Member] | None:
    """Return the member class of that name; only files that define such a class are imported."""
    definition = re.compile(rf"^class {re.escape(name)}\(", re.MULTILINE)
    for package in (package for packages in _declared().values() for package in packages):
        folder = _ROOT.joinpath(*package.split(".")[1:])
        # Most files are named after their class, so those are read first; `table.py` holds `TableJob`.
        files = sorted(folder.glob("[!_]*.py"), key=lambda file: file.stem != class_file(name))
        for file in files:
            if definition.search(file.read_text(encoding="utf-8")):
                found = getattr(importlib.import_module(f"{package}.{file.stem}"), name)
                if issubclass(found, Member) and vars(found).get("name"):
                    return typing.cast("type[Member]", found)
    return None
