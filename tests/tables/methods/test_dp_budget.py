"""The budget of differentially private tables: what is spent, and on what change of the data."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.tables.methods import dp_table_noise
from discreet.tables.methods._cube import complete_cube, views

ONE = dc.Hierarchy.from_pairs(
    [("All", "")]
    + [(child, "All") for child in ("p", "q", "e")]
    + [(child, "p") for child in ("a", "b")]
    + [(child, "q") for child in ("c", "qq")]
    + [(child, "qq") for child in ("d", "f")]
)
OTHER = dc.Hierarchy.from_pairs(
    [("All", "")]
    + [(child, "All") for child in ("s", "r")]
    + [(child, "s") for child in ("a", "c", "e")]
    + [(child, "r") for child in ("b", "d", "f")]
)


@pytest.fixture
def spent(monkeypatch):
    """What the noise is drawn for; it is drawn as always."""
    calls = []
    draw = dp_table_noise.add_laplace

    def told(values, **demand):
        calls.append(demand)
        return draw(values, **demand)

    monkeypatch.setattr(dp_table_noise, "add_laplace", told)
    return calls


def records(size=40):
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "g": rng.choice(list("abcdef"), size),
            "k": rng.choice(list("uv"), size),
            "x": rng.uniform(-3, 10, size),
        }
    )


@pytest.mark.parametrize("totals", ["levels", "bottom-up"])
@pytest.mark.parametrize(("measure", "reach"), [(None, 1.0), ("x", 8.0)])
@pytest.mark.parametrize("most", [1, 3])
def test_no_more_is_spent_than_promised(spent, totals, measure, reach, most):
    data = dc.read(records(), hierarchies={"g": ONE, "k": dc.Hierarchy.flat(["u", "v"])})
    method = dc.DPTableNoise(epsilon=1.2, bounds=(-8, 5), totals=totals, records=most)
    done = method.hide(dc.tabulate(data, ["g", "k"], measure), rng=dc.Randomness.secure())
    assert len(spent) == done.facts["views"]
    assert sum(demand["epsilon"] for demand in spent) == pytest.approx(1.2, rel=1e-12)
    assert {demand["sensitivity"] for demand in spent} == {reach * most}


@pytest.mark.parametrize("hierarchies", [ONE, OTHER, [ONE, OTHER], [OTHER, ONE]])
def test_a_record_is_in_one_cell_of_each_view(hierarchies):
    declared = {"g": hierarchies, "k": dc.Hierarchy.flat(["u", "v"])}
    frame = pd.DataFrame(itertools.product("abcdef", "uv"), columns=["g", "k"])

    def cube(rows):
        return complete_cube(dc.tabulate(dc.read(rows, hierarchies=declared), ["g", "k"]))

    whole = cube(frame)
    view = views(whole)
    for row in range(len(frame)):
        less = cube(frame.drop(index=row).reset_index(drop=True))
        change = np.abs(whole.value - less.value)
        assert all(change[view == number].sum() <= 1 for number in np.unique(view))


def test_noise_is_wide_enough_for_what_is_promised():
    """The spread of the released cells themselves, not what the method says of it."""
    size = 3000
    cells = pd.DataFrame({"a": ["Total", *(f"c{n}" for n in range(size))]})
    cells["n"] = [10 * size, *[10] * size]
    table = dc.Table.from_cells(cells, ["a"], "n", count="n", statistic="count")
    for totals, share in (("bottom-up", 1.0), ("levels", 0.5)):
        method = dc.DPTableNoise(epsilon=1.0, totals=totals, records=2)
        done = method.hide(table, rng=dc.Randomness.secure())
        scale = 2 / share
        # Laplace: variance 2·scale²; projection on one total takes next to nothing off.
        assert (done.value - table.value)[1:].var() == pytest.approx(2 * scale**2, rel=0.25)
