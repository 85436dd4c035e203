"""Every small table under every method: what an attacker knows who has the program, not the key.

A publication excludes every table that cannot have given it. For methods whose draws are known
cell by cell (rounding, cell-key noise) the tables that remain are counted exactly; that these draws
are as stated is tested beside them. Of adjustments and intervals it is decided for each other table
whether any draw leads it to the same publication. Recoding is run on every table with several keys,
and two tables are told apart where they gave no publication in common.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from tests.tables.enumeration import forced, hidden_by, orders, squares

import discreet as dc
from discreet.audit.outsider.deviations import components
from discreet.audit.sliding import audit_width
from discreet.tables.assessment import assess
from discreet.tables.methods.intervals import _first_widths
from discreet.tables.suppression.deniability import Frequencies

RULES = [dc.MinimumFrequency(3)]
SUMS = np.kron([[1, 1], [1, 0], [0, 1]], [[1, 1], [1, 0], [0, 1]])
NAMES = [(r, c) for r in ("T", "p", "q") for c in ("T", "x", "y")]
#: Every 2×2 table with values up to 12, and its nine cells.
ALL = np.array(list(itertools.product(range(13), repeat=4))) @ SUMS.T


def every(least):
    """Every 2×2 table with values up to 4 and so many in all.

    Codes are only names to a method: of the up to eight orders of a table one is drawn.
    """
    rng = np.random.default_rng(4)
    return [orders(square)[rng.integers(8)] for square in squares(4) if sum(square) >= least]


def table(inner, *, omit):
    cells = SUMS @ np.array(inner)
    rows = [(*name, n) for name, n in zip(NAMES, cells.tolist(), strict=True) if n or not omit]
    frame = pd.DataFrame(rows, columns=["r", "c", "n"])
    return dc.Table.from_cells(frame, ["r", "c"], "n", count="n", statistic="count", total="T")


def released(method, inner, seed, *, omit):
    """Return the marked table and what is published of it, or nothing where it may not leave."""
    one = table(inner, omit=omit)
    marked = method.prepare(one, RULES)
    grand = np.flatnonzero((marked.codes == 0).all(axis=1))
    if marked.status[grand[0]] == 2:
        return None
    try:
        done = method.hide(marked, rng=dc.Randomness.seeded(seed))
    except dc.InfeasibleError:
        return None
    return done if assess(done, method).safe else None


def possible(method, value, there, *, omit):
    """Return which of all tables can have given a publication, by what the manual says."""
    true, printed = ALL[:, there], value[None, there]
    if method.name == "conventional-rounding":
        fits = np.floor(true / method.base + 0.5) * method.base == printed
    elif "rounding" in method.name:
        fits = np.abs(true - printed) < method.base
    else:
        fits = (np.abs(true - printed) <= method.deviation) & ((true > 0) | (printed == 0))
    keep = fits.all(axis=1)
    if omit:  # what is listed is not empty, and what is not listed is
        keep &= (true > 0).all(axis=1) & (ALL[:, ~there] == 0).all(axis=1)
    return keep


COUNTED = [
    dc.ConventionalRounding(5),
    dc.ConventionalRounding(10),
    dc.RandomRounding(3),
    dc.RandomRounding(5),
    dc.ControlledRounding(3),
    dc.ControlledRounding(5),
    dc.CellKey(deviation=8, variance=2.0),
]


def count_candidates(method, tables, keys, *, omit):
    """Assert that sensitive cells of safe publications keep all counts from 1 to 3.

    Tables count of which the same publication would have been called safe, too.
    """
    safe = 0
    for inner in tables:
        for seed in range(keys):
            done = released(method, inner, seed, omit=omit)
            if done is None:
                continue
            safe += 1
            marked = done.table
            place = {marked.labels(cell): cell for cell in range(len(marked))}
            there = np.array([name in place for name in NAMES])
            value = np.array([done.value[place[n]] if n in place else 0.0 for n in NAMES])
            left = ALL[possible(method, value, there, omit=omit)]
            far = np.abs(left - SUMS @ np.array(inner)).sum(axis=1)
            left = left[np.argsort(far, kind="stable")]
            fits = functools.cache(functools.partial(called_safe, method, done, omit))
            for number, name in enumerate(NAMES):
                if name in place and marked.status[place[name]] == 2:
                    for n in range(_least(name, inner), 4):
                        alike = left[left[:, number] == n][:, [4, 5, 7, 8]].tolist()
                        assert any(fits(tuple(one)) for one in alike), (inner, seed, name, n)
    return safe


def called_safe(method, done, omit, inner):
    """Return whether a publication would also have left the house if this were the table behind it."""
    marked = method.prepare(table(inner, omit=omit), RULES)
    if len(marked) != len(done.table) or 0 < sum(inner) < 3:
        return False
    if ((marked.value < done.lower) | (marked.value > done.upper)).any():
        return False
    return assess(dataclasses.replace(done, table=marked), method).safe


def _least(name, inner):
    """Return what everybody knows a cell to count at least: one for each part that is not empty."""
    return max(int(SUMS[NAMES.index(name)] @ (np.array(inner) > 0)), 1)


@pytest.mark.parametrize("omit", [True, False])
@pytest.mark.parametrize("method", COUNTED, ids=lambda m: f"{m.name}-{m.settings()}")
def test_counted_tables(method, omit):
    rng = np.random.default_rng(15)
    tables = rng.integers(0, 5, (12, 4)).tolist()
    count_candidates(method, [t for t in tables if sum(t)], 1, omit=omit)


@pytest.mark.slow
@pytest.mark.parametrize("omit", [True, False])
@pytest.mark.parametrize("method", COUNTED, ids=lambda m: f"{m.name}-{m.settings()}")
def test_all_counted_tables(method, omit):
    count_candidates(method, every(1), 2, omit=omit)


def told_apart(method, tables, keys, *, omit):
    """Return how many sensitive cells safe releases have, and how many are told."""
    gave, releases = defaultdict(set), []
    values = {}
    for inner in tables:
        cells = SUMS @ np.array(inner)
        values[inner] = dict(zip(NAMES, cells.tolist(), strict=True))
        for seed in range(keys):
            done = released(method, inner, seed, omit=omit)
            if done is None:
                continue
            ends = (done.lower, done.upper) if done.prints_intervals else (done.value, done.value)
            printed = tuple(
                sorted(
                    (
                        done.table.labels(cell),
                        *(float(np.nan_to_num(e[cell], nan=-1)) for e in ends),
                    )
                    for cell in range(len(done.table))
                )
            )
            gave[printed].add(inner)
            releases.append((inner, printed))
    sensitive = exact = 0
    for inner, printed in releases:
        for name, value in values[inner].items():
            if 0 < value < 3:
                sensitive += 1
                exact += len({values[other][name] for other in gave[printed]}) < 2
    return sensitive, exact


@pytest.mark.slow
def test_all_recoded_tables():
    """Recoding publishes only what no rule calls sensitive: the same table comes from several."""
    tables = [t for t in itertools.product(range(5), repeat=4) if sum(t) > 2]
    sensitive, exact = told_apart(dc.Recoding(), tables, 6, omit=True)
    assert sensitive > 1000
    assert exact == 0


def adjusts_to(before, after):
    """Return whether some key adjusts one table of counts to another, by what the manual says.

    Small counts go to 0 or to 3 and more, whichever is drawn; of all tables that do, the closest is
    taken, with drawn weights between 1 and 2: some weights must make this one the closest.
    """
    small = [0 < n < 3 for n in before]
    if any(now in (1, 2) for now, is_small in zip(after, small, strict=True) if is_small):
        return False
    choices = [
        [0]
        if n == 0 or (is_small and now == 0)
        else range(3, max(before) + 4)
        if is_small
        else range(max(before) + 4)
        for n, now, is_small in zip(before, after, small, strict=True)
    ]
    others = np.array(list(itertools.product(*choices))) @ SUMS.T
    cells = SUMS @ np.array(before)
    # Totals of small counts are small counts, too.
    sums = others[:, (cells > 0) & (cells < 3)]
    others = others[((sums == 0) | (sums >= 3)).all(axis=1)]
    gap = np.abs(SUMS @ np.array(after) - cells) - np.abs(others - cells)
    gap = np.unique(gap[(gap > 0).any(axis=1)][:, cells > 0], axis=0)
    if not len(gap):
        return True
    ones = np.ones(gap.shape[1])
    found = linprog(0 * ones, A_ub=gap, b_ub=np.full(len(gap), 1e-9), bounds=[(1, 2)] * len(ones))
    return found.status == 0


def count_adjusted_candidates(tables, keys):
    """Return the sensitive cells of safe adjustments, and those of which one value is left."""
    method, everything = dc.ControlledTabularAdjustment(time_limit=20), defaultdict(list)
    for inner in itertools.product(range(8), repeat=4):
        everything[tuple(n > 0 for n in inner)].append(inner)
    seen, told = 0, []
    for inner in tables:
        for seed in range(keys):
            done = released(method, inner, seed, omit=True)
            if done is None:
                continue
            place = {done.table.labels(cell): cell for cell in range(len(done.table))}
            after = [
                int(done.value[place[name]]) if name in place else 0
                for name in (NAMES[i] for i in (4, 5, 7, 8))
            ]
            assert adjusts_to(inner, after), (inner, seed, after)
            near = sorted(
                everything[tuple(n > 0 for n in inner)],
                key=lambda other: sum(abs(a - b) for a, b in zip(other, after, strict=True)),
            )
            cells, fits = SUMS @ np.array(inner), {}
            for number in np.flatnonzero((cells > 0) & (cells < 3)).tolist():
                seen += 1
                for other in near:
                    if int(SUMS[number] @ np.array(other)) != cells[number]:
                        if other not in fits:
                            fits[other] = adjusts_to(other, after)
                        if fits[other]:
                            break
                else:
                    told.append((inner, seed, NAMES[number], after))
    return seen, told


@pytest.mark.parametrize(
    ("tables", "keys"),
    [
        ([(1, 4, 3, 2), (0, 3, 3, 1), (2, 3, 1, 3), (1, 0, 2, 4), (2, 4, 4, 4)], 2),
        pytest.param(
            every(3),
            1,
            marks=pytest.mark.slow,
        ),
    ],
    ids=["some", "all"],
)
def test_adjusted_counts_keep_several_values(tables, keys):
    seen, told = count_adjusted_candidates(tables, keys)
    assert seen >= len(tables)
    assert told == []


def interval_table(inner, done):
    """Return whether the intervals published of one table could be those of another, by any key.

    The other lies in all of them; they are as wide as it needs, doubled some times; some coins
    withhold the same cells of it; and the auditor calls them safe for it.
    """
    method, hidden = dc.Intervals(), done.withheld
    marked = method.prepare(table(inner, omit=True), RULES)
    if len(marked) != len(done.table):
        return False
    inside = (done.lower <= marked.value) & (marked.value <= done.upper)
    if not inside.all() or (marked.status[~hidden] == 2).any():
        return False
    groups = components(marked.equations, np.flatnonzero(hidden))[0]
    ours, theirs = (_first_widths(one, groups)[hidden] for one in (marked, done.table))
    if (ours != theirs).any():
        return False
    bounds, known = (done.lower, done.upper), Frequencies.of(marked, "outsider")
    if not audit_width(marked, published=~hidden, bounds=bounds).safe:
        return False
    if known is not None and known.denies(hidden) and not known.denies(hidden, bounds):
        return False
    withheld = hidden_by(method, marked, coins=forced(hidden))
    return withheld is not None and (withheld == hidden).all()


def count_interval_candidates(tables):
    """Return the sensitive cells of published intervals, and those that lose a promised count.

    Promised are the counts below three that totals and intervals leave, and one of three or more.
    """
    rng, seen, told = np.random.default_rng(5), 0, []
    for inner in tables:
        done = released(dc.Intervals(), inner, int(rng.integers(1000)), omit=True)
        if done is None:
            continue
        place = {name: done.table.cell(*name) for name in NAMES if name in _names(done.table)}
        ends = [
            (done.lower[place[n]], done.upper[place[n]]) if n in place else (0, 0) for n in NAMES
        ]
        low, high = np.array(ends).T
        near = ALL[((low <= ALL) & (high >= ALL)).all(axis=1)]
        near = near[((near > 0) == (SUMS @ np.array(inner) > 0)).all(axis=1)]
        cells, fits = SUMS @ np.array(inner), {tuple(inner): True}
        near = near[np.argsort(np.abs(near - cells).sum(axis=1), kind="stable")]
        for number in np.flatnonzero((cells > 0) & (cells < 3)).tolist():
            seen += 1
            kinds = np.minimum(near[:, number], 3)
            left = set()
            for kind, row in zip(kinds.tolist(), near.tolist(), strict=True):
                other = tuple(row[i] for i in (4, 5, 7, 8))
                if kind not in left and other not in fits:
                    fits[other] = interval_table(other, done)
                left |= {kind} if fits.get(other) else set()
            if left != set(kinds.tolist()) or len(left) < 2:
                told.append((inner, NAMES[number], sorted(left)))
    return seen, told


@pytest.mark.parametrize(
    "tables",
    [
        [(1, 4, 3, 2), (4, 2, 3, 4), (0, 2, 2, 0)],
        pytest.param(
            every(3),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["some", "all"],
)
def test_published_intervals_keep_several_values(tables):
    seen, told = count_interval_candidates(tables)
    assert seen >= len(tables)
    assert told == []


def test_cells_that_are_not_small_keep_their_printed_ends():
    """With 3 beside it the 2 could not be 1, so that the 3 would not be printed so: it is less."""
    marked = dc.Intervals().prepare(table((4, 1, 4, 0), omit=True), RULES)
    printed = {("T", "x"): (6, 8), ("T", "y"): (1, 4), ("p", "x"): (1, 4), ("p", "y"): (1, 5)}
    hidden = np.isin(np.arange(len(marked)), [marked.cell(*name) for name in printed])
    lower, upper = marked.value.copy(), marked.value.copy()
    for name, ends in printed.items():
        lower[marked.cell(*name)], upper[marked.cell(*name)] = ends
    known = Frequencies.of(marked, "outsider")
    assert known.denies(hidden)
    assert not known.denies(hidden, (lower, upper))
    assert audit_width(marked, published=~hidden, bounds=(lower, upper)).safe


def _names(one):
    return {one.labels(cell) for cell in range(len(one))}


LEAVES = [("p", "x"), ("p", "y"), ("q", "x"), ("q", "y")]


def remaining(method, printed, up):
    """Return how wide a range is left for one contribution, its way known (or unknown: None)."""
    least, most = method.least / 100, method.most / 100
    ends = {
        True: (printed / (1 + most), printed / (1 + least)),
        False: (printed / (1 - least), printed / (1 - most)),
    }
    if up is None:
        return ends[False][1] - ends[True][0]
    return ends[up][1] - ends[up][0]


def count_noisy_candidates(tables, keys):
    """Assert that sums of records that are called safe keep their levels, whatever was drawn.

    Each inner cell is one contributor, so that totals can be bounded by their printed parts. The
    amounts are no whole numbers, of which two would have to remain.
    """
    method, judged = dc.RecordNoise(5, 20), 0
    for inner in tables:
        rows = [
            (*name, v * 100.25, i)
            for i, (name, v) in enumerate(zip(LEAVES, inner, strict=True))
            if v
        ]
        data = dc.read(pd.DataFrame(rows, columns=["r", "c", "v", "id"]), unit="id")
        marked = method.prepare(dc.tabulate(data, ["r", "c"], "v"), RULES)
        for seed in range(keys):
            done = method.hide(marked, rng=dc.Randomness.seeded(seed))
            assert assess(done, method).safe
            printed = {row[:2]: done.value[marked.cell(*row[:2])] for row in rows}
            true = {row[:2]: row[2] for row in rows}
            for cell in np.flatnonzero(marked.status == 2).tolist():
                r, c = marked.labels(cell)
                parts = [n for n in true if r in ("Total", n[0]) and c in ("Total", n[1])]
                largest = max(parts, key=true.get)
                width = sum(
                    remaining(method, printed[n], printed[n] > true[n] if n == largest else None)
                    for n in parts
                )
                assert width >= max(marked.lower[cell], marked.upper[cell]) - 1e-9
                judged += 1
    return judged


@pytest.mark.parametrize(
    "tables",
    [
        [(1, 0, 0, 0), (1, 2, 3, 4), (4, 0, 1, 1), (0, 3, 0, 2)],
        pytest.param(every(1), marks=pytest.mark.slow),
    ],
    ids=["some", "all"],
)
def test_noise_on_records_leaves_the_levels(tables):
    assert count_noisy_candidates(tables, 2) >= 2 * len(tables)
