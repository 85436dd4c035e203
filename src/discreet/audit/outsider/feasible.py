"""A table that agrees with what is published, where the withheld values are not at hand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.knowledge import Bounds
from discreet.audit.solver import LinearProgram, solve_integer
from discreet.data.table import Table
from discreet.errors import InputError

__all__ = ["complete"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def complete(table: Table, hidden: Bools, bounds: Bounds | None = None) -> Floats:
    """Return the values, with any feasible ones where withheld values are missing.

    Published totals may be rounded, so the equations are met as closely as possible rather than
    exactly; what cannot be explained by rounding is an error.
    """
    unknown = np.flatnonzero(~np.isfinite(table.value))
    if not unknown.size:
        return table.value
    shown = np.flatnonzero(~np.isfinite(table.value) & ~hidden)
    if shown.size:
        raise InputError(
            f"{shown.size} published cells have no value, such as "
            + " × ".join(table.labels(int(shown[0]))),
            code="value-missing",
        )
    value = np.where(np.isfinite(table.value), table.value, 0.0)
    equations = table.equations
    block = equations[:, unknown].tocsr()
    rows = np.flatnonzero(np.diff(block.indptr) > 0)
    target = -(equations @ value)[rows]
    scale = max(float(np.median(np.abs(value[value != 0]))) if value.any() else 1.0, 1e-12)
    lower, upper = _known(value, unknown, bounds)
    slack = sparse.csr_matrix(sparse.identity(len(rows)))
    matrix = sparse.csc_matrix(sparse.hstack([block[rows], slack, -slack]))
    number = 2 * len(rows)
    program = LinearProgram(
        matrix,
        rows=(target / scale, target / scale),
        columns=(
            np.concatenate([lower / scale, np.zeros(number)]),
            np.concatenate([upper / scale, np.full(number, np.inf)]),
        ),
        cost=np.concatenate([np.zeros(len(unknown)), np.ones(number)]),
    )
    solution = program.solve()
    # The solver keeps bounds up to its tolerance, which is one of the scale and not of each value.
    value[unknown] = np.clip(solution.x[: len(unknown)] * scale, lower, upper)
    if table.is_whole and solution.objective * scale < 1e-6:
        value[unknown] = _whole(value[unknown], block[rows], target, (lower, upper))
    # Where the solver takes nearly nothing for a total and its parts, its own tolerance shows.
    table.replace(value=value).require_additive(least=1e-5 * scale)
    return value


def _whole(found: Floats, block: sparse.csr_matrix, target: Floats, bounds: Bounds) -> Floats:
    """Return whole numbers where counts are missing; those found where there are none."""
    if (np.abs(found - np.round(found)) <= 1e-6).all():
        return np.round(found)
    number = len(found)
    solution = solve_integer(
        sparse.csc_matrix(block),
        rows=(target, target),
        columns=(np.ceil(bounds[0] - 1e-9), np.floor(bounds[1] + 1e-9)),
        cost=np.zeros(number),
        integer=np.ones(number, dtype=bool),
    )
    return np.round(solution.x) if len(solution.x) else found


def _known(value: Floats, unknown: npt.NDArray[np.int64], bounds: Bounds | None) -> Bounds:
    if bounds is not None:
        return np.asarray(bounds[0])[unknown], np.asarray(bounds[1])[unknown]
    low = 0.0 if value.min(initial=0.0) >= 0 else -np.inf
    return np.full(len(unknown), low), np.full(len(unknown), np.inf)
