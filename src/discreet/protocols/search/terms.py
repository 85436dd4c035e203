"""What can be searched for."""

from __future__ import annotations

import unicodedata

from discreet.errors import InputError

__all__ = ["require_text"]

#: Control characters and halves of characters.
_UNREAD = ("Cc", "Cs")


def require_text(term: object) -> str:
    r"""Return a term; refuse what is none, and characters that no engine reads.

    >>> require_text("flu\0")
    Traceback (most recent call last):
    discreet.errors.InputError: a search is a text without control characters ...
    """
    if not isinstance(term, str) or not (
        term.isprintable()
        or all(c.isspace() or unicodedata.category(c) not in _UNREAD for c in term)
    ):
        raise InputError(
            "a search is a text without control characters",
            code="not-a-term",
            hint="write the words to search for, such as flu",
        )
    return term
