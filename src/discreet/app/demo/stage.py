"""What a chapter of the demonstration has: embedded data, a voice, and pages of the report."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path

from discreet.data.dataset import Dataset
from discreet.page import Section
from discreet.progress import Progress, silent
from discreet.report import Report, Rows, text_table

__all__ = ["Stage"]


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

    @functools.cached_property
    def has_noise(self) -> bool:
        """Whether noise of differential privacy can be drawn: the extra `dp` is installed."""
        return importlib.util.find_spec("opendp") is not None

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
