"""Answers from a permuted release: as wide a choice of questions as the release itself answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dc

ROLES = {"age": "quasi", "sector": "quasi", "salary": "confidential", "bonus": "confidential"}


@pytest.fixture(scope="module")
def both():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 60, 200),
            "sector": rng.choice(list("ABC"), 200),
            "salary": rng.normal(5e4, 1e4, 200).round(),
            "bonus": rng.normal(5e3, 1e3, 200).round(),
        }
    )
    people = dc.read(frame, roles=ROLES, name="people")
    release = dc.permute(people, sensitive="salary", k=3, e=2000)
    with dc.Gateway(people, guard=dc.PermutedBounds(release)) as gate:
        yield release, gate, frame


@pytest.mark.parametrize(
    ("measure", "truth"),
    [
        ("MEDIAN(salary)", lambda f: f.salary.median()),
        ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY salary)", lambda f: f.salary.quantile(0.9)),
        ("PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY salary)", lambda f: f.salary.quantile(0.25)),
        ("SUM(salary)", lambda f: f.salary.sum()),
    ],
)
def test_the_gateway_answers_what_the_release_answers(both, measure, truth):
    release, gate, frame = both
    for where in ("", " WHERE age > 30"):
        sql = f"SELECT {measure} FROM people{where}"
        low, high = gate.ask(sql).value()
        assert np.allclose((low, high), release.ask(sql).rows()[1][0][:2])
        assert low <= truth(frame[frame.age > 30] if where else frame) <= high


def test_what_the_release_does_not_hold_is_refused(both):
    answer = both[1].ask("SELECT SUM(bonus) FROM people")
    assert (answer.kind, answer.code) == ("refused", "unknown-column")
    # Two of them would differ by an end of one person's group.
    assert both[1].ask("SELECT SUM(age * salary) FROM people").code == "not-a-column"
