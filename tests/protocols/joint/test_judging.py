"""Rules judged on shares say what the rules say in plain sight."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.protocols.arithmetic import rehearse, split
from discreet.protocols.arithmetic.comparison import unpack
from discreet.protocols.joint.judging import audiences, judge, merge, see
from discreet.randomness import Randomness
from tests.protocols.joint.plain import asking, plain_flags, random_parts, summary
from tests.protocols.joint.rehearsed import policy_for, rehearse_table

RNG = Randomness.seeded(8)
RULES = [
    (dc.MinimumFrequency(3), dc.PPercent(15)),
    (dc.Dominance(1, 75), dc.Dominance(2, 90)),
    (dc.Pq(12.5, 80),),
    (dc.Request(70), dc.ZeroCells()),
]


def flags_on_shares(parts, rules, *, collusion=1, tops=2):
    asked = [np.array([[max(asking(v), default=0) for v in part]]) for part in parts]
    shared = [
        [split(one, rng=RNG) for one in (*summary(part, tops), mine)]
        for part, mine in zip(parts, asked, strict=True)
    ]  # owner → count, sum, largest ones, largest one that asked

    def work(node):
        of = [[one[node.index] for one in owner] for owner in shared]
        seen = see(
            node,
            [owner[0] for owner in of],
            {"m": [owner[1] for owner in of]},
            {"m": [owner[2] for owner in of]},
            {"m": [owner[3] for owner in of]},
            collusion=collusion,
        )
        bits = judge(node, rules, seen)
        return unpack(node.open_bits(bits, "flags"), len(parts[0])).astype(bool)

    results, rings = rehearse(work)
    assert all((one == results[0]).all() for one in results)
    return results[0], rings


@pytest.mark.parametrize("owners", [2, 3, 5, 7])
@pytest.mark.parametrize("rules", RULES, ids=lambda rules: "-".join(r.name for r in rules))
def test_flags_equal_the_plain_rule(owners, rules):
    parts = random_parts(np.random.default_rng(owners), owners, 60)
    found, _ = flags_on_shares(parts, rules)
    expected = plain_flags(parts, rules)
    assert (found == expected).all()
    assert expected.sum() > 0


def test_flags_with_two_owners_colluding():
    parts = random_parts(np.random.default_rng(1), 4, 80)
    rules = RULES[0]
    found, _ = flags_on_shares(parts, rules, collusion=2)
    assert (found == plain_flags(parts, rules, collusion=2)).all()
    assert found.sum() > plain_flags(parts, rules, collusion=1).sum()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_lists_of_largest_contributions_are_merged(n):
    rng = np.random.default_rng(n)
    a, b = (np.sort(rng.integers(0, 20, (n, 50)), axis=0)[::-1] for _ in range(2))
    parts = split(a, rng=RNG), split(b, rng=RNG)
    results, _ = rehearse(
        lambda node: node.open(merge(node, *(one[node.index] for one in parts)), "x")
    )
    expected = np.sort(np.concatenate([a, b]), axis=0)[::-1][:n]
    assert (results[0] == expected).all()


def test_audiences_are_all_and_every_coalition():
    assert audiences(2, 1) == [(0, 1), (1,), (0,)]
    assert len(audiences(5, 2)) == 1 + 5 + 10


def test_an_owner_subtracts_its_part():
    # The attack of the specification: what the total alone lets pass breaks the rule for an owner.
    rng = np.random.default_rng(0)
    parts = [
        [np.sort(rng.lognormal(6, 2, 3).astype(int))[::-1] for _ in range(1000)] for _ in "abc"
    ]
    rules = RULES[0]
    naive = plain_flags(parts, rules, collusion=0)
    shipped, _ = flags_on_shares(parts, rules)
    broken = {True: 0, False: 0}
    for opened in (naive, shipped):
        for cell in np.flatnonzero(~opened):
            one = [[part[cell]] for part in parts]
            broken[opened is shipped] += int(plain_flags(one, rules)[0])
    assert broken[False] > 300
    assert broken[True] == 0


@pytest.mark.slow
@pytest.mark.parametrize("owners", [2, 3, 4, 5, 6, 7])
def test_flags_of_two_thousand_tables(owners):
    # Cells are judged alone, so 334 tables of twelve cells are one table of 4,008.
    parts = random_parts(np.random.default_rng(100 + owners), owners, 4008)
    for rules in RULES:
        found, _ = flags_on_shares(parts, rules)
        assert (found == plain_flags(parts, rules)).all()


@pytest.mark.slow
@pytest.mark.parametrize("owners", [2, 3, 4, 5, 6, 7])
def test_opened_values_of_two_thousand_tables(owners):
    """The whole run of a table, from records to what is opened, for the same cells and rules."""
    parts = random_parts(np.random.default_rng(200 + owners), owners, 4008)
    codes = [f"c{place}" for place in range(4008)]
    frames = [
        pd.DataFrame(
            [(code, value) for code, cell in zip(codes, part, strict=True) for value in cell],
            columns=["icd", "cost"],
        ).astype({"icd": str, "cost": "int64"})
        for part in parts
    ]
    for rules in RULES[:3]:  # who asks is judged in `test_flags_of_two_thousand_tables`
        policy = policy_for(
            owners, keys={"icd": codes}, measures={"cost": {"bound": 1e9}}, rules=list(rules)
        )
        sql = "SELECT icd, COUNT(*) AS n, SUM(cost) AS cost FROM stays GROUP BY icd"
        table, _ = rehearse_table(frames, sql, policy)
        flags = plain_flags(parts, rules)
        assert ((table.frame.status == "withheld") == flags).all()
        whole = [np.concatenate([part[cell] for part in parts]) for cell in range(4008)]
        shown = table.frame[~flags]
        safe = np.flatnonzero(~flags)
        assert shown.n.astype(int).tolist() == [len(whole[cell]) for cell in safe]
        assert shown.cost.astype(int).tolist() == [int(whole[cell].sum()) for cell in safe]
        assert table.frame[["n", "cost"]][flags].isna().all(axis=None)
