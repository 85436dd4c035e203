"""Published intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.audit.outsider.deviations import components
from discreet.audit.sliding import audit_width, holds_whole_numbers, needed_width
from discreet.data.table import Bools, Floats, Ints, Status, Table
from discreet.errors import InfeasibleError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter
from discreet.tables.methods._base import (
    Protected,
    TableMethod,
    grand_total,
    is_total,
    kept_cells,
    least_of,
    round_up,
    sensitive,
    with_levels,
)
from discreet.tables.methods._keys import draws, read_key

if TYPE_CHECKING:
    from discreet.tables.suppression.pattern import Pattern

__all__ = ["Intervals"]

#: Pieces are widened so often before the cells are given up.
_DOUBLINGS = 30


@dataclasses.dataclass(frozen=True)
class Intervals(TableMethod):
    """Publishes an interval in place of each sensitive value, and of the values that would narrow it.

    Partial suppression: cells are chosen as cell suppression chooses them, but an interval stands
    in place of each. The line of numbers is divided into pieces as wide as the protection levels
    ask for, a power of two; where pieces begin is drawn for each cell with a secret key, and the
    piece that holds the value is published. The value may be anywhere in it, every position alike.
    Pieces are doubled until what all of them and the totals tell together still leaves every
    sensitive cell as many values as two protection levels, those of the largest value in the piece;
    one time in four, drawn with the key, they are doubled once more from the start, so that a wide
    piece does not tell that a narrow one was not safe. Whoever knows all of this knows that the values lie in the intervals, and no more.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame(
    ...     {"sector": ["Total", "IT", "Fin", "HC"], "value": [63.0, 11, 21, 31], "p": [0, 1, 0, 0]}
    ... )
    >>> cells["level"] = 3.0
    >>> table = Table.from_cells(
    ...     cells, by=["sector"], value="value", primary="p", lower="level", upper="level"
    ... )
    >>> shown = Intervals().hide(table, rng=Randomness.seeded(1))
    >>> bool(shown.lower[1] <= 11 <= shown.upper[1]), int(shown.withheld.sum())
    (True, 2)
    >>> float(shown.upper[1] - shown.lower[1]) >= 6
    True
    """

    name: ClassVar[str] = "intervals"
    reference: ClassVar[str] = "Fischetti and Salazar-González (2003), Partial cell suppression"
    is_random: ClassVar[bool] = True

    relative: bool = parameter(
        False, help="count widths in percent, so that large cells are widened before small ones"
    )

    key: str | None = parameter(
        None,
        help="file with the secret key: the same key gives the same intervals",
        file="secret",
    )

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return values where they can stay, intervals elsewhere."""
        from discreet.tables.suppression.choosing import choose, tosses
        from discreet.tables.suppression.engine import suppress

        table.require_additive()
        table = with_levels(table, self.name)
        key = read_key(self.key, rng)
        weight = self._weight(table) * (1 + draws(table, key, b"discreet weight", of="codes"))
        never = kept_cells(table) | grand_total(table)

        def search(
            one: Table, *, never: Bools, withheld: Bools | None = None, quick: bool = False
        ) -> Pattern:
            return suppress(
                one.replace(cost=weight),
                objective="cost",
                effort="fast" if quick else "balanced",
                attacker="outsider",
                never=never,
                withheld=() if withheld is None else withheld,
                key=key,
                progress=progress,
            )

        # Which cells are intervals must not tell more of small counts than the intervals do.
        pattern = choose(table, "outsider", never, search, tosses(table, key), key)
        status = pattern.status.copy()
        # What follows from published cells is no interval, whoever withheld it.
        follows = components(table.equations, np.flatnonzero(pattern.withheld))[1]
        status[follows[status[follows] == Status.SECONDARY]] = Status.SAFE
        hidden = pattern.withheld & (status != Status.SAFE)
        lower, upper = self._widened(table, hidden, key, progress)
        value = np.where(hidden, np.nan, table.value)
        return Protected(table, value, status, lower, upper, prints_intervals=True)

    def _widened(
        self, table: Table, hidden: Bools, key: bytes, progress: Progress
    ) -> tuple[Floats, Floats]:
        """Return the pieces, in each connected set of cells as narrow as is safe."""
        from discreet.tables.suppression.deniability import Frequencies

        groups = components(table.equations, np.flatnonzero(hidden))[0]
        wider = draws(table, key, b"discreet wider", of="codes")
        width = _first_widths(table, groups)
        for group in groups:
            width[group] *= 2.0 ** np.floor(-np.log(wider[group[0]]) / np.log(4))
        drawn = draws(table, key, b"discreet place", of="codes")
        counts = Frequencies.of(table, "outsider")
        if counts is not None and not counts.denies(hidden):
            counts = None  # whatever stands in place of the cells, the pattern itself tells more
        for _ in range(_DOUBLINGS):
            lower, upper = _pieces(table, width, drawn)
            lower, upper = (np.where(hidden, end, table.value) for end in (lower, upper))
            known = np.where(hidden, np.maximum(lower, least_of(table)), lower), upper
            audit = audit_width(table, published=~hidden, bounds=known, progress=progress)
            narrow = np.zeros(len(table), dtype=bool)
            if audit.safe:
                if counts is None or counts.denies(hidden, (lower, upper)):
                    return lower, upper
                narrow = hidden  # some counts would have needed other intervals, and are told apart
            else:
                narrow[audit.cells[~audit._safe]] = True
            for group in groups:
                if narrow[group].any():
                    width[group] *= 2
        raise self._infeasible(table, np.flatnonzero(narrow))

    def _weight(self, table: Table) -> Floats:
        size = np.maximum(np.abs(table.value), 1.0)
        weight = 1 / size if self.relative else np.ones(len(table))
        # Readers look at totals first: they are widened last.
        return np.where(is_total(table), 3 * weight, weight)

    def _infeasible(self, table: Table, cells: Ints) -> InfeasibleError:
        names = [" × ".join(table.labels(int(cell))) for cell in cells[:5]]
        return InfeasibleError(
            f"no intervals protect {len(cells)} sensitive cells: " + "; ".join(names),
            code="intervals-infeasible",
            hint="merge categories with recoding, or use controlled-tabular-adjustment",
            cells=names,
        )


def _first_widths(table: Table, groups: Sequence[Ints]) -> Floats:
    """Return how wide pieces are at first: what the sensitive cells they are tied to need at most.

    Of counts what any sensitive cell needs, so that no width tells which cell it is for; of
    magnitudes the next power of two, so that whatever is doubled a wide piece may be anybody's.
    """
    marked = sensitive(table)
    need = needed_width(table, np.abs(table.value))
    if holds_whole_numbers(table):
        need = need + 1
    if table.is_whole:
        need[:] = need[marked].max(initial=1.0)
    else:
        need = 2.0 ** np.ceil(np.log2(np.maximum(need, np.finfo(float).tiny)) - 1e-9)
    width = np.where(marked, need, 1.0)
    for group in groups:
        # Cells may be withheld so that the pattern tells no count: theirs look like the others.
        ours = group[marked[group]]
        width[group] = need[ours if len(ours) else marked].max(initial=1.0)
    return width


def _pieces(table: Table, width: Floats, drawn: Floats) -> tuple[Floats, Floats]:
    """Return the piece of the line that holds each value.

    The piece that would begin below what everybody knows is joined to the next, so that none is
    narrower than it should be.
    """
    least, whole = least_of(table), holds_whole_numbers(table)
    if table.zeros and table.statistic == "count":
        # An end at 1 would say that the cell is not empty, and one at 0 that some cell is.
        least = np.zeros(len(table))
    start = np.floor(drawn * width) if whole else drawn * width
    origin = np.where(np.isfinite(least), least, 0.0) + start
    lower = origin + np.floor((table.value - origin) / width) * width
    upper = lower + width
    joined = np.isfinite(least) & (lower <= origin)
    lower, upper = np.where(joined, least, lower), np.where(joined, origin + width, upper)
    if whole:
        return lower, upper - 1
    # Real numbers end at round ones, further out: digits are of no use in an interval.
    step = np.array([round_up(one / 20) for one in width.tolist()])
    return np.maximum(np.floor(lower / step) * step, least), np.ceil(upper / step) * step
