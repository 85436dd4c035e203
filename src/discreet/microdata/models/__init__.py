"""Privacy models: promises about equivalence classes that can be checked and enforced."""

from discreet.microdata.models._base import Model
from discreet.registry import Family

__all__ = ["FAMILY", "Model"]

FAMILY = Family("model", Model, __name__)
