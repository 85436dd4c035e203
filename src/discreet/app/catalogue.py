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


@dataclasses.dataclass(frozen=True)
class MemberPages(Report):
    """Members of one name in several families."""

    pages: tuple[MemberPage, ...]

    def rows(self) -> Rows:
        """One line per parameter."""
        return ("family", "parameter", "type", "default", "meaning"), [
            (page.family, *line) for page in self.pages for line in page.parameters
        ]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.pages))


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


def member_page(name: str, family: str | None = None) -> Report:
    """Return one member's page, or a family's list; a name may stand in several families."""
    if family is None and name in families():
        return catalogue(name)
    known: dict[str, list[tuple[str, type[Member]]]] = {}
    for kind in families() if family is None else (family,):
        for member, cls in members(kind).items():
            known.setdefault(member, []).append((kind, cls))
    if name not in known:
        guess = nearest(name, known)
        raise InputError(
            f"there is no method named {name!r}",
            code="unknown-member",
            hint=f"write {guess!r}" if guess else "run `discreet methods` to see all",
        )
    pages = tuple(_page(kind, name, cls) for kind, cls in known[name])
    return pages[0] if len(pages) == 1 else MemberPages(pages)


def _page(family: str, name: str, cls: type[Member]) -> MemberPage:
    lines = []
    for item in cls.parameters():
        default = "required" if item.required else str(item.default)
        meaning = f"{item.help} ({item.range})" if item.range else item.help
        lines.append((item.name, describe_type(item.type), default, meaning))
    return MemberPage(family, name, cls.summary(), cls.reference, tuple(lines))
