"""Who is behind the records of a table, for methods that promise for persons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.errors import InputError

if TYPE_CHECKING:
    from discreet.tables.tabulation import Source

__all__ = ["require_records", "require_unweighted"]


def require_records(source: Source | None, most: int, method: str) -> None:
    """Refuse contributors with more records than the promise is made for."""
    if source is None or source.unit is None:
        return
    found = source.dataset.frequencies([source.unit])
    if max(found.column("count").to_pylist(), default=0) > most:
        raise InputError(
            f"{method} promises for at most {most} records per contributor, and some have more",
            code="too-many-records",
            hint="give records=, the most that one contributor may have",
            parameter="records",
        )


def require_unweighted(source: Source | None, method: str) -> None:
    """Refuse weights."""
    if source is not None and source.weight is not None:
        raise InputError(
            f"{method} cannot promise for weighted records, whose influence is not bounded",
            code="unsupported-weights",
            hint="tabulate without the weight",
            column=source.weight,
        )
