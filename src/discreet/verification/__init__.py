"""Judging a written release from its bytes, by code that had no part in making it.

This package has readers and counts of its own. It stands below everything that makes releases, so
that it cannot import any of it.
"""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Finding": "discreet.verification.findings",
        "Held": "discreet.verification.held",
        "Verification": "discreet.verification.findings",
        "verify": "discreet.verification.folder",
    },
)
