"""What ran of the slow tests is kept, row by row."""

import subprocess
import sys
from pathlib import Path

from tests import slow_record
from tests.slow_record import Row, merged, together, told


def test_rows_of_tests_that_ran_are_replaced_and_others_kept():
    first = merged("", {"tests/b.py::test_b": Row(2, 2, {"passed"}, {1, 2}, 3.4).line("tests/b.py::test_b", "aaa")})  # fmt: skip
    assert "| `tests/b.py::test_b` | 2 of 2 | passed | 1–2 | 3 | aaa |" in first
    failed = Row(1, 1, {"passed", "failed"}, set(), 0.1).line("tests/a.py::test_a", "bbb")
    second = merged(first, {"tests/a.py::test_a": failed})
    assert second.index("test_a") < second.index("test_b")
    assert "| failed |" in second
    again = Row(5, 5, {"passed"}, {9}, 60.0).line("tests/b.py::test_b", "ccc")
    third = merged(second, {"tests/b.py::test_b": again})
    assert "aaa" not in third
    assert "bbb" in third
    assert "| 5 of 5 | passed | 9 | 60 | ccc |" in third
    assert third.count("# Slow tests") == 1


def test_single_cases_stay_beside_those_of_other_runs():
    cases = {f"t.py::a[{n}]": Row(1, 3, {"passed"}, {n}, 1.0) for n in range(3)}
    some = together({name: cases[name] for name in ("t.py::a[0]", "t.py::a[2]")})
    page = merged("", {name: row.line(name, "aaa") for name, row in some.items()})
    assert "| `t.py::a[0]` | 1 of 3 | passed | 0 | 1 | aaa |" in page
    rest = {"t.py::a[1]": cases["t.py::a[1]"]}
    page = merged(page, {name: row.line(name, "bbb") for name, row in together(rest).items()})
    assert page.count("1 of 3") == 3
    page = merged(page, {name: row.line(name, "ccc") for name, row in together(cases).items()})
    assert "| `t.py::a` | 3 of 3 | passed | 0–2 | 3 | ccc |" in page
    assert "1 of 3" not in page


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
    slow_md = tmp_path / "docs" / "benchmarks" / "slow.md"
    for chosen, row in (("5", "test_long[5]` | 1 of 2 | passed | 5, 11 |"), ("l", "test_long` | 2 of 2 | passed | 4–5, 11 |")):  # fmt: skip
        subprocess.run([*command, "-k", chosen], cwd=tmp_path, check=True, capture_output=True, timeout=120)  # fmt: skip
        assert f"| `tests/test_it.py::{row}" in slow_md.read_text()
    assert "test_short" not in slow_md.read_text()
