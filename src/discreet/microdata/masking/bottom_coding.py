"""Bottom coding: the smallest values become one value."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.microdata.columns import Numbers
from discreet.microdata.masking.top_coding import Coding

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["BottomCoding"]


@dataclasses.dataclass(frozen=True)
class BottomCoding(Coding):
    """Replace every value below a limit by the limit, or by another value.

    Missing values stay missing.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table({"age": [3, 40, None]})
    >>> method = BottomCoding("age", 18)
    >>> method.apply(rows, schema=None, rng=Randomness.seeded(1))["age"].to_pylist()
    [18, 40, None]
    """

    name: ClassVar[str] = "bottom-coding"
    reference: ClassVar[str] = "Hundepool et al., Statistical Disclosure Control, 2012, 3.3.3"

    def _beyond(self, values: Numbers, limit: float) -> np.ndarray:
        return values < limit

    def _side(self, value: exp.Expr, limit: exp.Expr) -> exp.Expr:
        from sqlglot import exp

        return exp.LT(this=value, expression=limit)

    def _further(self, quantile: float) -> float | None:
        return quantile * 1.5 if quantile * 1.5 < 0.9 else None
