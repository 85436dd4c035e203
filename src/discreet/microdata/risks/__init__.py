"""Risk measures: one file each; what an intruder could do, and how often it would succeed."""

from discreet.microdata.risks._base import RiskMeasure
from discreet.registry import Family

__all__ = ["FAMILY", "RiskMeasure"]

FAMILY = Family("risk", RiskMeasure, __name__)
