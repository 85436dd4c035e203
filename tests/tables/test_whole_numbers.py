"""Counts are whole numbers: alternatives that are fractions of tables protect nobody."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from tests.tables.enumeration import Publication, counts

import discreet as dc
from discreet.audit.intervals import audit_table

N = 3
#: A direction of the 3 × 3 × 3 table that keeps all two-way margins, with entries of 2 both ways.
CIRCUIT = np.array(
    [1, -1, 0, 0, 1, -1, -1, 0, 1, -1, 0, 1, 0, 1, -1, 1, -1, 0, 0, 1, -1, 0, -2, 2, 0, 1, -1]
).reshape(3, 3, 3)


def halves():
    """A table with published margins whose only alternatives are half a circuit away."""
    return counts(np.where(np.abs(CIRCUIT) == 2, 2, np.where(CIRCUIT == 0, 0, 4)))


def drawn(seed):
    """A small table of counts: two or three attributes, many small cells, some empty."""
    rng = np.random.default_rng(seed)
    shape = [(2, 2), (3, 2), (3, 3), (4, 3), (2, 2, 2), (3, 2, 2), (3, 3, 2)][seed % 7]
    spread = rng.choice([1.5, 3.0, 6.0])
    leaves = rng.poisson(rng.exponential(spread, shape))
    leaves[rng.uniform(size=shape) < rng.choice([0.0, 0.2])] = 0
    return counts(leaves)


def protected(table, seed):
    """Return the release, some margins never withheld; none where nothing protects it."""
    rng = np.random.default_rng(seed)
    stars = ["*"] * len(table.by)
    never = []
    if rng.uniform() < 0.5:
        place = int(rng.integers(len(stars)))
        never = ["/".join([*stars[:place], "Total", *stars[place + 1 :]])]
    small = table.count < N
    barred = np.zeros(len(table), dtype=bool)
    for name in never:
        at = name.split("/").index("Total")
        barred = table.codes[:, at] == 0
    if (small & (table.value > 0) & barred).any():
        never = []
    method = dc.Suppression(
        attacker=("outsider", "contributors")[seed % 2],
        objective=("count", "value")[seed // 2 % 2],
        effort=("balanced", "fast")[seed // 4 % 2],
        never=tuple(never),
    )
    try:
        return table.protect([dc.MinimumFrequency(N)], method)
    except dc.InfeasibleError:
        return None


def promised(table, cell):
    """What the rule promises of a small count: every one up to N that the empty cells allow."""
    return float(len(_people(table, cell))), float(N)


def require_promise(table, release, attacker):
    withheld = release.protected.withheld
    publication = Publication(table, withheld)
    sensitive = np.flatnonzero((table.value > 0) & (table.value < N))
    assert withheld[sensitive].all()
    singles = [()]
    if attacker == "contributors":
        singles += [(int(c),) for c in np.flatnonzero(withheld & (table.value == 1))]
    for cell, fixed in itertools.product(sensitive.tolist(), singles):
        if cell in fixed or _same(table, cell, fixed):
            continue
        low, high = promised(table, cell)
        for wanted in (low, high):
            move = wanted - table.value[cell]
            if move:
                assert _reached(publication, cell, move, fixed), (table.labels(cell), wanted, fixed)


def _reached(publication, cell, move, fixed):
    """Whether a table moves the cell as far or farther."""
    step = 1 if move > 0 else -1
    return any(publication.has(cell, move + step * more, 8, fixed) for more in range(3))


def _same(table, cell, fixed):
    """Whether the only person in a cell is the only one in the other."""
    return any(_people(table, f) == _people(table, cell) for f in fixed)


def _people(table, cell):
    """The leaves below a cell in which there is anybody."""
    leaves = (table.codes > 0).all(axis=1) & (table.value > 0)
    return {leaf for leaf in np.flatnonzero(leaves).tolist() if _holds(table, cell, leaf)}


def _holds(table, total, part):
    """Whether a cell is part of another: each code is the same or the other's is the total."""
    return all(t in (0, p) for t, p in zip(table.codes[total], table.codes[part], strict=True))


@pytest.mark.parametrize(
    "seeds",
    [
        range(40),
        *(pytest.param(range(n, n + 140), marks=pytest.mark.slow) for n in range(40, 2000, 140)),
    ],
    ids=lambda seeds: f"{seeds.start}-{seeds.stop}",
)
def test_every_promised_count_remains_possible(seeds):
    """All tables that agree with the publication are looked through, without a solver."""
    judged = 0
    for seed in seeds:
        table = drawn(seed)
        release = protected(table, seed)
        if release is not None and release.protected.withheld.any():
            require_promise(table, release, release.method.attacker)
            judged += 1
    assert judged > len(seeds) // 3


@pytest.mark.parametrize("seed", range(8))
def test_exact_ends_of_counts_are_those_of_all_tables(seed):
    table = drawn(seed)
    rng = np.random.default_rng(seed)
    hidden = (table.value > 0) & (rng.uniform(size=len(table)) < 0.6)
    hidden &= ~(table.codes == 0).all(axis=1)
    audit = audit_table(table, published=~hidden, exact=True, cells="suppressed")
    publication = Publication(table, hidden)
    for cell, low, high in zip(audit.cells, audit._lower, audit._upper, strict=True):
        assert low == round(low)
        span = 6
        ends = publication.extremes(int(cell), span)
        assert max(low, table.value[cell] - span) == ends[0], table.labels(cell)
        assert min(high, table.value[cell] + span) == ends[1], table.labels(cell)


def test_alternatives_that_are_half_a_table_protect_nobody():
    """The linear interval of the cell is [1, 3], and 2 the only whole number that is possible."""
    table = halves()
    table = table.replace(status=np.where(table.value == 2, np.int8(2), np.int8(0)))
    margins = (table.codes == 0).any(axis=1) | (table.value == 0)
    for attacker, exact in itertools.product(("outsider", "contributors"), (True, False)):
        audit = audit_table(table, published=margins, attacker=attacker, exact=exact)
        assert not audit.safe
        assert audit.intervals[["lower", "upper"]].values.tolist() == [[2.0, 2.0]] * 2
    real = dataclasses.replace(table, whole=False)
    assert audit_table(real, published=margins, exact=True).safe


@pytest.mark.parametrize("effort", ["fast", "balanced", "optimal"])
def test_margins_that_must_stay_leave_no_safe_pattern(effort):
    table = halves()
    never = ("Total/*/*", "*/Total/*", "*/*/Total")
    for attacker in ("outsider", "contributors"):
        with pytest.raises(dc.InfeasibleError):
            table.protect(
                [dc.MinimumFrequency(N)],
                dc.Suppression(never=never, attacker=attacker, effort=effort),
            )
    release = table.protect([dc.MinimumFrequency(N)], dc.Suppression(effort=effort))
    assert release.audit().safe
    require_promise(table, release, "contributors")


def test_published_counts_are_judged_in_whole_numbers():
    table = halves()
    margins = (table.codes == 0).any(axis=1) | (table.value == 0)
    frame = table.to_frame()[["d0", "d1", "d2", "value"]]
    frame["value"] = frame["value"].where(margins)
    audit = dc.audit_published(frame, counts=True)
    found = audit.intervals
    assert not audit.safe
    assert (found.lower == found.upper).all()
    assert set(found.lower) == {2.0, 4.0}
    # As real numbers they would lie between 3.5 and 4.5, and be called safe.
    assert dc.audit_published(frame, counts=False).safe
    # Where nothing says what they are, the numbers printed are whole, and zeros may be withheld.
    found = dc.audit_published(frame).intervals
    assert (found.lower == found.lower.round()).all()
    assert (found.upper == found.upper.round()).all()


def test_levels_of_counts_are_whole_numbers():
    table = counts(np.array([[5, 5, 2], [5, 5, 5]]))
    status = np.zeros(len(table), dtype=np.int8)
    status[table.cell("c1", "c3")] = 2
    level = np.where(status > 0, 0.4, 0.0)
    table = table.replace(status=status, lower=level, upper=level)
    audit = audit_table(table, published=np.ones(len(table), dtype=bool))
    assert audit.intervals[["need_lower", "need_upper"]].values.tolist() == [[1.0, 3.0]]
