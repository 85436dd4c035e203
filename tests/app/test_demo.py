"""The whole demonstration: the first command a newcomer runs, chapter by chapter."""

import pytest
from typer.testing import CliRunner

from discreet.app.cli.main import build


# Twice is into the same folder, as people do.
@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_every_chapter_runs_to_its_end(times, tmp_path):
    for _ in range(times):
        ran = CliRunner().invoke(build(), ["demo", "-o", str(tmp_path / "demo"), "--rows", "500"])
        assert ran.exit_code == 0, ran.output
    assert not list((tmp_path / "demo").rglob("*.key"))
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert "Attacks before and after" in page
    assert "cannot be protected" not in page
