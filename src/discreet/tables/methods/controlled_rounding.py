"""Controlled rounding."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.data.table import Table
from discreet.errors import InfeasibleError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter
from discreet.tables.methods._base import (
    Protected,
    TableMethod,
    changed,
    is_total,
    is_whole,
    least_of,
)
from discreet.tables.methods._keys import draws, read_key
from discreet.tables.methods._multiples import Multiples, Rounded
from discreet.tables.methods._rounding_bases import rounding_base

__all__ = ["ControlledRounding"]

#: Steps of the progress shown.
_STAGES = 5


@dataclasses.dataclass(frozen=True)
class ControlledRounding(TableMethod):
    """Rounds every cell to an adjacent multiple of a base so that totals still add up.

    Zero-restricted: a multiple of the base stays as it is, every other cell goes to the multiple
    just below or just above. Of all such tables one is drawn with a secret key: each cell wishes
    to go up with a probability equal to how far it lies above the multiple below, and the table
    that follows the wishes best is taken. Any such table may come out, so that whoever has the
    program learns no more than the multiples say; the closest table would tell which others are
    further away. Tables of three and more attributes do not always have one, or none that can be
    found in time; then totals that are multiples themselves (never single cells, never zeros) may
    move by one base, in few cells, and the facts say in how many. No cell is ever further from the
    truth than the base.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame({"sector": ["Total", "IT", "Fin", "HC"], "value": [16, 7, 3, 6]})
    >>> table = Table.from_cells(cells, by=["sector"], value="value", statistic="count")
    >>> rounded = ControlledRounding(5).hide(table, rng=Randomness.seeded(1)).value
    >>> bool(rounded[0] == rounded[1:].sum() and (abs(rounded - table.value) < 5).all())
    True
    """

    name: ClassVar[str] = "controlled-rounding"
    reference: ClassVar[str] = "Cox (1987), JASA 82; Salazar-González (2006), Math. Prog. 105"
    needs_rules: ClassVar[bool] = False
    is_random: ClassVar[bool] = True

    base: float | None = parameter(
        None, help="published values are multiples of it; 5 for counts", above=0
    )
    time_limit: float = parameter(
        30.0, help="seconds to spend; most of them only if no table is found before", above=0
    )
    gap: float = parameter(
        0.001, help="how nearly wishes are followed, relative to the best table", low=0, below=1
    )
    key: str | None = parameter(
        None,
        help="file with the secret key: the same key rounds the same table alike",
        file="secret",
    )

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return the additive table of multiples that follows the drawn wishes best."""
        table.require_additive()
        key = read_key(self.key, rng)
        base = rounding_base(table, self.base, key)
        wishes = draws(table, key, b"discreet round", of="codes")
        near = Multiples.of(table, base, wishes)
        found, impossible = self._adjacent(near, progress)
        if found is None:
            found = self._relaxed(near, base, progress, impossible=impossible)
        progress("rounding", _STAGES, _STAGES)
        return _protected(near, base, found, impossible=impossible)

    def _adjacent(self, near: Multiples, progress: Progress) -> tuple[Rounded | None, bool]:
        """Return the best table of adjacent multiples found, or whether there is none."""
        progress("rounding", 0, _STAGES)
        found, impossible = near.some(self.time_limit / 3)
        if found is None and not impossible:
            progress("rounding", 1, _STAGES)
            found = near.jump()
        if found is None:
            return None, impossible
        progress("rounding", 2, _STAGES)
        best = near.best(self.time_limit / 6, self.gap, start=found.multiples)
        return best or found, False

    def _relaxed(
        self, near: Multiples, base: float, progress: Progress, *, impossible: bool
    ) -> Rounded:
        """Let totals that are multiples move by one base, as few as can be found."""
        progress("rounding", 3, _STAGES)
        some = near.jump(slack=True)
        if some is None:
            some, hopeless = near.some(self.time_limit / 6, slack=True)
            if hopeless:
                raise _infeasible(base)
        start = None if some is None else some.multiples
        tables = [] if start is None else [start]
        if impossible:  # a small or simple table, where programs may end
            best = near.best(self.time_limit / 6, self.gap, slack=True, start=start)
            if best is not None and best.optimal:
                return best
            tables += [] if best is None else [best.multiples]
        progress("rounding", 4, _STAGES)
        for annealed in (near.anneal(), None if start is None else near.anneal(start)):
            tables += [] if annealed is None else [annealed]
        if not tables:
            raise InfeasibleError(
                f"no additive table of multiples of {base:g} was found within "
                f"{self.time_limit:g} s",
                code="rounding-infeasible",
                hint="allow more time, take another base, or use random-rounding",
            )
        return Rounded(min(tables, key=lambda found: int(near.left(found).sum())), optimal=False)


def _infeasible(base: float) -> InfeasibleError:
    return InfeasibleError(
        f"no additive table of multiples of {base:g} has every cell within {base:g} of its value "
        "and zeros kept",
        code="rounding-infeasible",
        hint="take another base, publish fewer totals, or use random-rounding, which need not add up",
    )


def _protected(near: Multiples, base: float, found: Rounded, *, impossible: bool) -> Protected:
    table = near.table
    left = near.left(found.multiples)
    rounded = found.multiples * base
    whole = is_whole(table, strictly=True) and float(base).is_integer()
    # In a table of whole numbers the distance to an adjacent multiple is at most base − 1. Which
    # totals moved by a whole base is not told, so that it may have been any.
    reach = np.full(len(table), base - 1 if whole else base)
    if left.any():
        reach[is_total(table)] = base
    facts = {"base": base, "moved_beyond_adjacent": int(left.sum())}
    return Protected(
        table,
        rounded,
        changed(table),
        np.maximum(rounded - reach, least_of(table)),
        rounded + reach,
        grid=base,
        facts=facts,
        confidential={
            "beyond_adjacent": [" × ".join(table.labels(c)) for c in np.flatnonzero(left).tolist()],
            "adjacent_impossible": impossible,
            "optimal": found.optimal,
        },
    )
