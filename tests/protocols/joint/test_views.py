"""What one party saw of 6,000 rows: a classifier of the hidden values does no better than chance."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from discreet.protocols.joint.rehearsal import rehearse_protocol
from discreet.randomness import Randomness
from tests.protocols.joint.test_judging import flags_on_shares

ROWS = 6000
PROTOCOLS = {
    "secure-sum by nodes": (dc.SecureSum(), "columns"),
    "secure-sum by aggregator": (dc.SecureSum(by="aggregator"), "columns"),
    "scalar-product": (dc.ScalarProduct(), "rows"),
    "matrix-product": (dc.MatrixProduct(), "rows"),
    "joint-regression": (dc.JointRegression(), "rows"),
    "vertical-k-means": (dc.VerticalKMeans(k=2, steps=1), "rows"),
}


def hidden(seed=3):
    return np.random.default_rng(seed).integers(0, 2, ROWS).astype(bool)


def inputs(protocol, shape, large):
    rng = np.random.default_rng(4)
    values = np.where(large, 0.9, 0.1) + rng.uniform(-0.05, 0.05, ROWS)
    values[:2] = 1.0  # bounds are public
    other = rng.uniform(0, 1, ROWS)
    if shape == "columns":
        return {"a": other[None], "b": values[None], "c": other[None]}
    return {"a": other[:, None], "b": values[:, None]}


def areas(view, large):
    """Area under the curve of a classifier on each message that has words for every row."""
    found = []
    for _, label, body in view:
        if label.startswith("opened") or len(body) < 8 * ROWS:
            continue
        whole = len(body) // 8 * 8
        words = np.frombuffer(body[:whole], "<u8")
        starts = range(0, len(words) - ROWS + 1, ROWS)
        found += [area(words[start : start + ROWS], large) for start in starts]
    return found


def area(words, large):
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8).reshape(ROWS, -1), axis=1)
    bits = bits.astype(float) - 0.5
    half = ROWS // 2
    first, labels = bits[:half], large[:half]
    direction = first[labels].mean(axis=0) - first[~labels].mean(axis=0)
    score, rest = bits[half:] @ direction, large[half:]
    ranks = np.empty(half)
    ranks[np.argsort(score, kind="stable")] = np.arange(1, half + 1)
    n = int(rest.sum())
    return float((ranks[rest].sum() - n * (n + 1) / 2) / (n * (half - n)))


ERROR = np.sqrt((ROWS // 2 + 1) / (12 * (ROWS / 4) ** 2))


def require_chance(seen):
    # All messages together; single ones exceed three errors now and then.
    assert seen
    beyond = np.abs(np.array(seen) - 0.5) / ERROR
    assert abs(np.mean(seen) - 0.5) <= 3 * ERROR / np.sqrt(len(seen))
    assert (beyond > 3).mean() <= 0.0027 + 4 * np.sqrt(0.0027 / len(seen))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_one_view_of_6000_rows_tells_nothing(name):
    protocol, shape = PROTOCOLS[name]
    large = hidden()
    run = rehearse_protocol(protocol, inputs(protocol, shape, large), rng=Randomness.seeded(11))
    seen = [one for party, view in run.views.items() if party != "b" for one in areas(view, large)]
    require_chance(seen)


def test_one_view_of_a_joint_table_of_6000_cells_tells_nothing():
    large = hidden()
    parts = [[np.array([10**9 if flag else 1]) for flag in large] for _ in range(2)]
    _, rings = flags_on_shares(parts, (dc.MinimumFrequency(3), dc.PPercent(15)))
    # Messages with whole words for each cell: products; packed bits have other places.
    for ring in rings:
        view = [("", label, body) for label, body in ring.view if len(body) % (8 * ROWS) == 0]
        require_chance(areas(view, large))


def test_the_classifier_catches_masks_that_are_real_or_used_twice():
    large = hidden()
    rng = np.random.default_rng(8)
    values = np.where(large, 900.0, 10.0)
    real = (values + rng.normal(0, 400, ROWS)).view(np.uint64)
    assert area(real, large) > 0.5 + 6 * ERROR
    twice = np.where(large, 900, 10).astype(np.uint64) + np.uint64(12345)
    assert area(twice, large) > 0.99
    fresh = values.astype(np.uint64) + Randomness.seeded(2).words(ROWS)
    assert abs(area(fresh, large) - 0.5) <= 3 * ERROR


def test_a_view_of_a_product_is_simulated_without_the_inputs():
    # In a ring of four elements everything can be listed: what the first owner sees of Y is Y + R
    # and a summand, and the pair has one distribution for every Y, given what it is to learn.
    views = {}
    for x in range(4):
        for y in range(4):
            seen = {}
            for mask_a in range(4):
                for mask_b in range(4):
                    for r_a in range(4):
                        r_b = (mask_a * mask_b - r_a) % 4
                        masked = (y + mask_b) % 4
                        part = (r_b - (x + mask_a) * mask_b) % 4
                        opened = (x * masked + r_a + part) % 4
                        assert opened == x * y % 4
                        # The owner knows x, its mask and r_a.
                        key = (mask_a, r_a, masked, part)
                        seen[key] = seen.get(key, 0) + 1
            views.setdefault((x, x * y % 4), []).append(seen)
    for same in views.values():
        assert all(one == same[0] for one in same)
