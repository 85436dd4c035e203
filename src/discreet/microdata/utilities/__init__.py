"""Utility measures: one file each; what the release is still good for."""

from discreet.microdata.utilities._base import UtilityMeasure
from discreet.registry import Family

__all__ = ["FAMILY", "UtilityMeasure"]

FAMILY = Family("utility", UtilityMeasure, __name__)
