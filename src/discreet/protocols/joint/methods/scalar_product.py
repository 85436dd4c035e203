"""The product of one column of each of two owners."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from discreet.protocols.joint.methods.matrix_product import MatrixProduct
from discreet.protocols.joint.protocol import Outcome, Seat

__all__ = ["ScalarProduct"]


@dataclasses.dataclass(frozen=True)
class ScalarProduct(MatrixProduct):
    """Multiply one column of each of two owners, record by record, and open the sum.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.protocols.joint.rehearsal import rehearse_protocol
    >>> x, y = np.array([[1.0], [3.0]]), np.array([[1.0], [0.5]])
    >>> rehearse_protocol(ScalarProduct(), {"a": x, "b": y}).shown["product"].round(6).tolist()
    [[2.5]]
    """

    name: ClassVar[str] = "scalar-product"
    reference: ClassVar[str] = "Du and Zhan (2002); Vaidya and Clifton (2002), KDD"

    def play(self, seat: Seat) -> Outcome:
        """Return the product, at the first owner."""
        return super().play(seat)
