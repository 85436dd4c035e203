"""What the registry holds, as reports: for `discreet methods` and the manual's reference."""

from __future__ import annotations

import dataclasses

from discreet.errors import InputError, nearest
from discreet.registry import Member, describe_type, families, members
from discreet.report import Report, Rows

__all__ = ["Catalogue", "MemberPage", "catalogue", "member_page"]


@dataclasses.dataclass(frozen=True)
class Entry:
    """One member in the list."""

    family: str
    name: str
    summary: str
    reference: str


@dataclasses.dataclass(frozen=True)
class Catalogue(Report):
    """Families and their members."""

    entries: tuple[Entry, ...]

    def rows(self) -> Rows:
        """One line per member."""
        return ("family", "name", "what it does", "reference"), [
            (entry.family, entry.name, entry.summary, entry.reference or None)
            for entry in self.entries
        ]


@dataclasses.dataclass(frozen=True)
class MemberPage(Report):
    """One member with its parameters."""

    family: str
    name: str
    summary: str
    reference: str
    parameters: tuple[tuple[str, str, str, str], ...]

    def rows(self) -> Rows:
        """One line per parameter."""
        return ("parameter", "type", "default", "meaning"), list(self.parameters)

    def __str__(self) -> str:
        head = f"{self.name} ({self.family}): {self.summary}"
        if self.reference:
            head += f"\n{self.reference}"
        return f"{head}\n\n{super().__str__()}" if self.parameters else head


def catalogue(family: str | None = None) -> Catalogue:
    """Return the members of all families, or of one."""
    names = families() if family is None else {family: families()[family]}
    return Catalogue(
        tuple(
            Entry(kind, name, cls.summary(), cls.reference)
            for kind in names
            for name, cls in members(kind).items()
        )
    )


def member_page(name: str) -> Report:
    """Return one member's page, or a family's list."""
    if name in families():
        return catalogue(name)
    known: dict[str, tuple[str, type[Member]]] = {}
    for family in families():
        for member, cls in members(family).items():
            known[member] = (family, cls)
    if name not in known:
        guess = nearest(name, known)
        raise InputError(
            f"there is no method named {name!r}",
            code="unknown-member",
            hint=f"write {guess!r}" if guess else "run `discreet methods` to see all",
        )
    family, cls = known[name]
    lines = []
    for item in cls.parameters():
        default = "required" if item.required else str(item.default)
        meaning = f"{item.help} ({item.range})" if item.range else item.help
        lines.append((item.name, describe_type(item.type), default, meaning))
    return MemberPage(family, name, cls.summary(), cls.reference, tuple(lines))
