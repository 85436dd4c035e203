"""Users look rows up by key while servers learn nothing but the size of the table."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(__name__, {})
