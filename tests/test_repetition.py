"""Almost nothing is written twice: lines inside blocks of ten that stand elsewhere again."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BLOCK = 10


def code_lines(text: str) -> list[str]:
    """Return the lines of code without indentation; no comments, imports or lone brackets."""
    lines, inside = [], False
    for line in map(str.strip, text.splitlines()):
        # A list of imported names is no code of its own, whichever lines it stands on.
        if inside or line.startswith(("import ", "from ")):
            inside = (inside or line.endswith("(")) and not line.startswith(")")
        elif line.strip("()[]{},: ") and not line.startswith("#"):
            lines.append(line)
    return lines


def repeated(texts: dict[str, str]) -> tuple[set[tuple[str, int]], int]:
    """Return the lines that are part of a repeated block, by file and place, and how many there are."""
    blocks: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    total = 0
    for name, text in texts.items():
        lines = code_lines(text)
        total += len(lines)
        for start in range(len(lines) - BLOCK + 1):
            blocks[tuple(lines[start : start + BLOCK])].append((name, start))
    found = {
        (name, start + line)
        for places in blocks.values()
        if len(places) > 1
        for name, start in places
        for line in range(BLOCK)
    }
    return found, total


@pytest.mark.parametrize("folder", ["src/discreet", "tests", "benchmarks"])
def test_less_than_half_a_percent_is_repeated(folder):
    texts = {str(path): path.read_text("utf-8") for path in (ROOT / folder).rglob("*.py")}
    found, total = repeated(texts)
    where = sorted({name for name, _ in found})
    assert len(found) < 0.005 * total, f"{len(found)} of {total} lines: {where}"


def test_a_copied_function_is_counted():
    body = "\n".join(f"    x{n} = {n}" for n in range(12))
    found, total = repeated({"a": f"def a():\n{body}\n", "b": f"def b():\n{body}\n"})
    assert (len(found), total) == (24, 26)
