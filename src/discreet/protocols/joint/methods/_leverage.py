"""How far results follow one record: products and fits that one record decides tell its values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.errors import RefusedError

__all__ = ["require_no_single_record"]

#: No record may decide more than this of what its owner's columns can give: three stand behind each.
_LEVERAGE = 1 / 3


def require_no_single_record(records: npt.NDArray[np.float64]) -> None:
    """Refuse columns of which some weighted sum is that of one record, or nearly.

    >>> require_no_single_record(np.ones((3, 1)))
    >>> require_no_single_record(np.array([[1.0], [0.0], [0.0]]))
    Traceback (most recent call last):
    discreet.errors.RefusedError: the columns of an owner single out a record; ...
    """
    norms = np.linalg.norm(records, axis=0)  # so that no column is too small to be seen
    basis, sizes, _ = np.linalg.svd(records / np.where(norms > 0, norms, 1), full_matrices=False)
    kept = basis[:, sizes > 1e-10 * max(float(sizes.max(initial=0)), 1e-300)]
    if (kept**2).sum(axis=1).max(initial=0) > _LEVERAGE * (1 + 1e-9):
        raise RefusedError(
            "the columns of an owner single out a record",
            code="high-leverage",
            hint="leave out columns that few records decide, or cut off their largest values",
        )
