"""The job `permutation`: a sensitive column changes hands inside groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from discreet.data.job import ReleaseJob, Shown
from discreet.microdata.jobs._permuted import stated_roles
from discreet.microdata.permutation.partitions import Demand, Partition
from discreet.progress import Progress
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.permutation.release import Permuted
    from discreet.randomness import Randomness

__all__ = ["Permutation"]


@dataclasses.dataclass(frozen=True)
class Permutation(ReleaseJob):
    """Permute a sensitive column inside groups; queries on the release have sure bounds.

    Examples
    --------
    >>> Permutation(sensitive="salary", k=5, e=2000.0).k
    5
    """

    name: ClassVar[str] = "permutation"
    reference: ClassVar[str] = (
        "Zhang, Koudas, Srivastava and Yu: Aggregate query answering on anonymized tables, ICDE 2007"
    )
    command: ClassVar[str] = "permute file"
    is_default: ClassVar[bool] = True
    example: ClassVar[str] = "discreet permute people.csv -s salary -k 5 -e 2000 -o out"
    note: ClassVar[str] = 'wrote {output}; ask it: discreet ask --release {output} "SELECT …"'

    sensitive: str = parameter(help="the column whose values change hands", option="--sensitive/-s")
    k: int = parameter(5, help="distinct values in every group", low=2)
    e: float = parameter(0.0, help="least range of the values in a group", low=0)
    partition: Partition | None = parameter(
        None,
        help="how groups are made: weighted (the default), min-sum, min-max, min-max-exact, local, "
        "sequential; with parameters: 'local columns=age,region'",
        option="--partition/-p",
    )
    cap: bool = parameter(False, help="let no value make up more than 1/k of a group")
    quasi: tuple[str, ...] = parameter(
        (), help="columns an intruder may know, with commas; guessed if left out"
    )
    identifiers: tuple[str, ...] = parameter(
        (), help="columns that name people, with commas; never released"
    )
    store: str | None = parameter(
        None, help="also write both tables into the file's engine, with this prefix"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        Demand(self.k, self.e, self.cap)

    def roles(self) -> dict[str, str]:
        """Return the roles that follow from the columns named."""
        return stated_roles(self.sensitive, self.quasi, self.identifiers)

    def check(self, data: Dataset) -> None:
        """Raise an error if there is no such column."""
        from discreet.microdata.permutation.permute import released_columns

        released_columns(data, self.sensitive)

    def rehearse(self, data: Dataset) -> None:
        """Group the records; raise an error if that is impossible, or another column tells too much."""
        from discreet.microdata.permutation.permute import require_permutable

        super().rehearse(data)
        require_permutable(
            data,
            sensitive=self.sensitive,
            k=self.k,
            e=self.e,
            partition=self.partition or "weighted",
            cap=self.cap,
        )

    def perform(self, data: Dataset, *, rng: Randomness | None, progress: Progress) -> Permuted:
        """Group, permute and attack."""
        from discreet.microdata.permutation.permute import permute

        return permute(
            data,
            sensitive=self.sensitive,
            k=self.k,
            e=self.e,
            partition=self.partition or "weighted",
            cap=self.cap,
            rng=rng,
            progress=progress,
            **self.memory,
        )

    def finish(self, result: Permuted) -> list[str]:
        """Write the tables into the engine."""
        return [] if self.store is None else [f"wrote {' and '.join(result.store(self.store))}"]

    def shown(self, result: Permuted) -> Iterator[Shown]:
        """Give what was reached, and the risk."""
        yield None, str(result)
