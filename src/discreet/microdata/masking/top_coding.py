"""Top coding: the largest values become one value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from discreet.data.schema import Schema
from discreet.errors import InputError
from discreet.microdata.columns import Numbers, like, numbers
from discreet.microdata.masking._base import ColumnMasking, replaced
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from discreet.data.dataset import Dataset

__all__ = ["Coding", "TopCoding"]


@dataclasses.dataclass(frozen=True)
class Coding(ColumnMasking):
    """What top and bottom coding share: a limit, given as a value or as a quantile."""

    perturbative: ClassVar[bool] = False
    numeric: ClassVar[bool] = True
    in_engine: ClassVar[bool] = True
    blind_to_order: ClassVar[bool] = True

    value: float | None = parameter(None, help="values beyond this one are replaced")
    quantile: float | None = parameter(
        None, help="the limit as a quantile of each column", above=0, below=1
    )
    replacement: float | None = parameter(
        None, help="what stands for the values beyond; the limit itself by default"
    )

    @classmethod
    def examples(cls, **offered: Any) -> tuple[Self, ...]:
        """Return the method with a limit by quantile, and by value."""
        return cls(offered["columns"], quantile=0.7), cls(offered["columns"], value=50.0)

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
            limit = self._limit(values)
            values[self._beyond(values, limit)] = self._stands(limit)
            masked[name] = like(rows.column(name), values)
        return masked

    def mask(self, dataset: Dataset, *, rng: Randomness, progress: Progress = silent) -> Dataset:
        """Replace the values beyond the limit in the engine."""
        import pyarrow as pa
        from sqlglot import exp

        from discreet.data.engines import sql

        self.require(dataset)
        chosen: dict[str, exp.Expr] = {}
        for done, name in enumerate(self.columns):
            progress(self.name, done, len(self.columns))
            # Only a quantile needs to see the column.
            limit = (
                self.value
                if self.value is not None
                else self._limit(numbers(dataset.arrow([name]).column(0), name=name))
            )
            stands = self._stands(limit)
            kind = dataset.relation.schema.field(name).type
            whole = pa.types.is_integer(kind) and float(stands).is_integer()
            cast = sql.bigint if whole else sql.double
            beyond = self._side(sql.double(sql.column(name)), sql.number(float(limit)))
            # Not-a-number is larger than everything to an engine, and stays what it is.
            finite = exp.LTE(
                this=sql.double(sql.column(name)), expression=sql.double(sql.text("Infinity"))
            )
            case = exp.Case().when(
                exp.And(this=beyond, expression=finite),
                cast(sql.number(int(stands) if whole else float(stands))),
            )
            chosen[name] = case.else_(cast(sql.column(name)))
        progress(self.name, len(self.columns), len(self.columns))
        return replaced(dataset, chosen)

    def _limit(self, values: Numbers) -> float:
        if self.value is not None:
            return self.value
        assert self.quantile is not None
        known = values[~np.isnan(values)]
        # An order statistic, not a mean of two: the limit is a value that occurs.
        return float(np.quantile(known, self.quantile, method="lower")) if known.size else 0.0

    def _stands(self, limit: float) -> float:
        return limit if self.replacement is None else self.replacement

    def _side(self, value: exp.Expr, limit: exp.Expr) -> exp.Expr:
        raise NotImplementedError

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

    def _side(self, value: exp.Expr, limit: exp.Expr) -> exp.Expr:
        from sqlglot import exp

        return exp.GT(this=value, expression=limit)

    def _further(self, quantile: float) -> float | None:
        outside = (1 - quantile) * 1.5
        return 1 - outside if outside < 0.9 else None
