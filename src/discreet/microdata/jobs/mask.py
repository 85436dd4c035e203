"""The job `mask`: masking methods, one after the other."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from discreet.data.engines.driver import Fetched, Outflow
from discreet.microdata.jobs._records import RecordsJob, masking_methods, require_all
from discreet.microdata.masking import Masking
from discreet.progress import Progress

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.release import MicrodataRelease
    from discreet.randomness import Randomness

__all__ = ["Mask"]


@dataclasses.dataclass(frozen=True)
class Mask(RecordsJob):
    """Mask records by one method after the other and release them.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(pd.DataFrame({"age": [20, 30]}), roles={"age": "quasi"})
    >>> Mask((dc.Rounding("age", 20),)).run(people).frame["age"].tolist()
    [20, 40]
    """

    name: ClassVar[str] = "mask"
    command: ClassVar[str] = "microdata mask"
    output: ClassVar[str] = "out/microdata"
    example: ClassVar[str] = (
        "discreet microdata mask people.csv -m 'microaggregation=age,salary k=5' -m "
        "'rank-swapping=income p=5' --role name=identifier -o out"
    )

    methods: tuple[Masking, ...] = masking_methods("masking methods, in order")

    def check(self, data: Dataset) -> None:
        """Check every method against the columns."""
        require_all(self.methods, data)

    def rehearse(self, data: Dataset) -> None:
        """Look at the records as well: there must be enough, and every category in its hierarchy."""
        super().rehearse(data)
        for method in self.methods:
            method.rehearse(data)
        from discreet.microdata.pipeline import changed_by, mask
        from discreet.microdata.telling import alike

        if alike(data, changed_by(self.methods)):
            mask(data, self.methods)  # only what comes out says whether one still tells another

    def fetches(self, data: Dataset) -> Outflow:
        """Return the records that methods read which no engine computes."""
        reads = [set(method.reads) for method in self.methods if not method.in_engine]
        if not reads:
            return Outflow((Fetched("aggregates", 1, 8),))
        found = [
            data.engine.room_needed(data.relation, sorted(names), rows=data.count)
            for names in reads
        ]
        rows, size = max(found, key=lambda one: one[1])
        return Outflow((Fetched("records", rows, size + 8 * rows),))

    def perform(
        self, data: Dataset, *, rng: Randomness | None, progress: Progress
    ) -> MicrodataRelease:
        """Mask the records."""
        from discreet.microdata.pipeline import mask

        release = mask(data, self.methods, rng=rng, progress=progress)
        return dataclasses.replace(release, format=self.format)
