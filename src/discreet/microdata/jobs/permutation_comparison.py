"""The job `permutation-comparison`: generalisation and permutation, as the paper compares them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.data.job import ReportJob, Shown
from discreet.microdata.jobs._permuted import stated_roles
from discreet.progress import Progress
from discreet.registry import parameter
from discreet.report import Report, Rows

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.data.source import Source
    from discreet.microdata.permutation.comparison import Comparison, Sweep
    from discreet.randomness import Randomness

__all__ = ["PermutationComparison", "PermutationComparisonJob"]


@dataclasses.dataclass(frozen=True)
class PermutationComparison(Report):
    """One comparison for each least range, and how errors change with the correlation."""

    comparisons: tuple[Comparison, ...]
    sweep: Sweep | None

    def rows(self) -> Rows:
        """Return one line per least range, method and kind of question."""
        header, _ = self.comparisons[0].rows()
        return ("e", *header), [
            (one.e, *line) for one in self.comparisons for line in one.rows()[1]
        ]


@dataclasses.dataclass(frozen=True)
class PermutationComparisonJob(ReportJob):
    """Compare generalisation with permutation under every partition, as the paper does.

    Gives the relative error of AVG for random selections and for ranges, and how it changes with
    the correlation of the two columns. People are generated where no file is given.

    Examples
    --------
    >>> PermutationComparisonJob().sensitive
    'loss'
    """

    name: ClassVar[str] = "permutation-comparison"
    command: ClassVar[str] = "permute compare"
    needs_source: ClassVar[bool] = False
    suffix: ClassVar[str] = ".html"
    example: ClassVar[str] = "discreet permute compare -o compare.html"

    sensitive: str = parameter("loss", help="the column to protect", option="--sensitive/-s")
    column: str = parameter(
        "age", help="the column that range queries are about", option="--range/-r"
    )
    k: int = parameter(5, help="distinct values in every group", low=2)
    e: tuple[float, ...] = parameter((0.0,), help="least range in a group; one or several")
    queries: int = parameter(300, help="random queries of each size", low=1)
    sweep: bool = parameter(True, help="also vary the correlation, on generated people")
    quasi: tuple[str, ...] = parameter(
        (), help="columns an intruder may know, with commas; guessed if left out"
    )
    anonymizer: bool = parameter(
        False, help="generalise as `anonymize` would; else the range column stays finest"
    )

    def roles(self) -> dict[str, str]:
        """Return the roles that follow from the columns named."""
        return stated_roles(self.sensitive, self.quasi)

    def open(self, data: Source | Any) -> Dataset:
        """Return the records, or generated people where there are none. Any: what `read` takes."""
        opened: Dataset = _generated() if data is None else super().open(data)
        return opened

    def perform(
        self, data: Dataset, *, rng: Randomness | None, progress: Progress
    ) -> PermutationComparison:
        """Ask every release the same questions."""
        from discreet.microdata.permutation import comparison as paper

        found = tuple(
            paper.compare(
                data, sensitive=self.sensitive, column=self.column, k=self.k, e=least,
                queries=self.queries, generalization="anonymizer" if self.anonymizer else "finest",
                rng=rng, progress=progress,
            )
            for least in self.e
        )  # fmt: skip
        swept = paper.sweep(k=self.k, rng=rng, progress=progress) if self.sweep else None
        return PermutationComparison(found, swept)

    def write(self, result: PermutationComparison, place: str | Path) -> None:
        """Write tables and pictures as one HTML page."""
        from discreet.microdata.permutation.comparison import write_page

        write_page(place, result.comparisons, result.sweep)

    def shown(self, result: PermutationComparison) -> Iterator[Shown]:
        """Give one list per least range, and one of the correlation."""
        for one in result.comparisons:
            yield f"k = {one.k}, e = {one.e:g}", one
        if result.sweep is not None:
            yield "Range queries as the correlation weakens", result.sweep


def _generated(records: int = 600) -> Dataset:
    """Return people whose loss follows their age loosely."""
    import pyarrow as pa

    from discreet.data.dataset import read
    from discreet.microdata.permutation.comparison import generated
    from discreet.randomness import Randomness

    age, loss = generated(records, 300.0, rng=Randomness.secure())
    roles = {"age": "quasi", "loss": "confidential"}
    table = pa.table({"age": age.astype("int64"), "loss": loss.astype("int64")})
    return read(table, roles=roles, name="people")
