"""Numbers drawn anew with the moments of others: regressions, orthogonal noise, rotations."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import InputError
from discreet.microdata.columns import Numbers, Places, codes, is_number, numbers, require_finite
from discreet.microdata.synthesizers._base import owners, released_columns
from discreet.randomness import Randomness

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = [
    "ALONE",
    "FEW",
    "Regressed",
    "orthogonal",
    "regressed",
    "require_numeric",
    "with_cross_product",
]

#: Categories of fewer units than this share an indicator.
FEW = 5
#: A unit that has so much of what is kept exactly decides it alone: of squares that add up to 1 its
#: own is known to within 10 % (the p% rule).
ALONE = 1 / 1.1**2


@dataclasses.dataclass(frozen=True, eq=False)
class Regressed:
    """Confidential numbers explained by the columns that are kept."""

    rows: pa.Table
    names: tuple[str, ...]
    #: An orthonormal basis of the constant and the columns kept.
    basis: Numbers
    fitted: Numbers
    residuals: Numbers
    #: For each record the number of the unit that owns it.
    owner: Places

    def table(self, values: Numbers) -> pa.Table:
        """Return the records with other values of the confidential columns."""
        import pyarrow as pa

        found = self.rows
        for place, name in enumerate(self.names):
            at = found.column_names.index(name)
            # Whole numbers become decimals: rounding would break the moments that are promised.
            kind = self.rows.schema.field(name).type
            kind = kind if pa.types.is_floating(kind) else pa.float64()
            found = found.set_column(at, name, pa.array(values[:, place]).cast(kind))
        return found


def require_numeric(dataset: Dataset, names: Sequence[str], method: str) -> None:
    """Raise an InputError unless columns hold numbers and are released."""
    if not names:
        raise InputError(
            f"{method} needs at least one column", code="missing-parameter", hint="name columns"
        )
    for name in names:
        dataset.schema[name]
        if name not in released_columns(dataset):
            raise InputError(
                f"column {name!r} is an identifier and is not synthesised",
                code="identifier-column",
                column=name,
            )
        if not is_number(dataset.relation.schema.field(name).type):
            raise InputError(
                f"{method} works on numbers, and column {name!r} holds none",
                code="not-numeric",
                hint="choose numeric columns, or cart for categories",
                column=name,
            )


def regressed(
    dataset: Dataset, names: Sequence[str], *, explain: bool = True, apart: bool = False
) -> Regressed:
    """Return columns regressed on all others, or on a constant alone.

    With `apart` columns that follow from each other are an error.
    """
    rows = dataset.arrow(released_columns(dataset)).combine_chunks()
    goal = np.stack([_known(rows, name) for name in names], axis=1)
    design = [np.ones(rows.num_rows)]
    owner = owners(dataset)
    if explain:
        for name in rows.column_names:
            if name not in names:
                design += _explaining(rows, name, owner)
    kept = np.stack(design, axis=1)
    if rows.num_rows < kept.shape[1] + 2 * len(names) + 1:
        raise InputError(
            f"{rows.num_rows:,} records are too few to explain {len(names)} columns by "
            f"{kept.shape[1]} terms",
            code="too-few-records",
            hint="keep fewer columns, or fewer categories of them",
        )
    scale = np.maximum(np.abs(kept).max(axis=0), 1e-300)
    left, sizes, _ = np.linalg.svd(kept / scale, full_matrices=False)
    basis = left[:, sizes > 1e-10 * sizes[0]]  # columns that repeat others explain no more
    fitted = basis @ (basis.T @ goal)
    residuals = goal - fitted
    residuals -= basis @ (basis.T @ residuals)
    _require_free(names, goal, residuals, explain=explain, apart=apart)
    _require_many(names, goal, owner, basis.shape[1] + 2 * len(names))
    _require_shared(np.concatenate([basis, _directions(residuals)], axis=1), owner)
    return Regressed(rows, tuple(names), basis, fitted, residuals, owner)


def _require_free(
    names: Sequence[str], goal: Numbers, residuals: Numbers, *, explain: bool, apart: bool
) -> None:
    """Raise an InputError where nothing is left of a column that could be drawn anew."""
    lengths = np.linalg.norm(residuals, axis=0)
    size = np.linalg.norm(goal - goal.mean(axis=0), axis=0)
    flat = lengths <= 1e-9 * np.maximum(size, 1e-300)
    hint = "leave out columns that are sums or multiples of others"
    if explain and flat.any():
        name = names[int(np.argmax(flat))]
        raise InputError(
            f"column {name!r} follows from other columns, so nothing of it can be drawn anew",
            code="collinear-columns",
            hint=hint,
            column=name,
        )
    scaled = residuals / np.maximum(lengths, 1e-300)
    if apart and float(np.linalg.svd(scaled, compute_uv=False)[-1]) < 1e-7:
        raise InputError(
            f"columns {', '.join(names)} follow from each other",
            code="collinear-columns",
            hint=hint,
        )


def orthogonal(rng: Randomness, rows: int, columns: int, to: Numbers) -> Numbers:
    """Return normal noise orthogonal to an orthonormal basis."""
    noise = rng.normal(rows * columns).reshape(rows, columns)
    for _ in range(2):  # the second time takes away what rounding left
        noise = noise - to @ (to.T @ noise)
    return noise


def with_cross_product(noise: Numbers, like: Numbers) -> Numbers:
    """Return noise rotated and scaled so that its cross-product is that of other values.

    By the values' own singular values: square roots of those of their cross-product would turn
    rounding errors of 1e-16 into 1e-8 where columns follow from each other.
    """
    basis, _ = np.linalg.qr(noise)
    _, sizes, axes = np.linalg.svd(like, full_matrices=False)
    return np.asarray(basis @ (sizes[:, None] * axes))


def _known(rows: pa.Table, name: str) -> Numbers:
    require_finite(rows.column(name), name)
    found = numbers(rows.column(name), name=name)
    if np.isnan(found).any():
        raise InputError(
            f"column {name!r} has missing values, whose moments nothing can keep",
            code="missing-values",
            hint="fill or leave out these records, or use cart",
            column=name,
        )
    return found


def _require_many(names: Sequence[str], goal: Numbers, owner: Places, terms: int) -> None:
    """Raise an InputError where few units have another value than the commonest of a column.

    Every moment that is kept exactly is an equation about them: whoever knows who they are solves it.
    """
    fewest = max(FEW, terms)
    for place, name in enumerate(names):
        _, value, count = np.unique(goal[:, place], return_inverse=True, return_counts=True)
        others = np.unique(owner[value.ravel() != np.argmax(count)]).size
        if others < fewest:
            raise InputError(
                f"fewer than {fewest} people have another value of column {name!r} than most, and "
                "exact moments would tell theirs",
                code="decided-by-one",
                hint="leave the column out, keep fewer columns, or draw it by cart",
                column=name,
            )


def _directions(residuals: Numbers) -> Numbers:
    """Return an orthonormal basis of all sums and differences of residuals."""
    lengths = np.maximum(np.linalg.norm(residuals, axis=0), 1e-300)
    left, sizes, _ = np.linalg.svd(residuals / lengths, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-9 * max(float(sizes[0]), 1e-300)])


def _require_shared(basis: Numbers, owner: Places) -> None:
    """Raise an InputError where a coefficient or a variance is one unit's, for all others or for one.

    Noise that leaves coefficients as they are is 0 for a unit that has one for itself: its records
    would leave as they came. And where one person alone has a value, the sum of squares is the square
    of the sum. The share of a unit in any of these is the largest eigenvalue of its block of the hat
    matrix of all columns; somebody who knows their own records takes them away first.
    """
    share = np.bincount(owner, (basis**2).sum(axis=1))
    close = np.flatnonzero(share > ALONE * (1 - ALONE))
    block = {unit: basis[owner == unit] for unit in close}
    kept = np.eye(basis.shape[1])
    for unit in close:
        if share[unit] > ALONE and _weight(block[unit], kept) > ALONE:
            raise _decided()
    rows = np.flatnonzero(np.isin(owner, close))
    for other in close:
        left = np.linalg.inv(kept - block[other].T @ block[other])
        own = ((basis[rows] @ left) * basis[rows]).sum(axis=1)
        share = np.bincount(owner[rows], own)
        share[other] = 0.0
        if any(_weight(block[unit], left) > ALONE for unit in np.flatnonzero(share > ALONE)):
            raise _decided()


def _weight(block: Numbers, left: Numbers) -> float:
    return float(np.linalg.norm(block @ left @ block.T, 2))


def _decided() -> InputError:
    return InputError(
        "one record, or those of one unit, decide a moment that would be kept exactly, so that their "
        "values would be told, if only to somebody who decides as much",
        code="decided-by-one",
        hint="leave out that record, or make its columns coarser, such as by top-coding",
    )


def _explaining(rows: pa.Table, name: str, owner: Places) -> list[Numbers]:
    """Return a kept column as regressors: a number as it is, categories as indicators.

    Categories of few units share one indicator: that of a single person would tell its values.
    """
    column = rows.column(name)
    if is_number(column.type):
        require_finite(column, name)
        found = numbers(column, name=name)
        missing = np.isnan(found)
        if not missing.any() or missing.all():
            return [np.where(missing, 0.0, found)]
        filled = np.where(missing, found[~missing].mean(), found)
        shared = np.unique(owner[missing]).size >= FEW
        return [filled, missing.astype(float)] if shared else [filled]
    places, values = codes(column)
    pairs = np.unique(np.stack([places, owner]), axis=1)[0]
    many = np.bincount(pairs + 1, minlength=len(values) + 1)
    rare, others = np.flatnonzero(many < FEW), np.flatnonzero(many >= FEW)
    if 0 < many[rare].sum() < FEW:  # too few together, too: they join the least of the others
        others = others[others != others[np.argmin(many[others])]] if others.size else others
    return [(places == place - 1).astype(float) for place in others]
