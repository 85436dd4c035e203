"""Differential privacy through OpenDP, accountants, and local collection."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(__name__, {})
