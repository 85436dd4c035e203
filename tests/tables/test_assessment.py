"""The audit of a release against an independent solver: what the published numbers leave open."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.tables.instances import random_table

import discreet as dc

RULES = [dc.PPercent(20), dc.MinimumFrequency(2)]


def attack(release):
    """Return the interval of each sensitive cell, from published numbers and equations alone."""
    done, table = release.protected, release.table
    equations = table.equations.toarray()
    lower = np.where(done.withheld, 0.0, done.value) if done.lower is None else done.lower
    upper = np.where(done.withheld, np.inf, done.value) if done.upper is None else done.upper
    bounds = [
        (low, None if np.isinf(high) else high) for low, high in zip(lower, upper, strict=True)
    ]
    found = {}
    for cell in np.flatnonzero(table.status == 2):
        ends = []
        for sign in (1, -1):
            cost = np.zeros(len(table))
            cost[cell] = sign
            solved = linprog(cost, A_eq=equations, b_eq=np.zeros(len(equations)), bounds=bounds)
            ends.append(np.inf if solved.status == 3 else sign * solved.fun)
        found[int(cell)] = tuple(ends)
    return found


@pytest.mark.parametrize(
    "method",
    [
        dc.Suppression(attacker="outsider"),
        dc.Suppression(attacker="contributors"),
        dc.Intervals(),
        dc.ControlledRounding(),
        dc.RandomRounding(),
        dc.ConventionalRounding(),
        dc.CellKey(),
    ],
    ids=lambda m: f"{m.name}-{getattr(m, 'attacker', '')}",
)
def test_audit_agrees_with_an_independent_solver(method):
    checked = unsafe = 0
    for seed in range(8):
        table = random_table(seed, (4, 3))
        try:
            release = table.protect(rules=RULES, method=method, rng=dc.Randomness.seeded(seed))
        except dc.InfeasibleError:
            continue
        audit = release.audit(attacker="outsider", exact=True)
        frame = audit.intervals
        truth, marked = release.table.value, release.table
        for (cell, (low, high)), row in zip(
            attack(release).items(), frame.itertuples(), strict=True
        ):
            scale = max(1.0, abs(truth[cell]))
            assert row.lower == pytest.approx(low, abs=1e-5 * scale)
            assert row.upper == pytest.approx(high, abs=1e-5 * scale)
            assert low <= truth[cell] + 1e-6 * scale
            assert high >= truth[cell] - 1e-6 * scale
            needs = max(truth[cell] - marked.lower[cell], 0.0), truth[cell] + marked.upper[cell]
            enough = low <= needs[0] + 1e-5 * scale and high >= needs[1] - 1e-5 * scale
            if release.protected.lower is not None:  # where it lies is drawn: the width counts
                levels = np.array([truth[cell] - needs[0], marked.upper[cell]])
                # The largest value that is possible needs most.
                grows = levels.sum() < truth[cell]
                most = np.ceil(levels * (high / truth[cell] if grows else 1.0) - 1e-6)
                levels = np.ceil(levels - 1e-9)
                ends = np.ceil(low - 1e-6), np.floor(high + 1e-6)  # the amounts are whole numbers
                enough = ends[1] - ends[0] >= most.sum()
                if truth[cell] <= levels[0]:  # down to zero: this end does not slide
                    enough &= ends[0] <= 0 and ends[1] >= truth[cell] + levels[1]
            if release.protected.spread is not None:
                enough &= release.protected.spread[cell] >= max(levels[1], 1) * (1 - 1e-9)
            # Of cell-key noise the verdict holds for every draw: this one may leave more.
            assert row.safe == enough or (method.name == "cell-key" and enough)
            checked += 1
            unsafe += not enough
        if release.withholds:
            assert release.audit().safe
    assert checked > 20
    if method.name in ("suppression", "intervals"):
        assert unsafe == 0
