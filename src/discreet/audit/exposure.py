"""What publishing a sensitive cell would give away, in words and numbers: for the curator only."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from discreet.data.table import Status, Table
from discreet.report import Report, Rows, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Exposure", "Exposures", "expose"]


@dataclasses.dataclass(frozen=True)
class Exposure(Report):
    """The attack one cell enables if it is published."""

    cell: tuple[str, ...]
    #: "external" (anybody), "internal" (the other contributor), "dominance" (a large contributor).
    attack: str
    text: str
    #: Percent by which the attacker's bound on the victim exceeds the truth; 0 is exact.
    within: float | None


@dataclasses.dataclass(frozen=True)
class Exposures(Report):
    """The attacks that the sensitive cells of a table enable; not for publication."""

    cells: tuple[Exposure, ...]

    def rows(self) -> Rows:
        """Return one line per cell."""
        body = [(" × ".join(e.cell), e.attack, e.text) for e in self.cells]
        return ("cell", "attack", "what an attacker would get"), body


def expose(table: Table, cells: Sequence[int] | None = None, *, limit: int = 1000) -> Exposures:
    """Say for each sensitive cell which attack its publication would enable.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = pd.DataFrame(
    ...     {
    ...         "cell": ["IT", "Fin"],
    ...         "v": [852e3, 150e3],
    ...         "n": [3, 1],
    ...         "x1": [5e5, 15e4],
    ...         "x2": [32e4, 0],
    ...     }
    ... )
    >>> table = Table.from_cells(
    ...     cells, by=["cell"], value="v", count="n", contributions=["x1", "x2"]
    ... )
    >>> for found in expose(table, [0, 1]).cells:
    ...     print(found.attack, "-", found.text)
    dominance - contributor 2 can bound contributor 1 to within 6.4 %: at most 532,000 (it is 500,000)
    external - anybody who knows the only contributor reads its value: 150,000
    """
    if cells is None:
        marked = table.status if table.status is not None else np.zeros(len(table), np.int8)
        cells = [int(i) for i in np.flatnonzero(marked == Status.PRIMARY)[:limit]]
    return Exposures(tuple(_expose(table, cell) for cell in cells))


def _expose(table: Table, cell: int) -> Exposure:
    count = None if table.count is None else int(table.count[cell])
    value = float(table.value[cell])
    name = table.labels(cell)
    if table.statistic == "count":
        return _of_count(name, count if count is not None else round(value))
    top = [] if table.contributions is None else [float(x) for x in table.contributions[cell]]
    if count == 1:
        text = f"anybody who knows the only contributor reads its value: {shown(value)}"
        return Exposure(name, "external", text, 0.0)
    if count == 2:
        first = top[0] if top else None
        text = "each of the two contributors subtracts its own value and has the other's exactly"
        if first is not None:
            text += f": {shown(first)} and {shown(value - first)}"
        return Exposure(name, "internal", text, 0.0)
    if len(top) >= 2 and top[0] != 0 and min(top[:2]) >= 0:
        return _dominated(name, value, top, count)
    if len(top) >= 1 and top[0] != 0:
        rest = value - top[0]
        text = f"the largest contributor knows that all others together have {shown(rest)}"
        return Exposure(name, "dominance", text, None)
    text = "the number behind the cell is too small or the curator named it"
    return Exposure(name, "external", text, None)


def _dominated(
    name: tuple[str, ...], value: float, top: list[float], count: int | None
) -> Exposure:
    bound, rest = value - top[1], value - top[0]
    within = 100 * (bound - top[0]) / top[0]
    others = f"the other {count - 1}" if count is not None and count > 2 else "all others"
    if top[0] > rest and within > 100:
        text = f"contributor 1 knows that {others} have at most {shown(rest)} together"
        return Exposure(name, "dominance", text, within)
    text = (
        f"contributor 2 can bound contributor 1 to within {within:.3g} %: "
        f"at most {shown(bound)} (it is {shown(top[0])})"
    )
    if count is not None and top[0] > 0.75 * value:
        text += f"; contributor 1 knows that {others} have at most {shown(rest)} together"
    return Exposure(name, "dominance", text, within)


def _of_count(name: tuple[str, ...], count: int) -> Exposure:
    if count == 1:
        text = "one person only: whatever is published of this group is published of that person"
        return Exposure(name, "external", text, 0.0)
    if count == 2:
        text = "two people only: each of them learns whatever is published of the other"
        return Exposure(name, "internal", text, 0.0)
    text = f"a group of {count}: together {count - 1} of them single out the last"
    return Exposure(name, "internal" if count else "external", text, None)
