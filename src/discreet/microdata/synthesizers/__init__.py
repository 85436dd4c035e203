"""Synthesizers: records drawn from a model of the file instead of the file's own records."""

from discreet.microdata.synthesizers._base import Synthesizer
from discreet.registry import Family

__all__ = ["FAMILY", "Synthesizer"]

FAMILY = Family("synthesizer", Synthesizer, __name__)
