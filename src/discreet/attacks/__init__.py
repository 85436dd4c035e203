"""Attacks to try against a release; each receives its target as an argument."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(__name__, {})
