"""Top coding: the largest values become one value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.data.schema import Schema
from discreet.errors import InputError
from discreet.microdata.masking._base import ColumnMasking, Numbers, like, numbers
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Coding", "TopCoding"]


@dataclasses.dataclass(frozen=True)
class Coding(ColumnMasking):
    """What top and bottom coding share: a limit, given as a value or as a quantile."""

    perturbative: ClassVar[bool] = False
    numeric: ClassVar[bool] = True

    value: float | None = parameter(None, help="values beyond this one are replaced")
    quantile: float | None = parameter(
        None, help="the limit as a quantile of each column", above=0, below=1
    )
    replacement: float | None = parameter(
        None, help="what stands for the values beyond; the limit itself by default"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.value is None) == (self.quantile is None):
            raise InputError(
                f"{self.name} needs a value or a quantile, and not both",
                code="missing-parameter",
                hint=f"write {type(self).__name__}({self.columns[0]!r}, 100) "
                f"or {type(self).__name__}({self.columns[0]!r}, quantile=0.99)",
                parameter="value",
            )

    def stronger(self) -> Coding | None:
        """Return the method with the limit further in; a limit given as a value stays."""
        if self.quantile is None:
            return None
        further = self._further(self.quantile)
        return None if further is None else dataclasses.replace(self, quantile=further)

    def _further(self, quantile: float) -> float | None:
        raise NotImplementedError

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the columns with the values beyond the limit replaced."""
        masked = {}
        for name in self.columns:
            values = numbers(rows.column(name), name=name)
            limit = self.value
            if self.quantile is not None:
                known = values[~np.isnan(values)]
                # An order statistic, not a mean of two: the limit is a value that occurs.
                limit = (
                    float(np.quantile(known, self.quantile, method="lower")) if known.size else 0.0
                )
            assert limit is not None
            stands = limit if self.replacement is None else self.replacement
            values[self._beyond(values, limit)] = stands
            masked[name] = like(rows.column(name), values)
        return masked

    def _beyond(self, values: Numbers, limit: float) -> np.ndarray:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class TopCoding(Coding):
    """Replace every value above a limit by the limit, or by another value.

    Missing values stay missing.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table({"salary": [100, 900, None]})
    >>> method = TopCoding("salary", 200)
    >>> method.apply(rows, schema=None, rng=Randomness.seeded(1))["salary"].to_pylist()
    [100, 200, None]
    """

    name: ClassVar[str] = "top-coding"
    reference: ClassVar[str] = "Hundepool et al., Statistical Disclosure Control, 2012, 3.3.3"

    def _beyond(self, values: Numbers, limit: float) -> np.ndarray:
        return values > limit

    def _further(self, quantile: float) -> float | None:
        outside = (1 - quantile) * 1.5
        return 1 - outside if outside < 0.9 else None
