"""Metrics of information loss that a search can minimise, one file each."""

from discreet.microdata.search.metrics._base import Metric
from discreet.registry import Family

__all__ = ["FAMILY", "Metric"]

FAMILY = Family("metric", Metric, __name__)
