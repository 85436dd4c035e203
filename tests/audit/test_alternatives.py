"""Alternative databases: what they show is so, and what is told they never show to be open."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from discreet.audit.alternatives import alternatives, bound, unmoved
from discreet.audit.joint import require_space
from discreet.errors import InfeasibleError


@pytest.mark.parametrize("seed", range(8))
def test_atoms_are_bound_where_the_rank_says_so(seed: int) -> None:
    rng = np.random.default_rng(seed)
    told = (rng.random((14, 24)) < 0.2).astype(float)
    told[0] = 0.0
    told[0, :2] = (1.0, 1.0)  # two people in sum
    told[1] = 0.0
    told[1, 5] = 1.0  # one alone
    rank = np.linalg.matrix_rank(told)

    def is_told(group: list[int]) -> bool:
        left = np.delete(told, group, axis=1)
        return bool(np.linalg.matrix_rank(left) < rank)

    moves = alternatives(sparse.csr_matrix(told), np.ones(24), rng.standard_normal((24, 4)))
    assert moves is not None
    still = bound(moves, pairs=False)
    assert still.tolist() == [is_told([n]) for n in range(24)]
    tied = bound(moves, pairs=True)
    for one in range(24):
        if any(is_told([one, two]) for two in range(24)):
            assert tied[one] or any(still)
    assert tied[[0, 1, 5]].all()


def test_no_amount_falls_below_zero() -> None:
    # Three people share 10 with a told sum; the first two can be anything from 0 to 10.
    told = sparse.csr_matrix(np.array([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]))
    cells = sparse.csr_matrix(np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]))
    there, rng = np.array([4.0, 3.0, 3.0, 7.0]), np.random.default_rng(1)
    loose = np.arange(4)
    few, much = np.array([1.0, 0.0]), np.array([7.0, 0.0])
    assert unmoved(told, there, cells, (few, few), loose, rng).tolist() == []
    assert unmoved(told, there, cells, (few, much), loose, rng).tolist() == [0]
    assert unmoved(told, there, cells, (few, np.array([1.0, 0.1])), loose, rng).tolist() == [1]


def test_projection_ends_over_many_atoms_of_very_different_size() -> None:
    # 30,000 people in three partitions that do not nest: the sum of squares left by the projection
    # must be small for every told sum, not only in the mean.
    rng = np.random.default_rng(3)
    people = 30_000
    rows = [rng.integers(0, 500, people) + 500 * part for part in range(3)]
    told = sparse.csr_matrix(
        (np.ones(3 * people), (np.concatenate(rows), np.tile(np.arange(people), 3))),
        shape=(1_500, people),
    )
    there = rng.lognormal(8, 1.5, people)
    moves = alternatives(
        told, np.minimum(there, 4 * np.median(there)), rng.standard_normal((people, 2))
    )
    assert moves is not None
    assert not bound(moves, pairs=False).any()


def test_more_sums_than_memory_holds_are_refused_before_they_are_taken() -> None:
    with pytest.raises(InfeasibleError) as error:
        require_space(600_000, 32_000)
    assert error.value.code == "too-many-atoms"
    require_space(10_000, 10_000)
