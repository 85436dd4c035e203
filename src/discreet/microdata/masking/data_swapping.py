"""Data swapping: confidential values change places between records that are alike elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.data.schema import Schema
from discreet.errors import InputError
from discreet.microdata.columns import codes
from discreet.microdata.masking._base import ColumnMasking
from discreet.microdata.masking._exchange import exchanged
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["DataSwapping"]


@dataclasses.dataclass(frozen=True)
class DataSwapping(ColumnMasking):
    """Exchange the values of columns, together, between random pairs of records.

    Pairs are drawn among records that agree on the `within` columns, so that the joint
    distribution of the swapped columns, and of them with any of those, is kept exactly. `fraction`
    of the records take part; one without a partner in its cell stays as it is. A missing value is
    a value like others: it travels, and it is a cell of its own.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table({"region": ["N", "N", "S", "S"], "illness": ["a", "b", "c", "d"]})
    >>> method = DataSwapping("illness", fraction=1.0, within=("region",))
    >>> method.apply(rows, schema=None, rng=Randomness.seeded(1))["illness"].to_pylist()
    ['b', 'a', 'd', 'c']
    """

    name: ClassVar[str] = "data-swapping"
    reference: ClassVar[str] = "Dalenius and Reiss, Data-swapping, JSPI 1982"
    random: ClassVar[bool] = True
    keeps_missing: ClassVar[bool] = False

    fraction: float = parameter(0.1, help="share of the records that take part", above=0, high=1)
    within: tuple[str, ...] = parameter((), help="columns on which partners agree")

    def __post_init__(self) -> None:
        given = (self.within,) if isinstance(self.within, str) else tuple(self.within)
        object.__setattr__(self, "within", given)
        super().__post_init__()
        if both := set(self.within) & set(self.columns):
            raise InputError(
                f"column {min(both)!r} cannot be swapped and held fixed",
                code="duplicate-column",
                column=min(both),
                parameter="within",
            )

    @property
    def reads(self) -> tuple[str, ...]:
        """The swapped columns and those on which partners agree."""
        return (*self.columns, *self.within)

    def stronger(self) -> DataSwapping | None:
        """Return the method with fraction one step further."""
        if self.fraction >= 1:
            return None
        return dataclasses.replace(self, fraction=min(self.fraction * 1.5, 1.0))

    def mask_in_engine(self, held: Dataset, *, rng: Randomness) -> Dataset | None:
        """Return the records after the swaps, which the engine makes."""
        size = round(len(held) * self.fraction)
        if size < 2:
            return held
        made = exchanged(held.relation, self.columns, self.within, size=size, rng=rng)
        return held.replace(relation=made)

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the swapped columns."""
        import pyarrow as pa

        n = rows.num_rows
        chosen = rng.sample(n, round(n * self.fraction))
        cell = np.zeros(n, np.int64)
        for name in self.within:
            places, values = codes(rows.column(name))
            cell = cell * (len(values) + 1) + places + 1
            cell = np.unique(cell, return_inverse=True)[1].ravel()
        source = np.arange(n)
        # `chosen` is in random order already, and a stable sort keeps it within each cell.
        chosen = chosen[np.argsort(cell[chosen], kind="stable")]
        here = cell[chosen]
        starts = np.flatnonzero(np.concatenate(([True], here[1:] != here[:-1])))[: here.size]
        within = np.arange(here.size) - np.repeat(starts, np.diff(np.append(starts, here.size)))
        first = np.flatnonzero(within % 2 == 0)
        first = first[first + 1 < here.size]
        first = first[here[first] == here[first + 1]]
        one, two = chosen[first], chosen[first + 1]
        source[one], source[two] = two, one
        places = pa.array(source)
        return {name: rows.column(name).combine_chunks().take(places) for name in self.columns}
