"""Tables: tabulate, mark what is sensitive, protect, audit, release."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(__name__, {})
