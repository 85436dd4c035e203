"""The demonstration: every chapter in its order, then the report."""

from __future__ import annotations

import importlib
import pkgutil
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from discreet.app.demo import chapters
from discreet.app.demo.ahead import compiling_ahead
from discreet.app.demo.stage import Stage
from discreet.data.atomic import atomic_file
from discreet.errors import InputError
from discreet.page import Page
from discreet.progress import Progress, silent

__all__ = ["run_demo"]


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
    found = found_chapters()
    compiled = [chapter.COMPILED for chapter in found if hasattr(chapter, "COMPILED")]
    with compiling_ahead(compiled, voice) as wait:
        for number, chapter in enumerate(found, start=1):
            voice(f"\n{number}. {chapter.TITLE}")
            started = time.perf_counter()
            if hasattr(chapter, "COMPILED"):
                wait(chapter.COMPILED)
            try:
                chapter.run(stage)
            except InputError as error:
                if error.code != "missing-extra":
                    raise
                voice(f"    Left out: {error.message}. To see it: {error.hint}")
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
