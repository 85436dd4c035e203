"""No generated demand breaks a promise in the bytes, or ends in anything but an error of ours."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.microdata import adversary


def judged(seeds: range) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    wrong = []
    for seed in seeds:
        outcome = adversary.tried(seed)
        found[outcome.job, outcome.result] += 1
        if outcome.wrong is not None:
            wrong.append(f"seed {seed}: {outcome.wrong}")
    assert not wrong, f"{len(wrong)} of {len(seeds)} seeds\n" + "\n".join(wrong[:3])
    return found


def test_hundreds_of_demands_keep_their_promises():
    found = judged(range(200))
    assert sum(count for (_, result), count in found.items() if result == "released") > 40
    for job in adversary.release_jobs():
        assert any(tried == job.name for tried, _ in found), f"{job.name} was never tried"


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_ten_thousand_demands_keep_their_promises(block):
    assert judged(range(1000 + 500 * block, 1500 + 500 * block))


def test_the_judge_finds_a_broken_promise(tmp_path):
    """Control: a class of one is found by comparing records, without the verifier."""
    (tmp_path / "x.csv").write_text("town\nA\nA\nB\n")
    promise = {"file": "x.csv", "keys": [["town"]], "models": [{"name": "k-anonymity", "k": 2}]}
    assert adversary._pairs(tmp_path, promise) == "a record looks like 0 others, not 1"
