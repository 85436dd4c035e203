"""Columns of one relation over several databases, none of which can put them together."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "FragmentAnswer": "discreet.protocols.fragments.asking",
        "Fragments": "discreet.protocols.fragments.asking",
        "fragment": "discreet.protocols.fragments.splitting",
    },
)
