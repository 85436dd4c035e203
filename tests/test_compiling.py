"""What is compiled is kept on disk, for the sources it was compiled from and no others."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np

from discreet import compiling

PROBE = """
from used import ten_times
from using import answer
print(answer(4), ten_times(4))
"""


def test_a_change_in_one_file_reaches_those_that_call_it(tmp_path):
    shutil.copy(compiling.__file__, tmp_path / "compiling.py")
    used, using = tmp_path / "used.py", tmp_path / "using.py"
    used.write_text(
        "from compiling import kernel\n\n@kernel\ndef ten_times(n):\n    return 10 * n\n"
    )
    using.write_text(
        "from compiling import kernel\nfrom used import ten_times\n\n"
        "@kernel\ndef answer(n):\n    return ten_times(n) + 2\n"
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


def test_compiled_functions_use_their_own_folder_only():
    """What is kept on disk is forgotten when a source of the folder changes, not beyond."""
    package = Path(compiling.__file__).parent
    strangers = []
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text())
        imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        if not any(node.module == "discreet.compiling" for node in imports):
            continue
        compiled = {
            name.id
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and _is_compiled(node)
            for name in ast.walk(node)
            if isinstance(name, ast.Name)
        }
        folder = ".".join(("discreet", *path.relative_to(package).parent.parts))
        for node in imports:
            module = node.module or ""
            if module == "discreet.compiling" or not module.startswith("discreet."):
                continue
            if module.rsplit(".", 1)[0] != folder:
                used = {alias.asname or alias.name for alias in node.names} & compiled
                strangers += [f"{path.name} uses {name} of {module}" for name in used]
    assert not strangers


def _is_compiled(node: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id in ("kernel", "inner") for d in node.decorator_list)


def test_other_libraries_keep_their_own_locators():
    before = numba.config.CACHE_LOCATOR_CLASSES
    assert "discreet" not in before

    @compiling.kernel
    def thrice(n):
        return 3 * n

    assert before == numba.config.CACHE_LOCATOR_CLASSES
    assert thrice(5) == 15


def test_arrays_that_may_not_be_written_to_are_compiled_for_no_second_time():
    from discreet.audit.history.auditor import Auditor
    from discreet.audit.history.deciding import decide

    counts, inside = np.ones(20, np.int64), np.arange(8)
    for writable in (True, False):
        counts.flags.writeable = inside.flags.writeable = writable
        auditor = Auditor(counts, 3)
        auditor.accept(auditor.decide(inside))
    assert len(decide.signatures) == 1


def test_what_was_kept_for_other_sources_is_not_read(monkeypatch):
    """It may name types that are no more."""

    class Place:
        ensure_cache_path = get_cache_path = None

        def get_disambiguator(self):
            return "12"

    names = set()
    for digest in ("a" * 64, "b" * 64):
        monkeypatch.setattr(compiling, "_digest", lambda _, found=digest: found)
        names.add(compiling.FolderLocator(Place(), __file__).get_disambiguator())
    assert len(names) == 2
