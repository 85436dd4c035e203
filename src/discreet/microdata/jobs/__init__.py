"""Mask or anonymise records, measure risk and utility, explore methods."""

from discreet.data.job import Job
from discreet.registry import Family

__all__ = ["FAMILY"]

FAMILY = Family("job", Job, __name__)
