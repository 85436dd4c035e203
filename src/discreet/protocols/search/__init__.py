"""Disguises for searches where the database does not help, with honest measures of what they hide."""

from discreet.protocols.search._base import Disguise
from discreet.registry import Family, lazy

FAMILY = Family("disguise", Disguise, __name__)

__getattr__, __all__ = lazy(
    __name__,
    {
        "DisguiseRisk": "discreet.protocols.search._base",
        "SearchRisk": "discreet.protocols.search._base",
        "Vocabulary": "discreet.protocols.search._base",
        "search_risk": "discreet.protocols.search._base",
    },
)
