"""The demonstration's chapter on census-style tables."""

from __future__ import annotations

from pathlib import Path

from discreet.app.demo.chapters import census
from discreet.app.demo.stage import Stage


def test_the_chapter_publishes_and_attacks(tmp_path: Path) -> None:
    said: list[str] = []
    stage = Stage(tmp_path, 300, said.append)
    census.run(stage)
    assert (tmp_path / "census" / "cells.csv").is_file()
    assert any("cut at zero" in text for text in said)
    assert [section.title for section in stage.sections][-1] == "Reconstruction before and after"
