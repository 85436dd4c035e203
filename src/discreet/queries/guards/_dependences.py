"""Confidential columns of the protected data that follow from others along a straight line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from discreet.audit import dependences as audited
from discreet.audit.moments import Scale, Search
from discreet.errors import InputError
from discreet.queries.guards._base import Protected
from discreet.queries.guards._profiles import public_columns

__all__ = ["confidential_numbers", "dependences", "public_numbers", "searched"]


def searched(data: Protected, scale: Scale = "plain") -> Search:
    """Return a search among the columns of numbers, confidential and public."""
    names = [*confidential_numbers(data), *public_numbers(data)]
    return Search(data.relation, names, data.count, scale)


def confidential_numbers(data: Protected) -> list[str]:
    """Return the confidential columns of numbers."""
    return [
        n for n in data.relation.columns if n in data.confidential and data.catalog[n].is_number
    ]


def public_numbers(data: Protected) -> list[str]:
    """Return the public columns of numbers that somebody may ask about."""
    return [name for name in public_columns(data) if data.catalog[name].is_number]


def dependences(
    data: Protected, declared: Mapping[str, Sequence[str]] | None, search: Search
) -> list[audited.Dependence]:
    """Return the confidential columns that follow from others, found or declared."""
    names = confidential_numbers(data)
    for column, others in (declared or {}).items():
        for name in (column, *others):
            if name not in names:
                raise InputError(
                    f"{name!r} is not a confidential column of numbers",
                    code="unknown-column",
                    column=name,
                    hint="declare dependences between confidential columns of numbers",
                )
    return audited.dependences(data.relation, names, declared, search)
