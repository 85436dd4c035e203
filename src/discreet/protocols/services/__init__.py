"""What a policy file can open for users who look things up."""

from discreet.data.service import Service
from discreet.registry import Family

__all__ = ["FAMILY"]

FAMILY = Family("service", Service, __name__)
