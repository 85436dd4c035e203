"""What has been released and spent: durable, recorded before anything leaves."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(__name__, {})
