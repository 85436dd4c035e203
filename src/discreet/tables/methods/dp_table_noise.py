"""Differentially private noise with consistent totals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from discreet.data.table import Bools, Floats, Table
from discreet.dp.accountant import pure_event
from discreet.dp.caution import caution
from discreet.dp.noise import add_laplace
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter
from discreet.tables.methods._base import Protected, TableMethod, changed
from discreet.tables.methods._contributors import require_records, require_unweighted
from discreet.tables.methods._cube import add_up, complete_cube, views
from discreet.tables.methods._projection import least_squares

if TYPE_CHECKING:
    from discreet.tables.tabulation import Source

__all__ = ["DPTableNoise"]


#: Bits kept of a contribution: sums of 2**28 of them are exact.
_BITS = 24


@dataclasses.dataclass(frozen=True)
class DPTableNoise(TableMethod):
    """Adds Laplace noise drawn by OpenDP to every cell, empty ones too, and makes totals add up.

    The budget is split over the levels of totals that are published ("views"): a person is in
    one cell of each. With totals="levels" each view gets its own noise and the closest additive
    table is published; with totals="bottom-up" only single cells get noise and totals are their
    sums. The codes of the table are taken as public; which cells are empty is not. Where an
    attribute has no hierarchy its codes are those found in the records, and the promise says so.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "value": [900, 700, 200]})
    >>> table = Table.from_cells(cells, by=["sector"], value="value", statistic="count")
    >>> noisy = DPTableNoise(epsilon=1.0).hide(table, rng=Randomness.secure()).value
    >>> bool(abs(noisy[0] - noisy[1] - noisy[2]) < 1e-6)
    True
    """

    name: ClassVar[str] = "dp-noise"
    reference: ClassVar[str] = "Dwork et al. (2006), TCC; Hay et al. (2010), VLDB 3"
    needs_rules: ClassVar[bool] = False
    risk: ClassVar[str] = "noise"
    is_random: ClassVar[bool] = True
    linked: ClassVar[str] = "refused"

    epsilon: float = parameter(1.0, help="privacy budget of the whole table", above=0)
    bounds: tuple[float, ...] | None = parameter(
        None, help="smallest and largest contribution; sums need them, values outside are clipped"
    )
    totals: Literal["levels", "bottom-up"] = parameter(
        "levels", help="noise in every level of totals, or only in single cells"
    )
    records: int = parameter(
        1, help="most records one contributor may have; further ones break the promise", low=1
    )
    non_negative: bool = parameter(
        False, help="publish no negative number: nicer, at the price of a small bias upwards"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not math.isfinite(self.epsilon):
            raise InputError(
                "dp-noise: epsilon is a finite number: without end there is no noise",
                code="parameter-range",
                hint="write epsilon=1",
                parameter="epsilon",
            )
        if self.bounds is not None and (
            len(self.bounds) != 2
            or not self.bounds[0] < self.bounds[1]
            or not all(map(math.isfinite, self.bounds))
        ):
            raise InputError(
                "dp-noise: bounds are two finite numbers, the smaller first",
                code="parameter-range",
                hint="write bounds=(0, 500000)",
                parameter="bounds",
            )

    def events(self, table: Table) -> Mapping[str, int]:
        """Return one event: all views together are ε-differentially private."""
        del table
        return {pure_event(self.epsilon): 1}

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return the noisy additive table, over every combination of codes."""
        if table.statistic == "mean":
            raise InputError(
                "dp-noise protects counts and sums",
                code="unsupported-statistic",
                hint='tabulate with statistic="sum", and the counts in a table of their own',
            )
        source: Source | None = getattr(table, "source", None)
        require_unweighted(source, self.name)
        require_records(source, self.records, self.name)
        cube = complete_cube(self._clipped(table, source))
        groups = [views(cube) == 0] if self.totals == "bottom-up" else _each(views(cube))
        reach = 1.0 if table.statistic == "count" else max(abs(b) for b in self._bounds())
        share = self.epsilon / len(groups)
        noisy = np.zeros(len(cube))
        for number, group in enumerate(groups):
            progress("drawing noise", number, len(groups))
            noisy[group] = add_laplace(
                cube.value[group],
                sensitivity=reach * self.records,
                epsilon=share,
                whole=table.statistic == "count",
            )
        single = views(cube) == 0
        if self.totals == "bottom-up":
            value = add_up(cube, noisy)
        else:
            value = least_squares(cube.equations.tocsc(), np.ones(len(cube)), noisy)
        if self.non_negative:
            value = np.where(single, np.maximum(value, 0.0), value)
        # Totals anew from the single cells: the last digits of a projection do not add up.
        value = add_up(cube, value)
        promise = f"ε-differential privacy with ε = {self.epsilon:g} for each contributor"
        found = [] if source is None else source.undeclared()
        if found:
            promise += f" (the codes of {', '.join(found)}, found in the records, count as known)"
        return Protected(
            cube,
            value,
            changed(cube),
            facts={
                "promise": promise,
                "views": len(groups),
                "noise": "Laplace, OpenDP",
                "caution": caution(self.epsilon),
            },
            events=self.events(table),
        )

    def _bounds(self) -> tuple[float, float]:
        if self.bounds is None:
            raise InputError(
                "dp-noise needs bounds on the contributions of a sum",
                code="missing-bounds",
                hint="write bounds=(0, 500000), from what is publicly known, not from the data",
                parameter="bounds",
            )
        return self.bounds[0], self.bounds[1]

    def _clipped(self, table: Table, source: Source | None) -> Table:
        """Return the table with contributions outside the bounds set to the bound."""
        if table.statistic == "count":
            return table
        low, high = self._bounds()
        if source is not None and table.measure is not None:
            amounts = source.numbers(table.measure, missing=np.nan)
            clipped = np.where(np.isnan(amounts), 0.0, np.clip(amounts, low, high))
            # Sums of multiples of a power of two are exact, in whatever order they are added:
            # rounding errors would make one record change a sum by more than its bound.
            step = 2.0 ** (np.floor(np.log2(max(abs(low), abs(high)))) - _BITS)
            clipped = np.trunc(clipped / step) * step
            return table.replace(value=source.sums(table, {"__clipped": clipped})[0])
        top = table.contributions
        if top is None or (np.abs(top).max(initial=0.0) > max(abs(low), abs(high))):
            raise InputError(
                "dp-noise cannot tell that all contributions of a ready-made table are in bounds",
                code="outside-bounds",
                hint="tabulate the records, or give the largest contributions and wider bounds",
            )
        return table


def _each(view: Floats) -> list[Bools]:
    return [np.asarray(view == number) for number in np.unique(view)]
