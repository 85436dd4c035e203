"""A job: what a policy file can ask for by declaration alone.

Each job package has a folder `jobs/` that is a folder of the family ``job``. A member names one
kind of release or gateway; its fields are what the policy file may say about it.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import TYPE_CHECKING, ClassVar

from discreet.progress import Progress, silent
from discreet.registry import Member

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.data.release import Release

__all__ = ["Job"]


@dataclasses.dataclass(frozen=True)
class Job(Member):
    """One kind of release, as the policy file declares it."""

    #: Where the policy file lists it: "releases" or "gateways".
    section: ClassVar[str] = "releases"

    def check(self, dataset: Dataset) -> None:
        """Raise an InputError if the declaration does not fit the data; releases nothing."""

    @abc.abstractmethod
    def run(self, dataset: Dataset, *, progress: Progress = silent) -> Release:
        """Do the work and return the release, not yet written."""
