"""Messages have the length that the shape of a block demands, or are refused."""

from __future__ import annotations

from discreet.errors import InputError

__all__ = ["require_length"]


def require_length(found: bytes, wanted: int, what: str) -> None:
    """Refuse a message of another length than the shape of the block demands."""
    if len(found) != wanted:
        raise InputError(
            f"{what} has {len(found)} bytes where this table needs {wanted}",
            code="retrieval-length",
            hint="ask the server for the table's parameters again",
        )
