"""No generated demand breaks a promise in the bytes, or ends in anything but an error of ours."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.microdata import adversary


def judged(seeds: Iterable[int], releases: int | None = None) -> Counter[tuple[str, str]]:
    """Try the seeds, or as many as it takes for a number of releases; nothing may be wrong."""
    found: Counter[tuple[str, str]] = Counter()
    wrong = []
    for seed in seeds:
        outcome = adversary.tried(seed)
        found[outcome.job, outcome.result] += 1
        if outcome.wrong is not None:
            wrong.append(f"seed {seed}: {outcome.wrong}")
        if released(found) == releases:
            break
    assert not wrong, f"{len(wrong)} of {found.total()} seeds\n" + "\n".join(wrong[:3])
    return found


def released(found: Counter[tuple[str, str]]) -> int:
    return sum(count for (_, result), count in found.items() if result == "released")


def test_hundreds_of_demands_keep_their_promises():
    found = judged(range(200))
    assert released(found) > 60
    for job in adversary.release_jobs():
        assert any(tried == job.name for tried, _ in found), f"{job.name} was never tried"


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_ten_thousand_releases_keep_their_promises(block):
    found = judged(itertools.count(1_000_000 + 100_000 * block), releases=500)
    print(f"block {block}: {found.total()} demands, {released(found)} releases")  # noqa: T201  # figures
    assert {job for job, result in found if result == "released"} == {
        job.name for job in adversary.release_jobs()
    }


def test_the_judge_finds_a_broken_promise(tmp_path):
    """Control: a class of one is found by comparing records, without the verifier."""
    (tmp_path / "x.csv").write_text("town\nA\nA\nB\n")
    promise = {"file": "x.csv", "keys": [["town"]], "models": [{"name": "k-anonymity", "k": 2}]}
    assert adversary._pairs(tmp_path, promise) == "a record looks like 0 others, not 1"


@pytest.mark.parametrize("seed", [2_100_006, 2_400_357])
def test_whole_numbers_that_are_one_double_keep_their_order(seed):
    """T-closeness by ranks of numbers above 2**53, which the verifier took for equal."""
    assert adversary.tried(seed).wrong is None
