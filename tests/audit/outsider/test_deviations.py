"""Deviations: what a program may move, and what holds it."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from discreet.audit.outsider.deviations import DeviationModel


def test_what_moves_with_the_target_may_be_held():
    # t = a + b and t = c + d with b published: t and a move together.
    equations = sparse.csc_matrix([[1.0, -1.0, -1.0, 0.0, 0.0], [1.0, 0.0, 0.0, -1.0, -1.0]])
    room = np.full(5, 10.0)
    model = DeviationModel(equations, np.array([0, 1, 3, 4]), room, room)
    assert model.cheapest(1, 5.0) is not None
    assert model.cheapest(1, 5.0, fixed=np.array([0])) is None
    floors = np.array([0]), np.array([3.0])
    assert model.cheapest(1, -5.0, floors=floors) is None
    assert model.cheapest(1, -2.0, floors=floors) is not None
    assert model.cheapest(1, 5.0, floors=floors) is not None
    model.close(np.array([0]))
    assert model.cheapest(1, 5.0) is None
    model.open(np.array([0]))
    assert model.cheapest(1, 5.0) is not None
