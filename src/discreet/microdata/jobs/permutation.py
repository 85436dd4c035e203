"""A permuted release, as a policy file declares it."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from discreet.data.dataset import Dataset
from discreet.data.job import Job
from discreet.data.release import Release
from discreet.microdata.permutation.partitions import Demand, Partition
from discreet.progress import Progress, silent
from discreet.registry import parameter

__all__ = ["Permutation"]


@dataclasses.dataclass(frozen=True)
class Permutation(Job):
    """Permutes a sensitive column inside groups; queries on the release have sure bounds.

    Examples
    --------
    >>> Permutation(sensitive="salary", k=5, e=2000.0).k
    5
    """

    name: ClassVar[str] = "permutation"
    reference: ClassVar[str] = (
        "Zhang, Koudas, Srivastava and Yu: Aggregate query answering on anonymized tables, ICDE 2007"
    )

    sensitive: str = parameter(help="the column whose values change hands")
    k: int = parameter(5, help="distinct values in every group", low=2)
    e: float = parameter(0.0, help="least range of the values in a group", low=0)
    partition: Partition | None = parameter(None, help="how groups are made; weighted by default")
    cap: bool = parameter(False, help="let no value make up more than 1/k of a group")

    def __post_init__(self) -> None:
        super().__post_init__()
        Demand(self.k, self.e, self.cap)

    def check(self, dataset: Dataset) -> None:
        """Raise an InputError if there is no such column, or it cannot be released."""
        from discreet.microdata.permutation.permute import released_columns

        released_columns(dataset, self.sensitive)

    def run(self, dataset: Dataset, *, progress: Progress = silent) -> Release:
        """Group, permute and attack."""
        from discreet.microdata.permutation.permute import permute

        return permute(
            dataset,
            sensitive=self.sensitive,
            k=self.k,
            e=self.e,
            partition=self.partition or "weighted",
            cap=self.cap,
            progress=progress,
        )
