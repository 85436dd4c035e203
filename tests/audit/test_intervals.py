"""The auditor: published examples, and agreement with an independently written program."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import discreet as dc
from discreet.audit.intervals import audit_table
from discreet.data.table import Status, Table


def grid(inner, *, primary=(), level=1.0, count=None, largest=None):
    """A table of rows × columns with its totals, from the inner values."""
    inner = np.asarray(inner, dtype=float)
    counts = None if count is None else np.asarray(count)
    rows = []
    names = ["T", *(f"r{i}" for i in range(inner.shape[0]))]
    columns = ["T", *(f"c{j}" for j in range(inner.shape[1]))]
    for (i, r), (j, c) in itertools.product(enumerate(names), enumerate(columns)):
        part = (slice(None) if i == 0 else i - 1, slice(None) if j == 0 else j - 1)
        row = {"r": r, "c": c, "value": inner[part].sum()}
        row["n"] = 0 if counts is None else counts[part].sum()
        row["x1"] = 0.0 if largest is None else np.max(np.asarray(largest)[part])
        row["primary"] = (i - 1, j - 1) in primary and i > 0 and j > 0
        row["level"] = level
        rows.append(row)
    return Table.from_cells(
        pd.DataFrame(rows),
        by=["r", "c"],
        value="value",
        count=None if count is None else "n",
        contributions=() if largest is None else ("x1",),
        primary="primary",
        lower="level",
        upper="level",
        total="T",
    )


def hide(table, *cells):
    shown = np.ones(len(table), dtype=bool)
    shown[[table.cell(*cell) for cell in cells]] = False
    return shown


def independent_interval(table, shown, cell, fixed=(), floors=None):
    """Ends of a cell's interval by another solver, on values instead of deviations."""
    hidden = np.flatnonzero(~shown)
    place = {int(c): k for k, c in enumerate(hidden)}
    equations = table.equations.toarray()
    right = -equations[:, shown] @ table.value[shown]
    bounds = [
        (table.value[c], table.value[c]) if c in fixed else ((floors or {}).get(int(c), 0.0), None)
        for c in hidden
    ]
    ends = []
    for sign in (1.0, -1.0):
        cost = np.zeros(len(hidden))
        cost[place[cell]] = sign
        found = linprog(cost, A_eq=equations[:, hidden], b_eq=right, bounds=bounds)
        ends.append(np.inf if found.status == 3 else sign * found.fun)
    return ends[0], ends[1]


def test_the_feasibility_example_of_the_specification():
    # Rows 7, 3, 6 and columns 9, 7, total 16, with the four inner cells of two rows hidden.
    table = grid([[4, 3], [2, 1], [3, 3]])
    shown = hide(table, ("r0", "c0"), ("r0", "c1"), ("r1", "c0"), ("r1", "c1"))
    audit = audit_table(table, published=shown, exact=True, cells="suppressed")
    frame = audit.intervals.set_index(["r", "c"])
    assert frame.loc[("r0", "c0"), ["lower", "upper"]].tolist() == [3.0, 6.0]


def test_a_single_hidden_cell_is_disclosed():
    table = grid([[4, 3], [3, 5]], primary={(0, 0)})
    audit = audit_table(table, published=hide(table, ("r0", "c0")))
    assert (audit.safe, audit.unsafe, audit.disclosed, audit.shortfall) == (False, 1, 1, 1.0)
    assert audit.unsafe_cells == [("r0", "c0")]
    assert "exactly" in audit.verdict


def test_a_sensitive_cell_that_is_shown_is_unsafe():
    table = grid([[4, 3], [3, 5]], primary={(0, 0)})
    audit = audit_table(table, published=np.ones(len(table), dtype=bool))
    assert (audit.safe, audit.unsafe) == (False, 1)


def test_two_singletons_do_not_hide_each_other():
    value = [[10, 20, 30], [40, 10, 60], [7, 8, 9]]
    count = [[1, 5, 5], [5, 1, 5], [5, 5, 5]]
    table = grid(value, primary={(0, 0), (1, 1)}, count=count, level=1.0)
    corners = [("r0", "c0"), ("r0", "c1"), ("r1", "c0"), ("r1", "c1")]
    shown = hide(table, *corners)
    assert audit_table(table, published=shown, attacker="outsider").safe
    assert not audit_table(table, published=shown, attacker="contributors").safe


def test_a_coalition_knows_what_its_members_know():
    value = [[10, 20, 30], [40, 10, 60], [7, 8, 10]]
    count = [[1, 5, 5], [5, 1, 5], [5, 5, 1]]
    table = grid(value, primary={(0, 0), (1, 1), (2, 2)}, count=count, level=1.0)
    inner = [(f"r{i}", f"c{j}") for i in range(3) for j in range(3)]
    shown = hide(table, *inner)
    assert audit_table(table, published=shown, attacker="contributors").safe
    two = [table.cell("r0", "c0"), table.cell("r1", "c1")]
    hidden = hide(
        table,
        ("r0", "c0"),
        ("r0", "c2"),
        ("r1", "c1"),
        ("r1", "c2"),
        ("r2", "c0"),
        ("r2", "c1"),
        ("r2", "c2"),
    )
    assert audit_table(table, published=hidden, attacker="outsider").safe
    alone = audit_table(table, published=hidden, attacker="contributors")
    joint = audit_table(table, published=hidden, attacker="contributors", coalition=two)
    assert joint.unsafe >= alone.unsafe
    assert not joint.safe
    with pytest.raises(dc.InputError, match="contribute to no cell"):
        audit_table(table, published=shown, attacker="contributors", coalition=[10**6])


def test_nobody_is_protected_against_what_it_knew_before():
    # The only contributor with an amount gave the whole cell and the whole of its total.
    table = grid([[5, 0], [20, 30]], primary={(0, 0)}, count=[[1, 2], [5, 5]], level=1.0)
    shown = np.ones(len(table), dtype=bool)
    shown[table.value != 0] = False
    assert audit_table(table, published=shown, attacker="contributors").safe


def test_negative_values_are_unbounded_below():
    table = grid([[-4, 3], [3, 5]], primary={(0, 0)}, level=1e6)
    shown = hide(table, ("r0", "c0"), ("r0", "c1"), ("r1", "c0"), ("r1", "c1"))
    audit = audit_table(table, published=shown, exact=True)
    assert audit.safe
    assert audit.intervals["lower"].tolist() == [-np.inf]


def test_given_bounds_narrow_the_intervals():
    table = grid([[4, 3], [3, 5]], primary={(0, 0)}, level=3.0)
    shown = hide(table, ("r0", "c0"), ("r0", "c1"), ("r1", "c0"), ("r1", "c1"))
    assert audit_table(table, published=shown).safe
    bounds = (0.5 * table.value, 1.5 * table.value)
    audit = audit_table(table, published=shown, bounds=bounds, exact=True)
    assert audit.intervals[["lower", "upper"]].values.tolist() == [[2.5, 5.5]]


def test_bounds_that_the_truth_breaks_are_refused():
    table = grid([[4, 3], [3, 5]])
    with pytest.raises(dc.InputError, match="outside their bounds"):
        audit_table(
            table,
            published=np.ones(9, dtype=bool),
            bounds=(table.value + 1, table.value + 2),
        )


def test_an_unknown_attacker_and_a_mask_of_the_wrong_size_are_refused():
    table = grid([[4, 3], [3, 5]], primary={(0, 0)})
    with pytest.raises(dc.InputError, match="there is no attacker 'insider'"):
        audit_table(table, published=np.ones(9, dtype=bool), attacker="insider")
    with pytest.raises(dc.InputError, match="one entry per cell"):
        audit_table(table, published=[True])
    with pytest.raises(dc.InputError, match="number of contributors"):
        audit_table(table, published=np.ones(9, dtype=bool), attacker="contributors")


def test_statuses_are_taken_for_what_is_published():
    table = grid([[4, 3], [3, 5]], primary={(0, 0)})
    status = np.full(9, int(Status.SAFE))
    for cell in (("r0", "c1"), ("r1", "c0"), ("r1", "c1")):
        status[table.cell(*cell)] = Status.SECONDARY
    status[table.cell("r0", "c0")] = Status.PRIMARY
    assert audit_table(table, published=status).safe


def test_the_report_holds_no_value():
    table = grid([[4321, 3], [3, 5]], primary={(0, 0)})
    audit = audit_table(table, published=hide(table, ("r0", "c0")))
    assert "4321" not in str(audit) + str(audit.to_dict()) + audit._repr_html_()


def test_wrong_certificates_prove_nothing():
    table = grid([[40, 30], [30, 50]], primary={(0, 0)}, level=5.0)
    shown = hide(table, ("r0", "c0"), ("r0", "c1"))
    cell, other = table.cell("r0", "c0"), table.cell("r0", "c1")
    moved = np.array([cell, other])
    for moves in ([9.0, 9.0], [9.0, -9.0], [100.0, -100.0]):
        audit = audit_table(table, published=shown, certificates=[(moved, np.array(moves))])
        assert not audit.safe


@st.composite
def hidden_tables(draw):
    rows, columns = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    values = st.integers(0, 30)
    inner = draw(
        st.lists(st.lists(values, min_size=columns, max_size=columns), min_size=rows, max_size=rows)
    )
    cells = (rows + 1) * (columns + 1)
    shown = np.array(draw(st.lists(st.booleans(), min_size=cells, max_size=cells)))
    return grid(inner), shown


@settings(max_examples=30, deadline=None)
@given(hidden_tables())
def test_exact_intervals_agree_with_another_solver_and_hold_the_truth(drawn):
    table, shown = drawn
    audit = audit_table(table, published=shown, exact=True, cells="suppressed")
    for cell, lower, upper in zip(audit.cells, audit._lower, audit._upper, strict=True):
        assert lower - 1e-6 <= table.value[cell] <= upper + 1e-6
        expected = independent_interval(table, shown, int(cell))
        np.testing.assert_allclose([lower, upper], expected, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(hidden_tables())
def test_early_stop_decides_as_the_exact_audit(drawn):
    table, shown = drawn
    sensitive = np.where(~shown, np.int8(Status.PRIMARY), np.int8(Status.SAFE))
    levels = np.maximum(1.0, table.value / 4)
    table = table.replace(status=sensitive, lower=levels, upper=levels)
    quick = audit_table(table, published=shown)
    exact = audit_table(table, published=shown, exact=True)
    assert quick._safe.tolist() == exact._safe.tolist()
    assert (quick.safe, quick.unsafe) == (exact.safe, exact.unsafe)


@settings(max_examples=25, deadline=None)
@given(hidden_tables())
def test_the_published_cells_alone_lead_to_the_same_intervals(drawn):
    table, shown = drawn
    known = audit_table(table, published=shown, exact=True, cells="suppressed")
    blind = table.replace(value=np.where(shown, table.value, np.nan))
    alone = audit_table(blind, published=shown, exact=True, cells="suppressed")
    np.testing.assert_allclose(alone._lower, known._lower, atol=1e-6)
    np.testing.assert_allclose(alone._upper, known._upper, atol=1e-6)
