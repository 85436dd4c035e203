"""Names and content of the files with hierarchies that lie beside published cells."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.data.hierarchy import Hierarchy

__all__ = ["file_name", "hierarchy_file", "write_hierarchies"]


def file_name(name: str) -> str:
    """Return the name of an attribute as part of the name of a file, no two attributes alike.

    >>> file_name("region"), file_name("size class")
    ('region', 'size_class-3475df')
    """
    plain = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)
    if plain == name:
        return plain
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def hierarchy_file(name: str, number: int = 0) -> str:
    """Return the name of the file with one of an attribute's hierarchies.

    >>> hierarchy_file("region"), hierarchy_file("region", 1)
    ('hierarchy_region.csv', 'hierarchy_region.2.csv')
    """
    # A point is in no attribute's part of the name: "region_2" is another attribute.
    return f"hierarchy_{file_name(name)}{f'.{number + 1}' if number else ''}.csv"


def write_hierarchies(hierarchies: Sequence[Hierarchy], name: str, folder: Path) -> None:
    """Write the hierarchies of an attribute beside the cells of a table."""
    for number, hierarchy in enumerate(hierarchies):
        path = folder / hierarchy_file(name, number)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["child", "parent"])
            writer.writerows(hierarchy.pairs())
