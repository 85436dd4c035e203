"""A service: what a policy file opens and keeps open, such as a gateway that answers questions.

Nothing is written by it, so it is not a job. Each package that serves has a folder `services/`
that is a folder of the family ``service``.
"""

from __future__ import annotations

import abc
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.registry import Member

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset

__all__ = ["Service"]


@dataclasses.dataclass(frozen=True)
class Service(Member):
    """Something that answers for as long as it is open, as the policy file declares it."""

    #: Where the policy file lists it.
    section: ClassVar[str] = "gateways"

    def check(self, dataset: Dataset) -> None:
        """Raise an InputError if the declaration does not fit the data; opens nothing."""

    @abc.abstractmethod
    def open(self, dataset: Dataset, folder: str | Path = ".") -> Any:
        """Return what answers; relative paths are below `folder`. Any: each service has its own."""
