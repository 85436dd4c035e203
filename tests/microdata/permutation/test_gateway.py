"""The same bounds through the gateway: recorded, and as the guard's answers."""

from __future__ import annotations

import pytest

import discreet as dc
from discreet.demo import population
from discreet.errors import RefusedError


def test_the_guard_answers_with_the_release_and_nothing_else():
    people = population(1500)
    frame = people.frame
    safe = dc.permute(people, sensitive="salary", k=5, e=500, attack=False)
    with dc.Gateway(people, guard=dc.PermutedBounds(safe)) as gate:
        answer = gate.ask(
            "SELECT sex, AVG(salary) AS m, COUNT(*) AS n FROM people WHERE age < 40 GROUP BY sex",
            user="ana",
        )
        assert answer.kind == "interval"
        truth = frame[frame["age"] < 40].groupby("sex")["salary"].mean()
        for row in answer.frame.to_dict("records"):
            assert row["m_lower"] <= truth[row["sex"]] <= row["m_upper"]
        refused = None
        try:
            refused = gate.ask("SELECT SUM(salary) FROM people WHERE salary > 5", user="ana")
        except RefusedError as error:
            refused = error
        assert isinstance(refused, RefusedError) or refused.kind == "refused"


def test_only_releases_can_be_asked():
    with pytest.raises(dc.InputError, match="cannot be asked"):
        dc.PermutedBounds("a file")
