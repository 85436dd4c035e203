"""Guards decide how the gateway answers: one file each."""

from discreet.queries.guards._base import Guard
from discreet.registry import Family

__all__ = ["FAMILY", "Guard"]

FAMILY = Family("guard", Guard, __name__)
