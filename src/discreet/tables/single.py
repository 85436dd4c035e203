"""Protecting one table: mark what is sensitive, hide it, refuse what stays unsafe."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.audit.rules import Rule
from discreet.data.table import Status, Table
from discreet.errors import InfeasibleError, InputError
from discreet.progress import Progress
from discreet.randomness import Randomness
from discreet.tables.methods import TableMethod
from discreet.tables.methods.suppression import Suppression
from discreet.tables.release import TableRelease

__all__ = ["protect_one", "require_protectable", "require_safe"]


def protect_one(
    table: Table,
    rules: Sequence[Rule],
    method: TableMethod,
    rng: Randomness,
    progress: Progress,
    withheld: npt.NDArray[np.bool_] | None = None,
) -> TableRelease:
    """Mark the sensitive cells of one table and hide them, `withheld` ones in any case."""
    # Whether there are records at all is one of the things that noise hides.
    if not len(table) and method.acting.risk != "noise":
        raise InputError("the table has no cells", code="empty-table")
    table.require_additive()
    marked = method.prepare(table, rules)
    require_protectable(marked, method)
    if withheld is not None and isinstance(method, Suppression):
        protected = method.hide(marked, rng=rng, progress=progress, withheld=withheld)
    else:
        protected = method.hide(marked, rng=rng, progress=progress)
    return TableRelease(
        protected=protected,
        method=method,
        rules=tuple(rules),
        randomness=rng.kind if method.acting.is_random else "none",
        before=max(len(table), len(protected.table)),
    )


def require_protectable(table: Table, method: TableMethod) -> None:
    """Refuse a table whose grand total itself is sensitive: no cell can hide it."""
    if table.status is None or method.acting.risk != "intervals":
        return
    top = np.flatnonzero((table.codes == 0).all(axis=1))
    if top.size and table.status[top[0]] == Status.PRIMARY:
        name = " × ".join(table.labels(int(top[0])))
        raise InfeasibleError(
            f"the grand total {name} is itself sensitive, so that nothing published below it is safe",
            code="sensitive-grand-total",
            hint="tabulate more records, relax the rule, or use a method that changes values "
            "(controlled-tabular-adjustment, dp-noise)",
            cells=[name],
        )


def require_safe(release: TableRelease) -> None:
    """Raise if a table that hides cells does not keep them hidden."""
    if not release.withholds:
        return
    audit = release.audit()
    if audit.safe:
        return
    frame = audit.intervals
    unsafe = frame[~frame["safe"]][list(release.table.by)].values.tolist()
    names = [" × ".join(map(str, codes)) for codes in unsafe[:5]]
    raise InfeasibleError(
        f"{audit.unsafe} sensitive cells cannot be protected by {release.method.name}: "
        + "; ".join(names),
        code="unsafe-release",
        hint="merge categories (recoding), relax what may not be suppressed, or change values",
        cells=names,
    )
