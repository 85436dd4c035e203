"""What can be asked of queries."""

from discreet.data.job import Job
from discreet.registry import Family

__all__ = ["FAMILY"]

FAMILY = Family("job", Job, __name__)
