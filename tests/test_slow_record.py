"""What ran of the slow tests is kept, row by row."""

import subprocess
import sys
from pathlib import Path

from tests import slow_record
from tests.slow_record import Row, merged, told


def test_rows_of_tests_that_ran_are_replaced_and_others_kept():
    first = merged("", {"tests/b.py::test_b": Row(2, {"passed"}, {1, 2}, 3.4).line("tests/b.py::test_b", "aaa")})  # fmt: skip
    assert "| `tests/b.py::test_b` | 2 | passed | 1–2 | 3 | aaa |" in first
    failed = Row(1, {"passed", "failed"}, set(), 0.1).line("tests/a.py::test_a", "bbb")
    second = merged(first, {"tests/a.py::test_a": failed})
    assert second.index("test_a") < second.index("test_b")
    assert "| failed |" in second
    again = Row(5, {"passed"}, {9}, 60.0).line("tests/b.py::test_b", "ccc")
    third = merged(second, {"tests/b.py::test_b": again})
    assert "aaa" not in third
    assert "bbb" in third
    assert "| 5 | passed | 9 | 60 | ccc |" in third
    assert third.count("# Slow tests") == 1


def test_seeds_are_told_by_their_ends():
    assert told([]) == ""
    assert told({3, 1, 2, 9}) == "1–3, 9"


def test_a_run_writes_its_slow_tests_alone(tmp_path):
    (tmp_path / "docs" / "benchmarks").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").touch()
    plugin = Path(slow_record.__file__).read_text()
    (tmp_path / "tests" / "slow_record.py").write_text(plugin)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow: takes long\n")
    (tmp_path / "tests" / "test_it.py").write_text(
        "import pytest, random\n\n"
        "@pytest.mark.slow\n@pytest.mark.parametrize('seed', [4, 5])\n"
        "def test_long(seed):\n    assert random.Random(11)\n\n"
        "def test_short():\n    pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "tests.slow_record", "tests"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    page = (tmp_path / "docs" / "benchmarks" / "slow.md").read_text()
    assert "| `tests/test_it.py::test_long` | 2 | passed | 4–5, 11 |" in page
    assert "test_short" not in page
