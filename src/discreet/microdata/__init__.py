"""Microdata: masking, privacy models, anonymisation, risk and utility."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "permute": "discreet.microdata.permutation.permute",
    },
)
