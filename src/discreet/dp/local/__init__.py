"""Local differential privacy: respondents randomise their own answers before they leave.

Nobody, the collector included, sees a true answer; the collector estimates shares or means from
many randomised reports. Every coin is an exact integer comparison on the cryptographic source: a
probability is a whole number over 2**62, rounded to the private side, and the stated epsilon is
computed from the probabilities that are really drawn.
"""

from discreet.dp.local._base import Estimate, LocalMechanism
from discreet.registry import Family

__all__ = ["FAMILY", "Estimate", "LocalMechanism"]

FAMILY = Family("local", LocalMechanism, __name__)
