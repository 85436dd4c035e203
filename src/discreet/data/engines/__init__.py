"""Engines: where the records live and the heavy work is done. Only this package imports drivers."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Engine": "discreet.data.engines.base",
        "Relation": "discreet.data.engines.base",
        "connect": "discreet.data.engines.base",
    },
)
