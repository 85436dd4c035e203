"""A guard on the command line, written as a policy writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.errors import InputError

if TYPE_CHECKING:
    from discreet.queries.guards import Guard

__all__ = ["read_guard"]


def read_guard(text: str) -> Guard:
    """Return the guard that a text describes.

    >>> read_guard("restriction: {k: 3}").k
    3
    """
    from discreet.app.policy.document import parse
    from discreet.queries.guards import Guard
    from discreet.registry import build

    try:
        guard: Guard = build(Guard, parse(text, file="--guard").data)
    except InputError as error:
        if not error.code.startswith("policy-"):
            raise
        raise InputError(
            f"the guard cannot be read: {error.message}",
            code="malformed-guard",
            hint="write it as in a policy: --guard 'restriction: {k: 3}'",
        ) from None
    return guard
