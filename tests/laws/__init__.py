"""Laws that every member of every family keeps, present or future.

A module here is called as its family. Its `LAWS` are plain functions that take a member's class and
assert; its `BROKEN` maps deliberately broken members to the law that has to catch each. Members are
found by looking and are tried with their own `examples`, so that a new one is judged without an edit
here. A member that a law cannot run fails it.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from types import ModuleType

from discreet.registry import Member

Law = Callable[[type[Member]], None]


def laws(family: str) -> tuple[Law, ...]:
    """Return the laws of a family; none where nobody wrote any."""
    return getattr(_module(family), "LAWS", ())


def broken(family: str) -> Mapping[type[Member], Law]:
    """Return the broken members of a family, each with the law that must catch it."""
    return getattr(_module(family), "BROKEN", {})


def judge(member: type[Member]) -> None:
    """Hold a member to every law of its family."""
    found = laws(member.family_name)
    assert found, f"the family {member.family_name} has no laws"
    for law in found:
        law(member)


def _module(family: str) -> ModuleType | None:
    name = f"{__name__}.{family.replace('-', '_')}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None
