"""Compiled passes over leaves and profiles: what plain Python says, group by group and node by node."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.queries.guards._cells import Grid, Tree, leaves_of, step_of
from discreet.queries.guards._grouping import grouped, marked, summed
from discreet.queries.guards._slots import FANOUT


def narrowed_plainly(tree, held):
    """Return the range of one group's sum; `held` has the ends of what it holds by leaf."""

    def inside_and_outside(depth, node):
        level = tree.levels[depth]
        if depth == 0:
            inside = held.get(node, (0.0, 0.0))
            outside = level.low[node] - inside[0], level.high[node] - inside[1]
        else:
            below = range(node * FANOUT, min((node + 1) * FANOUT, tree.levels[depth - 1].low.size))
            parts = [inside_and_outside(depth - 1, part) for part in below]
            inside = sum(p[0][0] for p in parts), sum(p[0][1] for p in parts)
            outside = sum(p[1][0] for p in parts), sum(p[1][1] for p in parts)
        least, most = level.least[node], level.most[node]
        if not touched(depth, node):
            return (0.0, 0.0), (least, most)
        return (
            (max(inside[0], least - outside[1]), min(inside[1], most - outside[0])),
            (max(outside[0], least - inside[1]), min(outside[1], most - inside[0])),
        )

    def touched(depth, node):
        return any(leaf // FANOUT**depth == node for leaf in held)

    return inside_and_outside(len(tree.levels) - 1, 0)[0]


def random_tree(rng, n):
    """Return a tree over n records with values in cells of a grid, and each record's leaf and ends."""
    values = rng.lognormal(8, 1.5, n).round(int(rng.integers(-2, 3)))
    values *= rng.choice([1.0, -1.0], n, p=[0.8, 0.2])
    step = step_of(values)
    grid = Grid(float(rng.integers(1, 2000)), step, float(np.abs(values).max()) or 1.0)
    low, high = grid.cells(values, np.full(n, rng.uniform(0.05, 0.9)))
    leaf = leaves_of(np.sort(rng.integers(0, max(n // 3, 1), n)), int(rng.integers(2, 6)))
    tree = Tree.of(leaf, values, low, high, step)
    if rng.random() < 0.2:
        factor, slack = rng.choice([-0.3, 2.0]), (-1.0, 2.0)
        tree = tree.scaled(factor, 5.0, np.bincount(leaf), slack)
        ends = factor * low + 5, factor * high + 5
        low, high = np.minimum(*ends) + slack[0], np.maximum(*ends) + slack[1]
        values = factor * values + 5
    return tree, leaf, values, low, high


@pytest.mark.parametrize("seed", range(60))
def test_ranges_are_those_of_plain_python(seed):
    rng = np.random.default_rng(seed)
    # Up to four levels of nodes.
    tree, leaf, values, low, high = random_tree(rng, int(rng.choice([2, 9, 60, 400, 1500])))
    groups = int(rng.integers(1, 6))
    chosen = np.flatnonzero(rng.random(leaf.size) < rng.choice([0.02, 0.3, 0.9, 1.0]))
    rng.shuffle(chosen)
    group, of = rng.integers(0, groups, chosen.size), leaf[chosen]
    found = tree.ranges(group, groups, of, low[chosen], high[chosen])
    for number in range(groups):
        held = {}
        for record in chosen[group == number]:
            down, up = held.get(leaf[record], (0.0, 0.0))
            held[leaf[record]] = down + low[record], up + high[record]
        expected = narrowed_plainly(tree, held) if held else (0.0, 0.0)
        size = 1e-9 * np.abs(high).sum()
        assert np.allclose([end[number] for end in found], expected, 0, size)
        truth = values[chosen[group == number]].sum()
        assert expected[0] - size <= truth <= expected[1] + size


def test_records_without_a_value_add_nothing():
    tree, leaf, _, low, high = random_tree(np.random.default_rng(1), 60)
    nobody = np.r_[leaf, [-1, -1]]
    ends = np.r_[low, [1e6, 1e6]], np.r_[high, [2e6, 2e6]]
    everybody = np.zeros(leaf.size, np.int64)
    for one, other in zip(
        tree.ranges(everybody, 1, leaf, low, high),
        tree.ranges(np.zeros(nobody.size, np.int64), 1, nobody, *ends),
        strict=True,
    ):
        assert one == other


@pytest.mark.parametrize("seed", range(20))
def test_profiles_come_into_groups_as_in_plain_python(seed):
    rng = np.random.default_rng(seed)
    n, groups = int(rng.integers(0, 200)), int(rng.integers(1, 12))
    codes, chosen = rng.integers(0, groups, n).astype(np.int32), rng.random(n) < 0.4
    members = {
        code: [place for place in range(n) if chosen[place] and codes[place] == code]
        for code in range(groups)
    }
    members = {code: places for code, places in members.items() if places}
    bits = np.packbits(chosen)
    flat, ends, present = grouped(bits, codes, groups)
    assert present.tolist() == list(members)
    assert [part.tolist() for part in np.split(flat, ends[:-1])][: len(members)] == [*members.values()]  # fmt: skip
    values = rng.integers(0, 100, n)
    assert summed(values, flat, ends).tolist() == [int(values[p].sum()) for p in members.values()]
    places, group, there = marked(bits, codes, groups)
    assert there.tolist() == list(members)
    assert places.tolist() == np.flatnonzero(chosen).tolist()
    assert [[*members][number] for number in group] == codes[places].tolist()
