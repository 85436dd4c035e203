"""What is compiled is kept on disk, for the sources it was compiled from and no others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import discreet.queries.history.compiling as compiling

PROBE = """
from used import ten_times
from using import answer
print(answer(4), ten_times(4))
"""


def test_a_change_in_one_file_reaches_those_that_call_it(tmp_path):
    shutil.copy(compiling.__file__, tmp_path / "compiling.py")
    used, using = tmp_path / "used.py", tmp_path / "using.py"
    used.write_text("from compiling import entry\n\n@entry\ndef ten_times(n):\n    return 10 * n\n")
    using.write_text(
        "from compiling import entry\nfrom used import ten_times\n\n"
        "@entry\ndef answer(n):\n    return ten_times(n) + 2\n"
    )
    assert _said(tmp_path) == "42 40"
    before = sorted(Path(tmp_path).rglob("*.nbc"))
    assert _said(tmp_path) == "42 40"
    assert sorted(Path(tmp_path).rglob("*.nbc")) == before  # the second run compiled nothing
    used.write_text(used.read_text().replace("10 * n", "20 * n"))
    assert _said(tmp_path) == "82 80"


def _said(folder: Path) -> str:
    """Run in a process of its own, with a place for what it compiles."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        cwd=folder, capture_output=True, text=True, timeout=300, check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "kept"), "PYTHONPATH": str(folder)},
    )  # fmt: skip
    return done.stdout.strip()
