"""Least squares over the records of several owners."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InfeasibleError, RefusedError
from discreet.protocols.arithmetic.fixed_point import require_room
from discreet.protocols.arithmetic.shares import Shares
from discreet.protocols.joint.learned import FOLLOW, NO_TWO_NODES, Leakage
from discreet.protocols.joint.methods.joint_regression import (
    PER_COLUMN,
    JointRegression,
    require_determined,
)
from discreet.protocols.joint.protocol import Inputs, Seat, Split
from discreet.protocols.joint.seat import Cast

__all__ = ["HorizontalRegression"]

Floats = npt.NDArray[np.float64]
#: Binary digits of values and squares in units of their bounds, of which up to 2^24 are added.
_DIGITS = 37
#: Variances of smaller deviations, in units of the bound, would be off by more than 1 in 8,000.
_LEAST_DEVIATION = 2.0**-12


@dataclasses.dataclass(frozen=True)
class HorizontalRegression(JointRegression):
    """Fit a linear regression to the records of all owners, who have the same columns.

    The last column is explained by the others. Three nodes open the number of records, mean and
    standard deviation of each column over all owners; owners standardise their records by them, and
    the nodes add up their products and solve the equations on shares. Opened are coefficients, their
    errors and R²; with `open="gram"` all correlations.

    Examples
    --------
    >>> from discreet.protocols.joint.rehearsal import rehearse_protocol
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(0, 3, (200, 2))
    >>> whole = np.column_stack([x, x @ [2.0, -1.0] + 5 + rng.normal(0, 1, 200)])
    >>> found = rehearse_protocol(HorizontalRegression(), {"a": whole[:90], "b": whole[90:]}).shown
    >>> found["coefficients"].round(1).tolist()  # the constant first
    [5.0, 2.0, -1.0]
    """

    name: ClassVar[str] = "horizontal-regression"
    reference: ClassVar[str] = "Karr, Lin, Sanil and Reiter (2005), JCGS 14"
    split: ClassVar[Split] = "horizontal"
    centres: ClassVar[bool] = True

    @property
    def needs_dealer(self) -> bool:
        """Nobody multiplies with another's columns."""
        return False

    def admit(self, records: Floats) -> None:
        """Refuse a part that is no regression by itself, as the other of two owners would see it."""
        if len(records) < PER_COLUMN * records.shape[1]:
            raise RefusedError(
                "an owner has fewer than ten records for each column",
                code="part-sensitive",
                hint="offer fewer columns, or leave that owner out",
            )
        super().admit(records)

    def width(self, cast: Cast) -> int:
        """Return the number of columns, the explained one among them."""
        return len(cast.bounds[cast.owners[0]])

    def summaries(self, seat: Seat, size: int) -> tuple[int, Floats]:
        """Tell everybody the number of records, and means and deviations over all owners."""
        cast, own = seat.cast, None
        if seat.records is not None:
            require_room(
                len(seat.records) * len(cast.owners) << _DIGITS, what="the sums of columns"
            )
            values = seat.records / np.array(cast.bounds[seat.name])
            sums = np.rint(np.concatenate([values, values**2], axis=1) * 2.0**_DIGITS)
            added = sums.astype(np.int64).sum(axis=0)
            own = np.concatenate([[len(values)], added]).astype(np.int64)
        shape = (1 + 2 * size,)
        parts = seat.gather(own, shape)
        meaning = "number of records, means and deviations of columns over all owners"
        found = seat.open(sum(parts[1:], parts[0]), meaning) if parts else None
        opened = seat.tell(found, shape, "opened summaries")
        number = int(opened[0])
        means, squares = opened[1:].reshape(2, size) / 2.0**_DIGITS / max(number, 1)
        deviations = np.sqrt(np.maximum(squares - means**2, 0))
        units = np.array(cast.bounds[cast.owners[0]])
        summary = np.stack([means, deviations]) * units
        require_determined(number, summary)
        if (deviations < _LEAST_DEVIATION).any():
            raise InfeasibleError(
                "a column varies by less than 1/4,096 of its bound, too little to be told in fixed point",
                code="bounds-too-wide",
                hint="agree on a smaller bound, or take a constant that all know off the column",
            )
        return number, summary

    def correlations(self, seat: Seat, rows: int, summary: Floats) -> Shares | None:
        """Return a node's part of the matrix of correlations, in whole numbers."""
        own, size = None, summary.shape[1]
        if seat.records is not None:
            unit = (seat.records - summary[0]) / (summary[1] * np.sqrt(rows))
            own = np.rint(unit.T @ unit * 4.0**self.fine).astype(np.int64)
        parts = seat.gather(own, (size, size))
        return sum(parts[1:], parts[0]) if parts else None

    def plain(self, inputs: Inputs) -> Mapping[str, Floats]:
        """Return the fit of all records one below the other."""
        whole = np.concatenate([np.asarray(one, dtype=np.float64) for one in inputs.values()])
        return super().plain({"all": whole})

    def leakage(self) -> Leakage:
        """Return what each party learns."""
        summaries = "number of records, mean and deviation of each column over all owners"
        what = "all correlations" if self.open == "gram" else "coefficients, their errors and R²"
        return Leakage.of(
            ("owner", summaries, "the same of the others together, less its own part"),
            ("node", f"{summaries}; {what}; uniformly random words",
             "what these say of the others together"),
            ("analyst", f"{summaries}; {what}", "what these say"),
            assumes=(FOLLOW, NO_TWO_NODES),
        )  # fmt: skip
