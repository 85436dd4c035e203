"""The solver takes changes as they are meant."""

import numpy as np
from scipy import sparse

from discreet.audit.solver import LinearProgram


def test_a_column_named_twice_is_changed_all_the_same():
    program = LinearProgram(
        sparse.csc_matrix([[1.0, 1.0]]),
        rows=(np.array([0.0]), np.array([4.0])),
        columns=(np.zeros(2), np.zeros(2)),
        cost=np.zeros(2),
    )
    program.set_bounds(np.array([1, 0, 1]), np.zeros(3), np.array([2.0, 3.0, 2.0]))
    program.set_cost(np.array([1, 1, 0]), np.array([-2.0, -2.0, -1.0]))
    assert program.solve().x.tolist() == [2.0, 2.0]


def test_a_contradiction_is_told_by_the_rows_it_rests_on():
    rows = sparse.csc_matrix([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    program = LinearProgram(
        rows,
        rows=(np.zeros(2), np.zeros(2)),
        columns=(np.zeros(3), np.full(3, 5.0)),
        cost=np.ones(3),
    )
    assert program.solve().status == "optimal"
    program.set_bounds(np.array([0, 2]), np.array([4.0, 0.0]), np.array([5.0, 1.0]))
    assert program.solve().status == "infeasible"
    combined = rows.T @ program.ray()
    # The first column less the last: nothing else is left, and their bounds do not meet.
    assert combined[1] == 0
    assert combined[0] == -combined[2] != 0


def test_a_program_goes_on_from_the_basis_of_another():
    draw = np.random.default_rng(1)
    rows = sparse.csc_matrix(draw.integers(-1, 2, (8, 20)).astype(float))
    zeros, ones = np.zeros(8), np.ones(20)
    first, second = (
        LinearProgram(
            rows, rows=(zeros, zeros), columns=(-ones, ones), cost=draw_cost, restarted=kind
        )
        for draw_cost, kind in ((np.arange(20.0), False), (np.arange(20.0), True))
    )
    best = first.solve()
    second.start(first.basis())
    again = second.solve()
    assert again.objective == best.objective
    assert second.work == 0 < first.work
