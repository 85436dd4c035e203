"""Confidential columns with missing values: who has one is a secret unless the curator says otherwise.

Sums and means are about the records that have a value, and so are decisions on them: all but one
person is refused if that person has a value and answered if not. No decision that knows nothing of
gaps protects those values, as a group of a hundred may hold a single one. So the curator declares
that everybody may know who has a value, or the gateway does not open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from discreet.errors import InputError
from discreet.queries.guards._base import Protected

__all__ = ["require_known_gaps"]


def require_known_gaps(
    data: Protected, gaps: Iterable[str], declared: Collection[str], *, instead: str = ""
) -> None:
    """Refuse to open beside a confidential column with missing values that nobody declared."""
    data.relation.require(*declared)
    undeclared = sorted(n for n in gaps if n in data.confidential and n not in declared)
    if undeclared:
        names = ", ".join(undeclared)
        raise InputError(
            f"column {undeclared[0]!r} has missing values: what is answered about it would tell "
            "who has a value",
            code="undeclared-missing",
            column=undeclared[0],
            hint=f"declare missing: [{names}] if everybody may know who has one{instead}; or leave "
            "the column out, or answer under Perturbation",
        )
