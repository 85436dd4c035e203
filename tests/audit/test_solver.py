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
