"""The job `mask`: masking methods, one after the other."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from discreet.data.job import Job
from discreet.microdata.masking import Masking
from discreet.progress import Progress, silent
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.release import MicrodataRelease

__all__ = ["Mask"]


@dataclasses.dataclass(frozen=True)
class Mask(Job):
    """Release records masked by one method after the other.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(pd.DataFrame({"age": [20, 30]}), roles={"age": "quasi"})
    >>> Mask((dc.Rounding("age", 20),)).run(people).frame["age"].tolist()
    [20, 40]
    """

    name: ClassVar[str] = "mask"

    methods: tuple[Masking, ...] = parameter(help="masking methods, in order")
    format: str | None = parameter(
        None, help="format of the file", choices=("csv", "parquet", "arrow")
    )

    def check(self, dataset: Dataset) -> None:
        """Check every method against the columns."""
        for method in self.methods:
            method.require(dataset)

    def run(self, dataset: Dataset, *, progress: Progress = silent) -> MicrodataRelease:
        """Mask the records."""
        from discreet.microdata.pipeline import mask

        release = mask(dataset, self.methods, progress=progress)
        return dataclasses.replace(release, format=self.format)
