"""Confidential columns of the protected data that follow from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from discreet.audit import dependences as audited
from discreet.errors import InputError
from discreet.queries.guards._base import Protected

__all__ = ["dependences"]


def dependences(
    data: Protected, declared: Mapping[str, Sequence[str]] | None = None
) -> list[audited.Dependence]:
    """Return the confidential columns that follow from others, found or declared."""
    names = [
        n for n in data.relation.columns if n in data.confidential and data.catalog[n].is_number
    ]
    for column, others in (declared or {}).items():
        for name in (column, *others):
            if name not in names:
                raise InputError(
                    f"{name!r} is not a confidential column of numbers",
                    code="unknown-column",
                    column=name,
                    hint="declare dependences between confidential columns of numbers",
                )
    return audited.dependences(data.relation, names, declared)
