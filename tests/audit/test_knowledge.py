"""What everybody knows of a table, and how far its cells must remain possible."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import discreet as dc
from discreet.audit.knowledge import Contributors, aliases, needs, within
from discreet.data.table import Table

FAR = np.full(4, 1000.0)


def cells(values, count=None, **columns):
    """A table of one attribute: a total and its parts."""
    frame = pd.DataFrame({"g": ["T", *"abcdef"[: len(values)]], "v": [sum(values), *values]})
    for name, given in columns.items():
        frame[name] = given
    named = {name: name for name in columns}
    if count is not None:
        frame["n"] = [sum(count), *count]
        named["count"] = "n"
    return Table.from_cells(frame.astype({"v": float}), by=["g"], value="v", total="T", **named)


def test_a_cell_without_levels_needs_a_thousandth_of_its_value_or_of_the_middle_one():
    table = cells([200.5, 0.0, 400.5])
    lower, upper = needs(table, table.value, (FAR, FAR))
    assert lower == pytest.approx([0.601, 0.2005, 0.4005, 0.4005])
    assert upper == pytest.approx(lower)


def test_a_cell_with_a_level_on_one_side_needs_nothing_on_the_other():
    table = cells([200.5, 0.5, 400.5], lower=[0.0, 30.0, 0.0, 0.0], upper=[0.0, 0.0, 9.0, 0.0])
    lower, upper = needs(table, table.value, (FAR, FAR))
    assert lower[1:] == pytest.approx([30.0, 0.0, 0.4005])
    assert upper[1:] == pytest.approx([0.0, 9.0, 0.4005])


def test_levels_reach_no_further_than_the_room_to_move():
    table = cells([200.5, 0.5, 400.5], lower=[0.0, 30.0, 30.0, 0.0], upper=[0.0, 30.0, 9.0, 0.0])
    lower, upper = needs(table, table.value, (np.full(4, 20.0), np.full(4, 10.0)))
    assert lower[1:3].tolist() == [20.0, 20.0]
    assert upper[1:3].tolist() == [10.0, 9.0]


def test_levels_of_counts_are_whole_and_another_count_must_remain_possible():
    table = cells([5, 7, 9], lower=[0.0, 1.0, 1.2, 0.0], upper=[0.0, 0.0, 0.0, 0.0])
    table = table.replace(statistic="count")
    lower, upper = needs(table, table.value, (FAR, FAR))
    # A level of one is enough; one without a level has a thousandth, which is one at least.
    assert lower.tolist() == [1.0, 1.0, 2.0, 1.0]
    assert upper.tolist() == [1.0, 0.0, 0.0, 1.0]
    # What cannot rise at all has to be able to fall.
    tight = needs(table.replace(lower=None), table.value, (FAR, np.zeros(4)))
    assert tight[0].tolist() == [1.0] * 4
    assert tight[1].tolist() == [0.0] * 4
    # What moves by less than one either way needs the other side.
    level = table.replace(lower=np.full(4, 0.0), upper=np.full(4, 3.0))
    assert needs(level, table.value, (FAR, np.zeros(4)))[0].tolist() == [1.0] * 4


def test_cells_that_always_equal_another_lead_to_the_first():
    # Cell 0 = cell 1; cell 2 = cell 3 + cell 4, of which 4 may be a known zero.
    rows = sparse.csr_matrix(np.array([[1.0, -1, 0, 0, 0], [0, 0, 1, -1, -1]]))
    every = np.ones(5, dtype=bool)
    assert aliases(rows, every).tolist() == [0, 0, 2, 3, 4]
    assert aliases(rows, np.array([True, True, True, True, False])).tolist() == [0, 0, 2, 2, 4]
    # Two cells that add up to a constant are not equal.
    assert aliases(abs(rows), every).tolist() == [0, 1, 2, 3, 4]


def test_bounds_are_narrowed_by_what_two_values_can_be():
    table = cells([3, 1]).replace(least=np.array([0.0, 1, 0]), most=np.array([4.0, 3, 2]))
    lower, upper = within(table, (np.array([-1.0, -1, 1]), np.array([9.0, 2, 9])))
    assert (lower.tolist(), upper.tolist()) == ([0, 1, 1], [4, 2, 2])
    # Bounds of other cells than the table's are left as they are.
    others = np.zeros(2), np.ones(2)
    assert within(table, others) == others


def test_a_coalition_knows_what_its_members_know():
    table = cells([5, 3, 9], count=[1, 1, 3])
    known = Contributors.of(table, table.value, np.ones(4, dtype=bool))
    assert known.owner.tolist() == [-1, 1, 2, -1]
    pooled = known.pooled([1, 2])
    assert pooled.pool_number == max(known.who) + 1
    own = pooled.who == pooled.pool_number
    assert pooled.cell[own].tolist() == [1, 2]
    assert pooled.sole[own].all()
    assert pooled.fall[own].tolist() == [0, 0]
    # What a member contributes alone is no secret to the coalition; other cells are.
    assert pooled.insiders(1) == {1, pooled.pool_number}
    assert pooled.insiders(3) == {-1}
    assert known.insiders(1) == {1}
    with pytest.raises(dc.InputError, match="contribute to no cell"):
        known.pooled([1, 77])
