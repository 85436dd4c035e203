"""Pages of the manual show their examples as code: outside of a fence they run together."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md"), ROOT / "README.md"])


def unfenced(text: str) -> list[int]:
    """Return the lines of examples that stand outside of a fence."""
    inside, found = False, []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("```"):
            inside = not inside
        elif line.startswith(">>>") and not inside:
            found.append(number)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_are_fenced(page):
    assert unfenced(page.read_text(encoding="utf-8")) == []


def test_the_check_notices():
    assert unfenced("text\n\n>>> 1\n1\n") == [3]
