"""Noise calibrated to differential privacy, drawn by OpenDP."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.data.schema import Schema
from discreet.dp.caution import caution
from discreet.dp.libraries import opendp
from discreet.errors import InputError
from discreet.microdata.columns import Numbers, numbers
from discreet.microdata.masking._base import ColumnMasking
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DPNoise"]


def _is_range(given: Any) -> bool:
    """Whether something is a pair of numbers, the lower first. Any: as written in a policy."""
    match given:
        case [int() | float() as low, int() | float() as high]:
            return low < high
        case _:
            return False


@dataclasses.dataclass(frozen=True)
class DPNoise(ColumnMasking):
    """Add Laplace noise to every value, so that each record's columns are epsilon-private.

    Each value is clamped to its bounds, which come from the curator and never from the data, and
    gets noise for the whole width of the bounds: whatever a respondent's values are, any release of
    these columns is at most e^epsilon times likelier than under any other values (local
    differential privacy per record). Epsilon is shared equally by the columns. Noise comes from
    OpenDP's own generator, so `rng` is not used and results cannot be seeded. Missing values stay
    missing: that a value is missing is not protected.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table({"age": [20.0, 40.0]})
    >>> method = DPNoise("age", epsilon=1.0, bounds={"age": (0, 100)})
    >>> len(method.apply(rows, schema=None, rng=Randomness.seeded(1))["age"])
    2
    >>> method.scale("age")
    100.0
    """

    name: ClassVar[str] = "dp-noise"
    reference: ClassVar[str] = "Dwork et al., Calibrating noise to sensitivity, TCC 2006"
    random: ClassVar[bool] = True
    seedable: ClassVar[bool] = False
    numeric: ClassVar[bool] = True

    epsilon: float = parameter(1.0, help="privacy loss of one record over all columns", above=0)
    bounds: Mapping[str, Any] = parameter({}, help="lowest and highest value of each column")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.columns:
            if not _is_range(self.bounds.get(name)):
                raise InputError(
                    f"dp-noise needs the bounds of column {name!r}",
                    code="missing-parameter",
                    hint=f"write bounds={{{name!r}: (lowest, highest)}} from what is known of the "
                    "subject, not from the data",
                    column=name,
                    parameter="bounds",
                )

    @property
    def caution(self) -> str:
        """A warning in words where epsilon is large."""
        return caution(self.epsilon)

    def scale(self, name: str) -> float:
        """Return the scale of a column's noise."""
        low, high = self.bounds[name]
        return float(high - low) * len(self.columns) / self.epsilon

    def stronger(self) -> DPNoise | None:
        """Return the method with epsilon one step further."""
        if self.epsilon < 0.01:
            return None
        return dataclasses.replace(self, epsilon=self.epsilon / 1.5)

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the columns with noise."""
        import pyarrow as pa

        masked = {}
        for name in self.columns:
            values = numbers(rows.column(name), name=name)
            low, high = self.bounds[name]
            known = ~np.isnan(values)
            values[known] = _laplace(
                np.clip(values[known], low, high), self.scale(name), float(high - low)
            )
            masked[name] = pa.array(values, mask=~known)
        return masked


def _laplace(values: Numbers, scale: float, width: float) -> Numbers:
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    mechanism = dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=scale)
    # The mechanism itself says what it costs; the map must agree with what was promised.
    assert mechanism.map(width) <= width / scale * (1 + 1e-9)
    return np.asarray(mechanism(values.tolist()) if values.size else [], dtype=np.float64)
