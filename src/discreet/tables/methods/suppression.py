"""Cell suppression."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from discreet.data.table import Status, Table
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter
from discreet.tables.methods._base import Protected, TableMethod, grand_total, kept_cells
from discreet.tables.methods._keys import read_key
from discreet.tables.tabulation import counted

if TYPE_CHECKING:
    from discreet.tables.suppression.pattern import Pattern

__all__ = ["Suppression"]


@dataclasses.dataclass(frozen=True)
class Suppression(TableMethod):
    """Withholds sensitive cells, and others so that no sensitive one can be computed.

    Each sensitive cell is given certificates: other tables that look the same and in which it lies
    at the ends of its protection interval. The cheapest come from linear programs; secondaries that
    turn out to be replaceable are published again; "optimal" goes on until nothing cheaper can
    exist. Whatever the effort, the result has passed the auditor. Prices carry noise made from a
    secret key, since a search that anybody can repeat would tell values: the same table and key
    give the same pattern, and without a key one is drawn for this run.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame(
    ...     {"sector": ["Total", "IT", "Fin", "HC"], "value": [60.0, 10, 20, 30], "p": [0, 1, 0, 0]}
    ... )
    >>> cells["level"] = 3.0
    >>> table = Table.from_cells(
    ...     cells, by=["sector"], value="value", primary="p", lower="level", upper="level"
    ... )
    >>> method = Suppression(objective="value", attacker="outsider")
    >>> found = method.hide(table, rng=Randomness.seeded(1)).value
    >>> int(np.isnan(found).sum()), float(found[0])
    (2, 60.0)
    """

    name: ClassVar[str] = "suppression"
    reference: ClassVar[str] = "Fischetti and Salazar (2001), Management Science 47; Castro (2012)"
    is_random: ClassVar[bool] = True
    across_measures: ClassVar[bool] = True

    objective: Literal["count", "value", "log-value", "cost"] = parameter(
        "count", help="what is kept small of the secondaries: their count, value, log-value or cost"
    )
    effort: Literal["fast", "balanced", "optimal"] = parameter(
        "balanced", help="a safe pattern fast, a cheap one, or the cheapest with proof"
    )
    attacker: Literal["contributors", "outsider"] = parameter(
        "contributors", help="who must not infer: also contributors, who know their part, or not"
    )
    time_limit: float | None = parameter(
        None, help="seconds after which no better pattern is sought", above=0
    )
    never: tuple[str, ...] = parameter(
        (), help="cells that stay published: codes separated by /, * for any"
    )
    prefer: tuple[str, ...] = parameter(
        (), help="cells that are best withheld: codes separated by /, * for any"
    )

    key: str | None = parameter(
        None,
        help="file with the secret key: the same key gives the same pattern; without one a key is "
        "drawn for this run",
        file="secret",
    )

    def hide(
        self,
        table: Table,
        *,
        rng: Randomness,
        progress: Progress = silent,
        withheld: npt.NDArray[np.bool_] | None = None,
    ) -> Protected:
        """Return the table with sensitive and secondary cells withheld.

        Cells in `withheld` are withheld for another reason: because another measure of theirs is.
        """
        key = read_key(self.key, rng)
        pattern = self._pattern(table, key, withheld, progress)
        if table.statistic == "mean":
            # Means are printed with the numbers they are divided by, which need as much room.
            numbers = self._pattern(counted(table), key, pattern.withheld, progress)
            pattern = pattern.widened(table, numbers.withheld)
        # Whether the pattern is the cheapest, and how nearly, would exclude other tables.
        proof = {"optimal": pattern.optimal, "gap": pattern.gap, "deniable": pattern.deniable}
        return Protected(
            table,
            np.where(pattern.withheld, np.nan, table.value),
            pattern.status,
            confidential={"audit": pattern.audit, "pattern": pattern, **proof},
        )

    def _pattern(
        self,
        table: Table,
        key: bytes,
        withheld: npt.NDArray[np.bool_] | None,
        progress: Progress,
    ) -> Pattern:
        from discreet.tables.suppression.choosing import choose, tosses
        from discreet.tables.suppression.engine import suppress

        wished = _cells(table, self.prefer)
        if table.status is not None:
            wished |= table.status == Status.SECONDARY
        never = _cells(table, self.never) | kept_cells(table) | grand_total(table)

        def search(
            one: Table,
            *,
            never: npt.NDArray[np.bool_],
            withheld: npt.NDArray[np.bool_] | None = withheld,
            quick: bool = False,
        ) -> Pattern:
            return suppress(
                one,
                objective=self.objective,
                effort="fast" if quick else self.effort,
                attacker=self.attacker,
                time_limit=self.time_limit,
                never=never,
                prefer=wished,
                withheld=() if withheld is None else withheld,
                key=key,
                progress=progress,
            )

        if (
            withheld is not None and withheld.any()
        ):  # another measure of the same cells decides with this one
            return search(table, never=never)
        return choose(table, self.attacker, never, search, tosses(table, key), key)


def _cells(table: Table, wanted: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Return a mask of the cells named by codes."""
    mask = np.zeros(len(table), dtype=bool)
    for name in wanted:
        codes = [code.strip() for code in name.split("/")]
        if len(codes) != len(table.dimensions):
            raise InputError(
                f"the cell {name!r} has {len(codes)} codes, the table {len(table.dimensions)} "
                "attributes",
                code="unknown-cell",
                hint="write one code for each of " + ", ".join(table.by) + ", separated by /",
            )
        chosen = np.ones(len(table), dtype=bool)
        for place, (dimension, code) in enumerate(zip(table.dimensions, codes, strict=True)):
            if code == "*":
                continue
            if code not in dimension.index:
                raise InputError(
                    f"dimension {dimension.name!r} has no code {code!r}",
                    code="unknown-code",
                    column=dimension.name,
                )
            chosen &= table.codes[:, place] == dimension.index[code]
        mask |= chosen
    return mask
