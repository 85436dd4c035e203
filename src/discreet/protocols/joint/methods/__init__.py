"""Protocols of owners that compute together: one file each."""

from discreet.protocols.joint.protocol import Protocol
from discreet.registry import Family

__all__ = ["FAMILY"]

FAMILY = Family("protocol", Protocol, __name__)
