"""Queries: SQL in, protected answers out."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(__name__, {})
