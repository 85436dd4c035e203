"""Exact ends: the same as one program per end and attacker gives, by another solver's interface."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.linalg import null_space
from scipy.optimize import linprog

from discreet.audit.contributors import insiders
from discreet.audit.intervals import audit_table
from discreet.audit.knowledge import Contributors, a_priori, needs
from discreet.audit.outsider.extremes import ExtremeModel, Shared, spanning
from discreet.audit.outsider.propagation import most
from discreet.audit.problem import Tuning
from discreet.data.table import Status, Table


def crossed(shape, seed, *, negative=False):
    """A table of flat attributes with totals; some cells single, all with a largest part."""
    draw = np.random.default_rng(seed)
    counts = draw.integers(1, 5, shape)
    values = counts * draw.integers(2, 30, shape)
    if negative:
        values = values * draw.choice([-1, 1], shape)
    names = list("abc"[: len(shape)])
    rows = []
    for places in itertools.product(*(range(-1, size) for size in shape)):
        at = tuple(slice(None) if p < 0 else p for p in places)
        codes = ["T" if p < 0 else f"{name}{p}" for name, p in zip(names, places, strict=True)]
        largest = np.ceil(values[at] / counts[at]).max()
        rows.append([*codes, values[at].sum(), counts[at].sum(), largest])
    frame = pd.DataFrame(rows, columns=[*names, "value", "n", "x1"])
    frame["primary"] = frame["n"] < 3
    frame["level"] = np.abs(frame["value"]) * draw.choice([0.05, 0.3, 0.9], len(frame))
    return Table.from_cells(
        frame.astype({"value": float}),
        by=names,
        value="value",
        count="n",
        contributions=["x1"],
        total="T",
        primary="primary",
        lower="level",
        upper="level",
    )


def pattern(table, seed, part):
    """Sensitive cells and some others, never the grand total."""
    hidden = np.random.default_rng(seed).uniform(size=len(table)) < part
    hidden[0] = False
    return hidden | (table.status == Status.PRIMARY)


def farthest(table, hidden, cell, side, view=((), ((), ()))):
    """How far one attacker sees a cell go, by a program made for that alone."""
    cells = np.flatnonzero(hidden)
    down, up = a_priori(table, table.value)
    place = {int(c): i for i, c in enumerate(cells)}
    low, high = -down[cells], up[cells].copy()
    fixed, (bounded, falls) = view
    for known in fixed:
        if int(known) in place:
            low[place[int(known)]] = high[place[int(known)]] = 0.0
    for known, fall in zip(bounded, falls, strict=True):
        if int(known) in place:
            low[place[int(known)]] = max(low[place[int(known)]], -fall)
    cost = np.zeros(len(cells))
    cost[place[int(cell)]] = -side
    found = linprog(
        cost,
        A_eq=table.equations[:, cells],
        b_eq=np.zeros(table.equations.shape[0]),
        bounds=np.stack([low, high], axis=1),
    )
    return np.inf if found.status == 3 else -found.fun


def informed(table, hidden, cell, side, need, coalition=()):
    """The end for the best informed that counts and whether it is enough, attacker by attacker."""
    live = hidden | (table.value != 0) | (table.count > 0)
    knowledge = Contributors.of(table, table.value, live)
    knowledge = knowledge.pooled(coalition) if coalition else knowledge
    best = farthest(table, hidden, cell, side)
    enough = best >= need * (1 - 1e-6)
    for who in sorted(set(knowledge.who.tolist()) - knowledge.insiders(cell)):
        view = knowledge.view(who, cell)
        end = farthest(table, hidden, cell, side, view)
        if end < need * (1 - 1e-6):
            before = farthest(table, live, cell, side, view)
            if before < need * (1 - 1e-6) and end >= before * (1 - 2e-6) - 1e-9:
                continue
            enough = False
        best = min(best, end)
    return best, enough


def compare(table, hidden, coalition=()):
    audit = audit_table(
        table, published=~hidden, exact=True, attacker="contributors", coalition=coalition
    )
    down, up = a_priori(table, table.value)
    lower, upper = needs(table, table.value, (down, up))
    for place, cell in enumerate(audit.cells.tolist()):
        fall, low = informed(table, hidden, cell, -1, lower[cell], coalition)
        rise, high = informed(table, hidden, cell, 1, upper[cell], coalition)
        found = [audit._lower[place], audit._upper[place]]
        value = table.value[cell]
        assert found == pytest.approx([value - fall, value + rise], abs=1e-5), table.labels(cell)
        assert audit._safe[place] == (low and high)
    return audit


@pytest.mark.parametrize("shape", [(6, 5), (4, 3, 3)])
@pytest.mark.parametrize("many", [1, 50])
def test_ends_are_those_of_one_program_each(shape, many):
    tuning = Tuning(pushed_from=many, pushed_worth=1)
    for seed in range(4):
        table = crossed(shape, seed)
        hidden = pattern(table, seed, 0.6)
        audit = audit_table(table, published=~hidden, exact=True, cells="suppressed", tuning=tuning)
        for cell, lower, upper in zip(audit.cells, audit._lower, audit._upper, strict=True):
            ends = [
                table.value[cell] + side * farthest(table, hidden, cell, side) for side in (-1, 1)
            ]
            assert [lower, upper] == pytest.approx(ends, abs=1e-6)


@pytest.mark.parametrize(("shape", "part"), [((5, 4), 0.4), ((3, 2, 2), 0.4)])
def test_the_best_informed_contributor_decides(shape, part):
    unsafe = 0
    for seed in range(2):
        table = crossed(shape, seed)
        hidden = pattern(table, seed, part)
        audit = compare(table, hidden)
        early = audit_table(table, published=~hidden, attacker="contributors")
        assert audit._safe.tolist() == early._safe.tolist()
        unsafe += audit.unsafe
    # Both kinds of answers were compared.
    assert unsafe > 0


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(7, 6), (4, 3, 3)])
def test_the_best_informed_contributor_decides_in_many_tables(shape):
    for seed, part in itertools.product(range(10, 14), (0.3, 0.6, 0.9)):
        table = crossed(shape, seed)
        compare(table, pattern(table, seed, part))


def test_nothing_bounds_cells_that_may_be_negative_but_what_contributors_know():
    endless = 0
    for seed in range(2):
        table = crossed((4, 4), seed, negative=True)
        audit = compare(table, pattern(table, seed, 0.6))
        endless += int(np.isinf(audit._upper).sum())
    assert endless


def test_a_coalition_counts_as_one_who_knows_what_its_members_know():
    table = crossed((5, 4), 2)
    hidden = pattern(table, 2, 0.5)
    single = np.flatnonzero((table.count == 1) & hidden)[:2].tolist()
    knowledge = Contributors.of(table, table.value, np.ones(len(table), dtype=bool))
    compare(table, hidden, coalition=knowledge.owner[single].tolist())


def test_what_stops_a_cell_may_be_hidden_by_rounding(monkeypatch):
    # Without the slopes everybody is asked apart; the ends are the same.
    monkeypatch.setattr(insiders.InformedModel, "slopes", lambda self: None)
    table = crossed((4, 4), 1)
    compare(table, pattern(table, 1, 0.5))


def test_no_cell_goes_beyond_what_equations_allow():
    table = crossed((5, 4), 1)
    hidden = np.arange(len(table)) % 3 > 0
    cells = np.flatnonzero(hidden)
    down, up = a_priori(table, table.value)
    fall, rise = most(table.equations.tocsc(), cells, down, up)
    for place, cell in enumerate(cells):
        assert farthest(table, hidden, cell, -1) <= fall[place] + 1e-7
        assert farthest(table, hidden, cell, 1) <= rise[place] + 1e-7


def test_cells_share_columns_and_equations_span():
    draw = np.random.default_rng(3)
    for _ in range(50):
        block = sparse.csr_matrix(draw.choice([-1.0, 0.0, 0.0, 1.0], (6, 9)))
        shared = Shared.of(block)
        kept = spanning(shared.equations)
        rest = shared.equations.toarray()
        assert len(kept) == (np.linalg.matrix_rank(rest) if rest.size else 0)
        # As many ways to move are left as there were.
        free = shared.number - len(kept) - len(set(shared.column[shared.sign == 0].tolist()))
        assert free == block.shape[1] - np.linalg.matrix_rank(block.toarray())
        ways = null_space(rest) if rest.size else np.eye(shared.number)
        moves = ways[shared.column] * shared.sign[:, None]
        assert np.abs(block @ moves).max(initial=0.0) < 1e-9


def test_an_equation_too_few_is_noticed(monkeypatch):
    from discreet.audit.outsider import extremes
    from discreet.errors import EngineError

    rows = sparse.csc_matrix([[1.0, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1]])
    ends = np.ones(5)
    sound = ExtremeModel(rows, np.arange(5), ends, ends)
    assert sound.farthest(np.array([0]), 1).end == pytest.approx(1.0)
    monkeypatch.setattr(extremes, "spanning", lambda rows: np.arange(1))
    with pytest.raises(EngineError):
        ExtremeModel(rows, np.arange(5), ends, ends).farthest(np.array([1, 2, 3, 4]), 1)
