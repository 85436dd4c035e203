"""What a policy file can ask for of microdata: one file per kind of release."""

from discreet.data.job import Job
from discreet.registry import Family

__all__ = ["FAMILY"]

FAMILY = Family("job", Job, __name__)
