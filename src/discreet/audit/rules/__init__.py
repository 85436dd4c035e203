"""Rules that say which cells are sensitive, one file each."""

from discreet.audit.rules._base import Rule, Verdict
from discreet.registry import Family

__all__ = ["FAMILY", "Rule", "Verdict"]

FAMILY = Family("rule", Rule, __name__)
