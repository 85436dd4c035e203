"""Methods that make a file keep its models: generalisation, Mondrian, local suppression and more."""

from discreet.microdata.methods._base import Anonymization
from discreet.registry import Family

__all__ = ["FAMILY", "Anonymization"]

FAMILY = Family("anonymization", Anonymization, __name__)
