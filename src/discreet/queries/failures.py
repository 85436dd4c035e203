"""What an asker may know of an engine's failure: nothing that depends on the data."""

from __future__ import annotations

from discreet.data.engines.faults import OUTSIDE
from discreet.errors import EngineError, RefusedError
from discreet.queries.watching import changed_records

__all__ = ["tellable"]

#: What whoever asks is told of failures that have nothing to do with the data or the question.
_OUTSIDE = {
    "connection-lost": (
        "the connection to the records was lost",
        "ask again in a while; a question that was charged is not charged again",
    ),
    "no-right": ("the gateway may no longer read the records", "tell the curator"),
    "changed-table": ("the table of the records has changed its columns", "tell the curator"),
}


def tellable(error: EngineError) -> EngineError | RefusedError:
    """Return what whoever asks may know of a failure of the engine."""
    if error.code.startswith(("ledger", "interrupted")) or error.code == "busy":
        return error
    if error.code == "data-changed":
        return changed_records()
    if error.code in OUTSIDE:
        reason, hint = _OUTSIDE.get(
            error.code, ("the engine has no room to compute this", "tell the curator")
        )
        return EngineError(reason, code=error.code, hint=hint)
    # What failed, and where, would tell something of the data: every failure is the same.
    return RefusedError(
        "the question could not be computed",
        code="not-computable",
        hint="simplify the expressions",
    )
