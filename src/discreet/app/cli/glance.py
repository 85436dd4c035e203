"""Which jobs there are, read from their files without importing them.

Importing a job imports what it works with. Help needs the names and the first lines only, and a
command needs one job, so the class attributes `command`, `is_default` and `example` are read from
the text of each file.
"""

from __future__ import annotations

import ast
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Glance", "glances", "group_help"]

_SOURCE = Path(__file__).parents[2]


@dataclasses.dataclass(frozen=True)
class Glance:
    """What a job's file says about its command."""

    module: str
    cls: str
    command: str
    help: str
    is_default: bool
    #: First line of the docstring of the package.
    package_help: str

    @property
    def group(self) -> str:
        """The group of the command; empty for a command of its own."""
        return self.command.partition(" ")[0] if " " in self.command else ""

    @property
    def name(self) -> str:
        """The command within its group."""
        return self.command.rpartition(" ")[2]


def glances() -> list[Glance]:
    """Return every job that has a command, by its command."""
    found = [glance for folder in _folders() for glance in _of_folder(*folder)]
    return sorted(found, key=lambda glance: glance.command)


def group_help(jobs: list[Glance]) -> str:
    """Return the help of a group: that of its default job, or of the package."""
    default = next((job for job in jobs if job.is_default), None)
    return jobs[0].package_help if default is None else default.help


def _folders() -> Iterator[tuple[str, Path]]:
    """Give each folder of jobs with its package; where it is imported, all places it has."""
    for place in sorted(_SOURCE.glob("*/jobs/__init__.py")):
        package = ".".join((_SOURCE.name, *place.parent.relative_to(_SOURCE).parts))
        loaded = sys.modules.get(package)
        for folder in [str(place.parent)] if loaded is None else loaded.__path__:
            yield package, Path(folder)


def _of_folder(package: str, folder: Path) -> Iterator[Glance]:
    head = folder / "__init__.py"
    about = ast.get_docstring(ast.parse(head.read_text("utf-8"))) if head.exists() else None
    for file in sorted(folder.glob("[!_]*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and (said := _constants(node)).get("command"):
                yield Glance(
                    f"{package}.{file.stem}",
                    node.name,
                    str(said["command"]),
                    _help(ast.get_docstring(node) or "", str(said.get("example", ""))),
                    bool(said.get("is_default")),
                    (about or "").partition("\n")[0],
                )


def _constants(node: ast.ClassDef) -> dict[str, object]:
    return {
        line.target.id: line.value.value
        for line in node.body
        if isinstance(line, ast.AnnAssign)
        and isinstance(line.target, ast.Name)
        and isinstance(line.value, ast.Constant)
    }


def _help(docstring: str, example: str) -> str:
    """Return a docstring up to its examples, and a command line to try."""
    text = docstring.partition("\n\nExamples\n")[0].strip().replace("[", r"\[")
    return f"{text}\n\n[bold]{example}[/bold]" if example else text
