"""Schemes of private retrieval: who is asked what, and who must not collude."""

from discreet.protocols.retrieval.schemes._base import Scheme
from discreet.registry import Family

__all__ = ["FAMILY"]

FAMILY = Family("scheme", Scheme, __name__)
