"""Exact ends: the same as one program per end gives, and what equations allow at most."""

import itertools

import numpy as np
import pandas as pd
import pytest

from discreet.audit import exact
from discreet.audit.deviations import DeviationModel
from discreet.audit.intervals import audit_table
from discreet.audit.knowledge import a_priori
from discreet.data.table import Table


def crossed(shape, seed):
    """A table of flat attributes with totals; some cells single, all with a largest part."""
    draw = np.random.default_rng(seed)
    counts = draw.integers(1, 5, shape)
    values = counts * draw.integers(2, 30, shape)
    names = list("abc"[: len(shape)])
    rows = []
    for places in itertools.product(*(range(-1, size) for size in shape)):
        at = tuple(slice(None) if p < 0 else p for p in places)
        codes = ["T" if p < 0 else f"{name}{p}" for name, p in zip(names, places, strict=True)]
        largest = np.ceil(values[at] / counts[at]).max()
        rows.append([*codes, values[at].sum(), counts[at].sum(), largest])
    frame = pd.DataFrame(rows, columns=[*names, "value", "n", "x1"])
    frame["primary"] = frame["n"] < 3
    return Table.from_cells(
        frame.astype({"value": float}),
        by=names,
        value="value",
        count="n",
        contributions=["x1"],
        total="T",
        primary="primary",
    )


def plain(table, hidden, cell):
    """The ends of an outsider by two programs that know nothing of others."""
    down, up = a_priori(table, table.value)
    model = DeviationModel(table.equations.tocsc(), np.flatnonzero(hidden), down, up)
    return [table.value[cell] + model.extreme(cell, side)[0] for side in (-1, 1)]


@pytest.mark.parametrize("shape", [(6, 5), (4, 3, 3)])
@pytest.mark.parametrize("many", [1, 50])
def test_ends_are_those_of_one_program_each(monkeypatch, shape, many):
    monkeypatch.setattr(exact, "_MANY", many)
    monkeypatch.setattr(exact, "_WORTH", 1)
    for seed in range(4):
        table = crossed(shape, seed)
        hidden = np.random.default_rng(seed).uniform(size=len(table)) < 0.6
        hidden[0] = False
        hidden |= table.status > 0
        audit = audit_table(table, published=~hidden, exact=True, cells="suppressed")
        for cell, lower, upper in zip(audit.cells, audit._lower, audit._upper, strict=True):
            assert [lower, upper] == pytest.approx(plain(table, hidden, cell), abs=1e-6)


def test_the_best_informed_contributor_decides():
    for seed in range(4):
        table = crossed((6, 5), seed)
        hidden = np.ones(len(table), dtype=bool)
        hidden[table.value > np.quantile(table.value, 0.7)] = False
        hidden |= table.status > 0
        outside = audit_table(table, published=~hidden, exact=True)
        inside = audit_table(table, published=~hidden, exact=True, attacker="contributors")
        early = audit_table(table, published=~hidden, attacker="contributors")
        assert (inside._lower >= outside._lower - 1e-7).all()
        assert (inside._upper <= outside._upper + 1e-7).all()
        assert inside._safe.tolist() == early._safe.tolist()


def test_no_cell_goes_beyond_what_equations_allow():
    table = crossed((5, 4), 1)
    hidden = np.arange(len(table)) % 3 > 0
    cells = np.flatnonzero(hidden)
    down, up = a_priori(table, table.value)
    fall, rise = exact.most(table.equations.tocsc(), cells, down, up)
    for place, cell in enumerate(cells):
        low, high = plain(table, hidden, cell)
        assert low >= table.value[cell] - fall[place] - 1e-7
        assert high <= table.value[cell] + rise[place] + 1e-7
