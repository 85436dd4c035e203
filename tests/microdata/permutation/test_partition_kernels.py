"""The compiled loops of the partitions against those written out."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.microdata.permutation.partitions import _kernels as kernels
from tests.microdata.permutation import reference
from tests.microdata.permutation.brute_force import contiguous


def drawn(seed):
    """Records in classes of values, and a demand that all of them together meet."""
    chance = np.random.default_rng(seed)
    u = np.unique(chance.integers(0, 40, int(chance.integers(4, 12)))).astype(float)
    classes = np.concatenate(
        [np.arange(len(u)), chance.integers(0, len(u), int(chance.integers(0, 30)))]
    )
    chance.shuffle(classes)
    k = int(chance.integers(2, min(4, len(u)) + 1))
    e = float(chance.choice([0.0, 1.0, 5.0, np.ptp(u)]))
    return chance, u, classes, k, min(e, float(np.ptp(u)))


@pytest.mark.parametrize("seed", range(60))
def test_scan(seed):
    chance, u, classes, k, e = drawn(seed)
    order = chance.permutation(len(classes))
    breaks = np.sort(chance.integers(0, len(order), int(chance.integers(0, 5))))
    labels = kernels.scan(order, breaks, classes, u, k, e)
    assert labels.tolist() == reference.scan(
        order.tolist(), set(breaks.tolist()), classes, u.tolist(), k, e
    )


@pytest.mark.parametrize("seed", range(60))
def test_merge_to_cap(seed):
    chance, u, classes, k, _ = drawn(seed)
    k = min(k, len(classes) // int(np.bincount(classes).max()))  # the whole table keeps the cap
    order = chance.permutation(len(classes))
    labels = np.empty(len(order), np.int64)
    labels[order] = np.sort(chance.integers(0, 6, len(order)))
    merged = kernels.merge_to_cap(labels, order, classes, len(u), k)
    assert merged.tolist() == reference.merge_to_cap(labels, order.tolist(), classes, k)


@pytest.mark.parametrize("seed", range(60))
def test_cells_and_groups_within_them(seed):
    chance, u, classes, k, e = drawn(seed)
    # Exact in any order of adding: gains are compared.
    place = chance.integers(0, 8, (len(classes), int(chance.integers(1, 4)))).astype(float)
    width = int(chance.integers(1, 6))
    index, starts = kernels.cells(place, classes, u, k, e, width)
    plain = reference.cells(place.tolist(), classes, u.tolist(), k, e, width)
    found = [part.tolist() for part in np.split(index, starts[1:])]
    assert sorted(map(sorted, found)) == sorted(map(sorted, plain))
    labels = kernels.weighted_within(index, starts, classes, u, k, e)
    for cell in found:
        groups = [u[classes[[r for r in cell if labels[r] == g]]] for g in {labels[r] for r in cell}]  # fmt: skip
        assert all(len(set(group)) >= k and np.ptp(group) >= e for group in groups)
        if len(cell) <= 11:
            least, _ = contiguous([u[classes[r]] for r in cell], k, e)
            assert sum(len(group) * np.ptp(group) for group in groups) == pytest.approx(least)


def test_groups_begin_at_boundaries_and_inside_shared_values():
    counts = np.array([3, 4, 1])
    # Before value 0, inside value 1 (four records, cut in half), after value 2.
    assert kernels.starts_of(np.array([0, 3, 6]), counts).tolist() == [0, 5]
    assert kernels.starts_of(np.array([0, 2, 4, 6]), counts).tolist() == [0, 3, 7]
