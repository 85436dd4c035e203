"""Hierarchies as people declare them: a file, nested names, intervals, rarity.

The command line, the policy file and Python all come through here.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from discreet.data.hierarchy import Hierarchy
from discreet.errors import InputError
from discreet.registry import Record, build, parameter

__all__ = [
    "Declared",
    "HierarchySource",
    "declared",
    "parse_hierarchies",
    "read_hierarchies",
    "read_hierarchy",
]

#: One or several hierarchies of a column, each made already or declared. Any: what a caller wrote.
Declared = tuple["Hierarchy | HierarchySource", ...]
#: Gives each value of a column with the number of its records.
Frequencies = Callable[[str], Mapping[Any, int]]


@dataclasses.dataclass(frozen=True)
class HierarchySource(Record):
    """A hierarchy of an attribute: from a file, nested names, intervals, or by rarity.

    Examples
    --------
    >>> HierarchySource(widths=(10, 20)).open("age", lambda column: {21: 1, 38: 2}).root
    'Total'
    """

    spelled: ClassVar[str] = "file"

    file: str | None = parameter(None, help="a .hrc, ARX or child,parent file", file="read")
    format: Literal["hrc", "arx", "pairs"] | None = parameter(
        None, help="how to read the file; found from its name and content if left out"
    )
    levels: Mapping[str, Any] | None = parameter(None, help="nested names, the root first")
    widths: tuple[float, ...] | None = parameter(
        None, help="widths of intervals, one per level, each a multiple of the one before"
    )
    cuts: tuple[float, ...] | None = parameter(None, help="cut points of intervals")
    rare: int | None = parameter(None, help="merge values rarer than this", low=1)
    total: str = parameter("Total", help="the name of the root")

    def __post_init__(self) -> None:
        super().__post_init__()
        sources = ("file", "levels", "widths", "cuts", "rare")
        if sum(getattr(self, source) is not None for source in sources) != 1:
            raise InputError(
                "give exactly one of " + ", ".join(sources),
                code="hierarchy-source",
                hint="write age: {widths: [5, 10]} or region: region.hrc",
            )

    @classmethod
    def declared_name(cls) -> str:
        """Return what it is called in messages."""
        return "hierarchy"

    @property
    def is_of_codes(self) -> bool:
        """Whether it groups texts; intervals group numbers."""
        return self.widths is None and self.cuts is None

    def open(self, column: str, frequencies: Frequencies) -> Hierarchy:
        """Return the hierarchy; only intervals and rarity look at the records."""
        if self.file is not None:
            return read_hierarchy(self.file, format=self.format, total=self.total)
        if self.levels is not None:
            return Hierarchy.from_levels({self.total: self.levels})
        counts = frequencies(column)
        if self.rare is not None:
            named = {str(value): count for value, count in counts.items() if value is not None}
            return Hierarchy.from_rare(named, self.rare, total=self.total)
        numbers = [value for value in counts if isinstance(value, int | float)]
        if not numbers:
            raise InputError(
                f"column {column!r} holds no numbers, so it cannot be cut into intervals",
                code="not-a-number",
                hint="give its hierarchy by file or levels",
                column=column,
            )
        if self.cuts is not None:
            return Hierarchy.from_intervals(self.cuts, values=numbers, total=self.total)
        return Hierarchy.from_intervals(
            width=tuple(self.widths or ()),
            low=min(numbers),
            high=max(numbers),
            values=numbers,
            total=self.total,
        )


def read_hierarchy(
    path: str | Path, *, format: str | None = None, total: str = "Total"
) -> Hierarchy:
    """Read a hierarchy from a file: `.hrc`, child,parent pairs, or ARX lines.

    Parameters
    ----------
    format
        hrc, pairs or arx; by default found from the suffix and the first line.
    total
        The name of the root in a `.hrc` file; others name it themselves.
    """
    path = Path(path)
    kind = format or ("hrc" if path.suffix.lower() == ".hrc" else _csv_kind(path))
    if kind == "hrc":
        return Hierarchy.from_hrc(path, total=total)
    return Hierarchy.from_arx(path) if kind == "arx" else Hierarchy.from_pairs(path)


def _csv_kind(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            first = file.readline()
    except OSError:
        return "pairs"  # whose reader says that the file is missing
    return "pairs" if "parent" in first.lower() else "arx"


def declared(given: Mapping[str, Any] | None) -> dict[str, Declared]:
    """Return hierarchies by column, each as made or as declared.

    Any: a `Hierarchy`, a path, the settings of a `HierarchySource`, or a list of these.

    >>> declared({"age": {"cuts": [30, 60]}})["age"][0].cuts
    (30, 60)
    """
    found: dict[str, Declared] = {}
    for column, one in (given or {}).items():
        several = one if isinstance(one, list | tuple) else (one,)
        found[column] = tuple(
            item if isinstance(item, Hierarchy | HierarchySource) else _built(item, column)
            for item in several
        )
    return found


def _built(given: Any, column: str) -> HierarchySource:
    # Any: what the caller wrote.
    plain = str(given) if isinstance(given, Path) else given
    made: HierarchySource = build(HierarchySource, plain, path=("hierarchies", column))
    return made


def read_hierarchies(given: Sequence[str]) -> dict[str, Hierarchy]:
    """Read the files that `attribute=file` texts name, where there are no records to look at."""
    return {
        name: source.open(name, lambda _: {}) for name, source in parse_hierarchies(given).items()
    }


def parse_hierarchies(given: Sequence[str]) -> dict[str, HierarchySource]:
    """Read `attribute=file` texts, or `attribute setting=value …` for what needs no file.

    >>> parse_hierarchies(["region=region.hrc"])["region"].file
    'region.hrc'
    >>> parse_hierarchies(["age widths=10,20", "region=my file.hrc total=Land"])["region"].total
    'Land'
    """
    found: dict[str, HierarchySource] = {}
    known = {item.name for item in HierarchySource.parameters()}
    for text in given:
        settings: dict[str, Any] = {}
        words = shlex.split(text)
        while len(words) > 1 and words[-1].partition("=")[0] in known and "=" in words[-1]:
            key, _, value = words.pop().partition("=")
            settings[key] = value.split(",") if key in ("widths", "cuts") else value
        name, _, file = " ".join(words).partition("=")
        settings["file"] = file or None
        if not name or not any(settings.values()):
            raise InputError(
                f"{text!r} does not name a hierarchy",
                code="malformed-hierarchy",
                hint="write attribute=file, such as region=region.hrc, or 'age widths=10,20'",
            )
        found[name] = build(HierarchySource, settings, path=("hierarchies", name))
    return found
