"""The attacks: insiders against enumeration, learning against data that can and cannot be learned."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from discreet.microdata.permutation.amounts import Amounts
from discreet.microdata.permutation.groups import Groups
from discreet.microdata.permutation.risk import definetti, insiders, sampled
from discreet.randomness import Randomness


def groups_of(values, labels):
    return Groups.of(Amounts.of(pa.array(values), name="s"), np.asarray(labels, dtype=np.int64))


@pytest.mark.parametrize("seed", range(12))
def test_insiders_equal_the_worst_choice(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 5, 7)
    labels = np.array([0, 0, 0, 0, 1, 1, 1])
    found = insiders(groups_of(values, labels), 4)
    for place, number in enumerate(found.insiders):
        distinct, span, exposed = [], [], 0
        for group in (0, 1):
            own = values[labels == group]
            left = [
                np.delete(own, list(out)) for out in itertools.combinations(range(len(own)), number)
            ]
            left = [rest for rest in left if len(rest)]
            if not left:
                continue
            fewest = min(len(set(rest)) for rest in left)
            distinct.append(fewest)
            span.append(min(np.ptp(rest) for rest in left))
            exposed += (len(own) - number) if fewest == 1 else 0
        assert found.distinct[place] == min(distinct)
        assert found.span[place] == min(span)
        assert found.exposed[place] == pytest.approx(exposed / len(values))


def test_learning_works_where_values_follow_from_quasi_identifiers():
    rng = np.random.default_rng(3)
    n = 4000
    code = rng.integers(0, 4, n)
    follows = code * 10 + rng.integers(0, 3, n)  # four clusters, told apart by the code
    labels = np.argsort(np.argsort(rng.random(n))) // 8
    attack = definetti(groups_of(follows, labels), code[:, None], np.arange(int(labels.max()) + 1))
    assert attack.accuracy > attack.baseline + 0.1
    assert attack.error < 0.5 * attack.baseline_error
    apart = rng.permutation(follows)
    blind = definetti(groups_of(apart, labels), code[:, None], np.arange(int(labels.max()) + 1))
    assert abs(blind.advantage) < 0.05


def test_large_releases_are_attacked_on_a_sample():
    rng = np.random.default_rng(0)
    n = 30_000
    groups = groups_of(rng.integers(0, 500, n), np.arange(n) // 10)
    chosen = sampled(groups, Randomness.seeded(1))
    attack = definetti(groups, rng.integers(0, 3, (n, 2)), chosen)
    assert 19_000 < attack.records <= 20_000
