"""Partitions: how the records are grouped before values are permuted inside each group."""

from discreet.microdata.permutation.partitions._base import Demand, Partition, Problem
from discreet.registry import Family

__all__ = ["FAMILY", "Demand", "Partition", "Problem"]

FAMILY = Family("partition", Partition, __name__)
