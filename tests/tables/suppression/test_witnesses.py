"""Conditions found by programs against tables struck out from a complete list."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.tables.enumeration import counts

import discreet as dc
from discreet.tables.suppression.deniability import Frequencies


def listed(table, hidden, least):
    """Every table of counts that agrees with a publication: inner cells first, totals checked."""
    inner = np.flatnonzero((table.codes > 0).all(axis=1))
    under = (table.codes[:, None] == 0) | (table.codes[:, None] == table.codes[inner])
    ranges = [
        range(int(least[c]), int(table.value[0]) + 1) if c in hidden else [int(table.value[c])]
        for c in inner.tolist()
    ]
    rows = np.array(list(itertools.product(*ranges))) @ under.all(axis=2).T
    shown = np.setdiff1d(np.arange(len(table)), hidden)
    return rows[(rows[:, shown] == table.value[shown]).all(axis=1)][:, hidden]


def left_of(known, hidden, rows):
    """Strike out tables with a sensitive cell that lacks a count, until none is."""
    small = rows < known.minimum
    left = small.any(axis=1)
    while True:
        bad = np.zeros(len(rows), dtype=bool)
        for who in (None, *range(len(hidden))) if known.contributors else (None,):
            agree = left if who is None else left & (rows[:, who] == 1)
            own = None if who is None else known.people[hidden[who]]
            for place, cell in enumerate(hidden.tolist()):
                people = known.people[cell]
                seen = set(np.minimum(rows[agree, place], known.minimum).tolist())
                wanted = {*range(len(people), known.minimum), known.minimum}
                if people != own and not wanted <= seen:
                    bad |= agree & small[:, place]
        if not (bad & left).any():
            return left
        left &= ~bad


def compare(seeds):
    """Return how many patterns passed and how many did not; each as the list says."""
    verdicts = {True: 0, False: 0}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        shape = [(2, 2), (4,), (3, 2), (2, 2, 2)][seed % 4]
        attacker = ["outsider", "contributors"][seed // 4 % 2]
        leaves = rng.poisson(rng.uniform(0.7, 2.5), shape)
        table = dc.Suppression(attacker=attacker).prepare(
            counts(leaves), [dc.MinimumFrequency(int(rng.integers(2, 4)))]
        )
        known = Frequencies.of(table, attacker)
        if known is None or table.status[0] == 2 or table.value[0] > 14:
            continue
        least = np.array([len(people) for people in known.people])
        more = rng.random(len(table)) < rng.choice([0.3, 0.6, 1.0])
        withheld = (table.status == 2) | ((table.value > 0) & more)
        withheld[0] = False
        hidden = np.flatnonzero(withheld)
        inner = withheld & (table.codes > 0).all(axis=1)
        if not inner.any() or (table.value[0] + 1) ** inner.sum() > 2e4:
            continue
        rows = listed(table, hidden, least)
        bounds = None
        if rng.random() < 0.3:
            bounds = table.value - rng.integers(0, 3), table.value + rng.integers(0, 4)
            low, high = (end[hidden] for end in bounds)
            rows = rows[((low <= rows) & (rows <= high)).all(axis=1)]
        left = left_of(known, hidden, rows)
        conditions = known.conditions(withheld, bounds)
        full = np.tile(table.value, (len(rows), 1))
        full[:, hidden] = rows
        met = np.array([conditions.met_by(one) for one in full]) & (rows < known.minimum).any(1)
        assert (met == left).all(), (seed, leaves.tolist(), hidden.tolist())
        verdicts[bool(known.denies(withheld, bounds))] += 1
    return verdicts


def test_what_remains_is_what_a_list_leaves():
    verdicts = compare(range(80))
    assert min(verdicts.values()) > 5


@pytest.mark.slow
def test_what_remains_of_many_tables_is_what_a_list_leaves():
    verdicts = compare(range(1000, 3000))
    assert min(verdicts.values()) > 200
