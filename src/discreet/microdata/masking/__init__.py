"""Masking methods: one file each, usable alone, in a pipeline, from a command or a policy."""

from discreet.microdata.masking._base import Masking
from discreet.registry import Family

__all__ = ["FAMILY", "Masking"]

FAMILY = Family("masking", Masking, __name__)
