"""What a protected table lost, in words and units that its readers know.

Everything is counted and added up in the published cells: anybody could do the same, so the words
give away nothing.
"""

from __future__ import annotations

import numpy as np

from discreet.tables.protected_table import ProtectedTable

__all__ = ["loss_in_words"]


def loss_in_words(release: ProtectedTable, unit: str = "") -> list[str]:
    """Return sentences on what is withheld or changed; `unit` is that of the measure.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet import demo
    >>> table = dc.tabulate(demo.salaries(), by=["sector", "region"], measure="salary")
    >>> release = table.protect(rules=[dc.MinimumFrequency(3)], method=dc.Suppression())
    >>> loss_in_words(release, "EUR")[0]
    '6 of 12 cells (50 %) are withheld.'
    """
    table, withheld = release.table, release.protected.withheld
    lines = []
    merged = release.loss.public().get("merged", 0)
    if merged:
        lines.append(f"{merged:,} cells were merged with others before anything was withheld.")
    if not release.withholds:
        return [*lines, f"All {len(table):,} cells are published, {_unwithheld(release)}."]
    done = "given as an interval" if release.protected.prints_intervals else "withheld"
    lines.append(_share(int(withheld.sum()), len(table), "cells") + f" are {done}.")
    finest = np.ones(len(table), dtype=bool)
    for place, dimension in enumerate(table.dimensions):
        finest &= dimension.is_leaf[table.codes[:, place]]
    if len(table.dimensions) > 1 or not finest[1:].all():
        told = _share(int(withheld[finest].sum()), int(finest.sum()), "cells", "the ")
        amount = _amount(release, finest, unit)
        lines.append(f"{told.replace('cells', 'cells of the finest level')} are {done}{amount}.")
    if len(table.dimensions) > 1 and withheld.any():
        parts: list[str] = []
        for place, name in enumerate(table.by):
            coarse = table.codes[:, place] == 0
            many, hidden = int(coarse.sum()), int(withheld[coarse].sum())
            parts.append(f"without {name}, {_share(hidden, many, '' if parts else 'cells')}")
        parts[0] += f" are {done}"
        lines.append(f"{'; '.join(parts)}.".replace("without", "Without", 1))
    return lines


def _unwithheld(release: ProtectedTable) -> str:
    """Return what was done to a table of which every cell is published."""
    if release.method.acting.name == "suppression":
        return "as they are: none of them needed protection"
    return "with values that were changed"


def _share(part: int, whole: int, noun: str, article: str = "") -> str:
    percent = 100 * part / whole if whole else 0.0
    return f"{part:,} of {article}{whole:,} {noun}".rstrip() + f" ({percent:.0f} %)"


def _amount(release: ProtectedTable, finest: object, unit: str) -> str:
    """Return how much of the measure the withheld cells of the finest level hold.

    It is the published grand total less all that is published below it; where values may be
    negative, or no total is published, nothing is said.
    """
    table, frame = release.table, release._frame
    total = np.flatnonzero((table.codes == 0).all(axis=1))
    published = ~release.protected.withheld
    value = frame["value"].to_numpy(dtype=float)
    adds_up = table.statistic == "sum" and bool((value[published] >= 0).all())
    if not adds_up or not len(total) or not published[total[0]] or not value[total[0]]:
        return ""
    whole = float(value[total[0]])
    hidden = max(whole - float(value[published & np.asarray(finest)].sum()), 0.0)
    words = f"{unit} of {table.measure}".strip() if unit else str(table.measure)
    share = f"{100 * hidden / whole:.0f} %"
    return f"; they hold {hidden:,.0f} of {whole:,.0f} {words} ({share})"
