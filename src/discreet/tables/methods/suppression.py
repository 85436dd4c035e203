"""Cell suppression."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from discreet.data.table import Status, Table
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter
from discreet.tables.methods._base import Protected, TableMethod, told_gap

__all__ = ["Suppression"]


@dataclasses.dataclass(frozen=True)
class Suppression(TableMethod):
    """Withholds sensitive cells, and others so that no sensitive one can be computed.

    Each sensitive cell is given certificates: other tables that look the same and in which it lies
    at the ends of its protection interval. The cheapest come from linear programs; secondaries that
    turn out to be replaceable are published again; "optimal" goes on until nothing cheaper can
    exist. Whatever the effort, the result has passed the auditor, and the same table gives the
    same pattern.

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
    >>> method.hide(table, rng=Randomness.seeded(1)).value.tolist()
    [60.0, nan, nan, 30.0]
    """

    name: ClassVar[str] = "suppression"
    reference: ClassVar[str] = "Fischetti and Salazar (2001), Management Science 47; Castro (2012)"

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

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return the table with sensitive and secondary cells withheld."""
        from discreet.tables.suppression.engine import suppress

        prefer = _cells(table, self.prefer)
        if table.status is not None:
            prefer |= table.status == Status.SECONDARY
        pattern = suppress(
            table,
            objective=self.objective,
            effort=self.effort,
            attacker=self.attacker,
            time_limit=self.time_limit,
            never=_cells(table, self.never),
            prefer=prefer,
            progress=progress,
        )
        facts = {"optimal": pattern.optimal, "gap_at_most": told_gap(pattern.gap)}
        return Protected(
            table,
            np.where(pattern.withheld, np.nan, table.value),
            pattern.status,
            facts=facts,
            confidential={"audit": pattern.audit, "pattern": pattern, "gap": pattern.gap},
        )


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
