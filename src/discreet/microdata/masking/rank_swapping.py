"""Rank swapping: each value changes places with one of similar rank."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.data.schema import Schema
from discreet.microdata.masking._base import ColumnMasking
from discreet.microdata.masking._exchange import ranked, swapped
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["RankSwapping"]


@dataclasses.dataclass(frozen=True)
class RankSwapping(ColumnMasking):
    """Swap each value with a random one whose rank differs by at most p per cent of the records.

    Every column is swapped by itself, among the records that have a value; its distribution is
    kept exactly. Works on numbers, dates, and categories in the order of their names. With an odd
    number of values, or a window that holds no free partner, a value may stay where it is.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table({"income": [5, 1, 4, 2, 3, None]})
    >>> masked = RankSwapping("income", p=20).apply(rows, schema=None, rng=Randomness.seeded(1))
    >>> sorted(masked["income"].to_pylist()[:5]), masked["income"][5].as_py()
    ([1, 2, 3, 4, 5], None)
    """

    name: ClassVar[str] = "rank-swapping"
    reference: ClassVar[str] = "Moore, Controlled data-swapping techniques, 1996"
    random: ClassVar[bool] = True

    p: float = parameter(5.0, help="largest difference in rank, in per cent", above=0, high=100)

    def stronger(self) -> RankSwapping | None:
        """Return the method with p one step further."""
        if self.p >= 100:
            return None
        return dataclasses.replace(self, p=min(self.p * 1.5, 100.0))

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the swapped columns."""
        return {name: self._swapped(rows.column(name), rng) for name in self.columns}

    def mask_in_engine(self, held: Dataset, *, rng: Randomness) -> Dataset | None:
        """Return the records after the swaps: the engine ranks and joins, pairs alone come in."""
        import pyarrow as pa

        from discreet.microdata.masking._swap import partners

        for name in self.columns:
            engine = held.engine
            ranks = engine.materialize(ranked(held.relation, name))
            known = engine.count(ranks)
            partner = partners(known, self._window(known), rng)
            one = np.flatnonzero(partner > np.arange(known, dtype=partner.dtype))
            # Ranks of an engine start with 1.
            pairs = pa.table({"one": one + 1, "two": partner[one].astype(np.int64) + 1})
            held = held.replace(relation=swapped(held.relation, name, ranks, pairs))
        return held

    def _window(self, known: int) -> int:
        return max(int(known * self.p / 100), 1)

    def _swapped(self, column: pa.ChunkedArray, rng: Randomness) -> pa.Array:
        import pyarrow as pa

        from discreet.microdata.masking._swap import partners

        column = column.combine_chunks()
        order, known = _ranked(column)
        source = np.arange(len(column))
        source[order] = order[partners(known, self._window(known), rng)]
        return column.take(pa.array(source))


def _ranked(column: pa.Array) -> tuple[np.ndarray, int]:
    """Return the places of the values from the smallest, missing ones left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    known = len(column) - column.null_count
    if column.null_count == 0 and (
        pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    ):
        order = np.argsort(column.to_numpy(zero_copy_only=False), kind="stable")
    else:
        order = pc.sort_indices(column).to_numpy(zero_copy_only=False)
    return order.astype(np.int64)[:known], known
