"""Published tables, as questions that everybody was answered."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from discreet.audit.atoms import incidence
from discreet.data.engines.cell_codes import ancestors
from discreet.data.engines.results import code_text
from discreet.data.facts import LinearFacts
from discreet.data.table import Table
from discreet.errors import RefusedError
from discreet.queries.guards._profiles import Profiles

__all__ = ["told_sets"]

Ids = npt.NDArray[np.int64]


def told_sets(
    facts: LinearFacts, chosen: npt.NDArray[np.bool_], profiles: Profiles
) -> Iterator[Ids]:
    """Give the profiles in each chosen cell of a table, larger cells first."""
    if facts.weight is not None:
        raise _unjudged("is weighted")
    unknown = sorted(set(facts.by) - profiles.public)
    if unknown:
        raise _unjudged(f"is by {unknown[0]!r}, which is not public here")
    places = []
    for dimension in facts.dimensions:
        missing = dimension.index.get(facts.missing or "", -1)
        index = {None: missing}
        values = profiles.values(dimension.name)
        for value in set(values):
            if value is not None:
                index[value] = dimension.index.get(code_text(value), -2)
        codes = np.array([index[value] for value in values], dtype=np.int64)
        if (codes == -2).any():
            raise _unjudged(f"has other codes of {dimension.name!r} than the records")
        places.append(codes)
    stacked = np.stack(places, axis=1)
    inside = (stacked >= 0).all(axis=1)
    combinations, part = np.unique(stacked[inside], axis=0, return_inverse=True)
    order = np.argsort(part.ravel(), kind="stable")
    members = np.flatnonzero(inside)[order]
    start = np.searchsorted(part.ravel()[order], np.arange(len(combinations) + 1))
    dimensions = facts.dimensions
    keys, which = incidence(
        combinations, [ancestors(d) for d in dimensions], [len(d.codes) for d in dimensions]
    )
    cells = Table(dimensions, facts.codes.astype(np.int32), facts.lower).find(keys)
    by_cell: dict[int, list[Ids]] = {}
    for cell, combination in zip(cells.tolist(), which.tolist(), strict=True):
        if cell >= 0 and chosen[cell]:
            members_of = members[start[combination] : start[combination + 1]]
            by_cell.setdefault(cell, []).append(members_of)
    sets = [np.sort(np.concatenate(several)) for several in by_cell.values()]
    yield from sorted(sets, key=lambda one: -int(profiles.counts[one].sum()))


def _unjudged(why: str) -> RefusedError:
    return RefusedError(
        f"a table that the ledger remembers {why}: answers cannot be judged together with it",
        code="unjudged-table",
        hint="open the gateway with the columns of the table as quasi-identifiers, or answer under "
        "Perturbation",
    )
