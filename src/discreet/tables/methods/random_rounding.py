"""Random rounding."""

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
from discreet.tables.methods._keys import draws, read_key
from discreet.tables.methods._rounding_bases import rounding_base

__all__ = ["RandomRounding"]


@dataclasses.dataclass(frozen=True)
class RandomRounding(TableMethod):
    """Rounds every cell up or down to a multiple of a base at random, without bias.

    A cell goes up with a probability equal to how far it lies above the multiple below, so that
    its expectation is the true value; multiples of the base stay as they are. Totals are rounded
    on their own and no longer add up. With a key the same cell is rounded alike wherever it stands
    and however often it is published; without one, asking again averages the rounding out.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "value": [12, 10, 2]})
    >>> table = Table.from_cells(cells, by=["sector"], value="value", statistic="count")
    >>> rounded = RandomRounding(5).hide(table, rng=Randomness.seeded(1)).value
    >>> bool(rounded[1] == 10 and (abs(rounded - table.value) < 5).all())
    True
    """

    name: ClassVar[str] = "random-rounding"
    reference: ClassVar[str] = "Fellegi (1975), Sankhya C 37; Nargundkar and Saveland (1972)"
    needs_rules: ClassVar[bool] = False
    is_random: ClassVar[bool] = True
    is_additive: ClassVar[bool] = False

    base: float | None = parameter(
        None, help="published values are multiples of it; 5 for counts", above=0
    )
    key: str | None = parameter(
        None,
        help="file with the secret key: the same key rounds the same cell alike",
        file="secret",
    )

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return every cell rounded."""
        key = read_key(self.key, rng)
        base = rounding_base(table, self.base, key)
        below = np.floor(table.value / base + 1e-12)
        share = table.value / base - below
        drawn = draws(table, key, b"discreet round")
        up = (drawn < share) & (share > 1e-9)
        rounded = (below + up) * base
        # In a table of whole numbers the distance to the printed multiple is at most base − 1.
        reach = base - 1 if is_whole(table, strictly=True) and float(base).is_integer() else base
        lower = np.maximum(rounded - reach, least_of(table))
        return Protected(
            table,
            rounded,
            changed(table),
            lower,
            rounded + reach,
            grid=base,
            facts={"base": base},
        )
