"""The trained model: columns that teach nothing do not stop it."""

import numpy as np
import pytest

from discreet.microdata.utilities.trained_model import accuracy


@pytest.mark.parametrize("numeric", [True, False])
def test_empty_and_constant_columns_are_left_out(numeric):
    values = np.tile([0.0, 1.0], 30)
    useful, empty, constant = values.copy(), np.full(60, np.nan), np.ones(60)
    rows = np.column_stack([empty, useful, constant])
    assert accuracy(rows, values, rows, values, numeric) > 0.9
    nothing = np.column_stack([empty, constant])
    assert accuracy(nothing, values, nothing, values, numeric) == (0.0 if numeric else 0.5)
