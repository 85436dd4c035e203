"""Every method on one table, side by side: what each leaves at risk and what it costs."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

from discreet.audit.rules import Rule
from discreet.data.table import Table
from discreet.errors import DiscreetError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.report import Report, Rows
from discreet.tables.methods import FAMILY, TableMethod
from discreet.tables.protection import protect

__all__ = ["Compared", "Comparison", "compare"]


@dataclasses.dataclass(frozen=True)
class Compared(Report):
    """One method on the table: risk, loss and time; or why it cannot be used."""

    method: str
    safe: bool | None = None
    unsafe: int | None = None
    withheld: int | None = None
    changed: int | None = None
    suppressed_value: float | None = None
    distance: float | None = None
    additive: bool | None = None
    seconds: float | None = None
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Comparison(Report):
    """Methods side by side; exact sums, so not for publication."""

    methods: tuple[Compared, ...]

    def rows(self) -> Rows:
        """Return one line per method."""
        names = [field.name for field in dataclasses.fields(Compared)]
        return names, [[getattr(line, name) for name in names] for line in self.methods]


def compare(
    table: Table,
    rules: Sequence[Rule] = (),
    methods: Sequence[TableMethod] | None = None,
    *,
    rng: Randomness | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Protect a table by every method and put risk and loss side by side.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.tables.methods.conventional_rounding import ConventionalRounding
    >>> cells = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "value": [9, 7, 2]})
    >>> table = Table.from_cells(cells, by=["sector"], value="value", statistic="count")
    >>> compare(table, methods=[ConventionalRounding(5)]).methods[0].distance
    5.0
    """
    if methods is None:
        methods = [kind() for kind in FAMILY.members().values() if _has_defaults(kind)]
    lines = []
    for number, method in enumerate(methods):
        progress(f"trying {method.name}", number, len(methods))
        lines.append(_try(table, rules, method, rng or Randomness.secure()))
    progress("compared", len(methods), len(methods))
    return Comparison(tuple(lines))


def _has_defaults(kind: type[TableMethod]) -> bool:
    return not any(item.required for item in kind.parameters())


def _try(table: Table, rules: Sequence[Rule], method: TableMethod, rng: Randomness) -> Compared:
    start = time.process_time()
    try:
        release = protect(table, rules, method, rng=rng)
        audit: Any = release.audit()
    except DiscreetError as error:
        return Compared(method.name, note=error.message)
    loss = release.loss
    return Compared(
        method.name,
        safe=audit.safe,
        unsafe=audit.unsafe,
        withheld=int(release.protected.withheld.sum()),
        changed=loss.changed,
        suppressed_value=loss.suppressed_value,
        distance=loss.distance,
        additive=loss.additivity_gap <= 1e-6 * max(1.0, float(abs(table.value).max())),
        seconds=round(time.process_time() - start, 2),
        note=f"{loss.merged} cells merged" if loss.merged else "",
    )
