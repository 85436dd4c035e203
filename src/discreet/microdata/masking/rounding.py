"""Rounding: numbers to multiples of a base."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.data.schema import Schema
from discreet.microdata.columns import like, numbers
from discreet.microdata.masking._base import ColumnMasking, replaced
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["Rounding"]


@dataclasses.dataclass(frozen=True)
class Rounding(ColumnMasking):
    """Round numbers to multiples of a base, to the nearest or at random without bias.

    With `unbiased` a value goes up with the probability of its distance from the multiple below,
    so that sums are kept in expectation. Missing values stay missing.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table({"salary": [1234, 5678, None]})
    >>> method = Rounding("salary", 1000)
    >>> method.apply(rows, schema=None, rng=Randomness.seeded(1))["salary"].to_pylist()
    [1000, 6000, None]
    """

    name: ClassVar[str] = "rounding"
    reference: ClassVar[str] = "Hundepool et al., Statistical Disclosure Control, 2012, 3.4.4"
    perturbative: ClassVar[bool] = False
    numeric: ClassVar[bool] = True
    in_engine: ClassVar[bool] = True
    blind_to_order: ClassVar[bool] = True

    base: float = parameter(10.0, help="multiples of this remain", above=0)
    unbiased: bool = parameter(False, help="up or down at random, without bias")

    @property
    def is_random(self) -> bool:
        """Whether chance decides between up and down."""
        return self.unbiased

    def stronger(self) -> Rounding | None:
        """Return the method with base one step further."""
        if self.base > 1e15:
            return None
        return dataclasses.replace(self, base=self.base * 2)

    def mask(self, dataset: Dataset, *, rng: Randomness, progress: Progress = silent) -> Dataset:
        """Round in the engine, unless chance decides."""
        if self.unbiased:
            return super().mask(dataset, rng=rng, progress=progress)
        import pyarrow as pa
        from sqlglot import exp

        from discreet.data.engines import sql

        self.require(dataset)
        chosen: dict[str, exp.Expr] = {}
        for name in self.columns:
            base = sql.double(sql.number(float(self.base)))
            steps = exp.Div(this=sql.double(sql.column(name)), expression=base)
            half = exp.Add(this=steps, expression=sql.number(0.5))
            rounded = exp.Mul(this=exp.Floor(this=half), expression=base.copy())
            kind = dataset.relation.schema.field(name).type
            whole = pa.types.is_integer(kind) and float(self.base).is_integer()
            chosen[name] = sql.bigint(rounded) if whole else sql.double(rounded)
        progress(self.name, 1, 1)
        return replaced(dataset, chosen)

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the rounded columns."""
        masked = {}
        for name in self.columns:
            steps = numbers(rows.column(name), name=name) / self.base
            if self.unbiased:
                below = np.floor(steps)
                steps = below + (rng.uniform(steps.size) < steps - below)
            else:
                steps = np.floor(steps + 0.5)
            masked[name] = like(rows.column(name), steps * self.base)
        return masked
