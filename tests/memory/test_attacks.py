"""Attacks on several publications: they succeed without memory and fail with it."""

from __future__ import annotations

from discreet.app.demo.chapters import memory


def test_a_newcomer_over_time() -> None:
    assert memory._over_time(False) == "finds 77,000"
    assert memory._over_time(True) == "finds nothing"


def test_a_table_and_an_answer() -> None:
    assert memory._answers(False) == "finds 150,000"
    assert memory._answers(True) == "finds nothing"


def test_budgets_across_releases() -> None:
    assert memory._spending(False) == "1.5 spent"
    assert memory._spending(True) == "0.75 spent, the second refused"
