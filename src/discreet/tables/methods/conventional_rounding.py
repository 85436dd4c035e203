"""Conventional rounding."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.data.table import Table
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter
from discreet.tables.methods._base import (
    Protected,
    TableMethod,
    changed,
    is_whole,
    least_of,
)
from discreet.tables.methods._keys import read_key
from discreet.tables.methods._rounding_bases import rounding_base

__all__ = ["ConventionalRounding"]


@dataclasses.dataclass(frozen=True)
class ConventionalRounding(TableMethod):
    """Rounds every cell to the nearest multiple of a base, halves upwards.

    Simple and reproducible, but totals no longer add up, and where they pin the parts down the
    rounding can be undone: the audit says where. Only which base is taken for magnitudes where
    none is given is drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "value": [9, 7, 2]})
    >>> table = Table.from_cells(cells, by=["sector"], value="value", statistic="count")
    >>> ConventionalRounding(5).hide(table, rng=Randomness.seeded(1)).value.tolist()
    [10.0, 5.0, 0.0]
    """

    name: ClassVar[str] = "conventional-rounding"
    reference: ClassVar[str] = "Willenborg and de Waal (2001), Elements of SDC, §9.2"
    needs_rules: ClassVar[bool] = False
    is_random: ClassVar[bool] = True
    is_additive: ClassVar[bool] = False

    base: float | None = parameter(
        None, help="published values are multiples of it; 5 for counts", above=0
    )
    key: str | None = parameter(
        None, help="file with the secret key: the same key takes the same base", file="secret"
    )

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return every cell rounded."""
        base = rounding_base(table, self.base, read_key(self.key, rng), nearest=True)
        rounded = np.floor(table.value / base + 0.5) * base
        below = above = base / 2
        if is_whole(table, strictly=True) and float(base).is_integer():
            # Of whole numbers base 5 takes two from either side, base 10 five and four.
            below, above = base // 2, (base - 1) // 2
        lower, upper = np.maximum(rounded - below, least_of(table)), rounded + above
        return Protected(
            table, rounded, changed(table), lower, upper, grid=base, facts={"base": base}
        )
