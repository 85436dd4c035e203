"""What a chapter of the demonstration has: embedded data, a voice, and pages of the report."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from discreet.app.demo import chapters
from discreet.data.atomic import atomic_file
from discreet.data.dataset import Dataset
from discreet.page import Page, Section
from discreet.progress import Progress, silent
from discreet.report import Report, Rows, text_table

__all__ = ["Stage", "run_demo"]


@dataclasses.dataclass
class Stage:
    """Handed to every chapter; collects what becomes the HTML report."""

    folder: Path
    rows: int
    voice: Callable[[str], None]
    progress: Progress = silent
    sections: list[Section] = dataclasses.field(default_factory=list)

    @functools.cached_property
    def people(self) -> Dataset:
        """The embedded population as a dataset."""
        from discreet.demo.datasets import population

        return population(self.rows)

    @functools.cached_property
    def businesses(self) -> Dataset:
        """The embedded business register as a dataset."""
        from discreet.demo.datasets import businesses

        return businesses(max(self.rows // 10, 500))

    def say(self, text: str) -> None:
        """Tell the reader what happens."""
        self.voice(text)

    def show(self, result: Report | Rows) -> None:
        """Print a report or a table, indented."""
        text = text_table(*result) if isinstance(result, tuple) else str(result)
        self.voice("\n".join(f"    {line}" for line in text.splitlines()))

    def section(self, section: Section) -> None:
        """Add a part to the HTML report."""
        self.sections.append(section)


def found_chapters() -> list[ModuleType]:
    """Return the chapters in their order."""
    modules = [
        importlib.import_module(f"{chapters.__name__}.{item.name}")
        for item in pkgutil.iter_modules(chapters.__path__)
    ]
    return sorted(modules, key=lambda module: (module.ORDER, module.__name__))


def run_demo(
    folder: str | Path, *, rows: int, voice: Callable[[str], None], progress: Progress = silent
) -> Path:
    """Run every chapter and write the report; return its path."""
    stage = Stage(Path(folder), rows, voice, progress)
    for number, chapter in enumerate(found_chapters(), start=1):
        voice(f"\n{number}. {chapter.TITLE}")
        started = time.perf_counter()
        chapter.run(stage)
        voice(f"    ({time.perf_counter() - started:.1f} s)")
    page = Page(
        "discreet: the demonstration",
        stage.sections,
        lead="Tables, microdata and queries protected, and attacked before and after.",
        footer="All records are generated; nobody is in them.",
    )
    report = stage.folder / "report.html"
    with atomic_file(report) as file:
        file.write_text(page.html(), encoding="utf-8")
    return report
