"""Replicated secret sharing among three nodes over the integers modulo 2^64 (Araki et al. 2016)."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "BitShares": "discreet.protocols.arithmetic.shares",
        "Node": "discreet.protocols.arithmetic.node",
        "Ring": "discreet.protocols.arithmetic.node",
        "Shares": "discreet.protocols.arithmetic.shares",
        "decode": "discreet.protocols.arithmetic.fixed_point",
        "encode": "discreet.protocols.arithmetic.fixed_point",
        "less": "discreet.protocols.arithmetic.comparison",
        "negative": "discreet.protocols.arithmetic.comparison",
        "numbers": "discreet.protocols.arithmetic.comparison",
        "rehearse": "discreet.protocols.arithmetic.rehearsal",
        "split": "discreet.protocols.arithmetic.shares",
    },
)
