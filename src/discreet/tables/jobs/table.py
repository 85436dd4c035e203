"""The job `table`: a table, or several linked ones, protected."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from discreet.audit.rules import Rule
from discreet.data.dataset import Dataset
from discreet.data.job import ReleaseJob, Shown
from discreet.data.table import Dimension, Table
from discreet.dp.grant import charge
from discreet.errors import InputError
from discreet.progress import Progress
from discreet.registry import parameter
from discreet.report import Report
from discreet.tables.jobs._tables import Tables, TablesJob
from discreet.tables.large import LargeRelease, LargeTabulation, tabulate_large
from discreet.tables.methods import TableMethod
from discreet.tables.methods._cube import LARGEST, combinations
from discreet.tables.methods.top_down import TopDown
from discreet.tables.protection import protect, require_rules
from discreet.tables.release import LinkedRelease, TableRelease
from discreet.tables.tabulation import Tabulation, declared_hierarchies, number_alike, uncounted

if TYPE_CHECKING:
    from discreet.randomness import Randomness

__all__ = ["TableJob"]

_STATISTICS = ("count", "sum", "mean")


@dataclasses.dataclass(frozen=True)
class TableJob(TablesJob, ReleaseJob):
    """Mark what is sensitive in a table, protect it, audit the result and release it.

    Examples
    --------
    >>> from discreet.audit.rules.minimum_frequency import MinimumFrequency
    >>> TableJob(by=("sector", "region"), rules=(MinimumFrequency(3),)).by
    ('sector', 'region')
    """

    name: ClassVar[str] = "table"
    reference: ClassVar[str] = "Hundepool et al. (2012), Statistical Disclosure Control"
    command: ClassVar[str] = "table protect"
    is_default: ClassVar[bool] = True
    example: ClassVar[str] = (
        "discreet table people.parquet --by sector,region --measure salary --rule p-percent=10 "
        "--method suppression -o out"
    )

    rules: tuple[Rule, ...] = parameter(
        (), help="what is sensitive: p-percent=10, minimum-frequency=3, …", option="--rule"
    )
    method: TableMethod | None = parameter(
        None,
        help="how it is protected: suppression (the default), controlled-rounding=5, 'cell-key "
        "deviation=4' …",
    )
    also: tuple[str, ...] = parameter(
        (),
        help="further statistics of the same records, protected together: count, sum, mean",
    )
    curator: str | None = parameter(
        None,
        help="HTML page with attacks, intervals and exact loss: not for publication",
        file="write",
    )
    like: str | None = parameter(
        None,
        help="earlier release whose pattern is preferred: its number in the ledger, or its snapshot",
    )
    patience: float = parameter(
        10.0,
        help="how many times the table's own time judging it with earlier releases may take, and at "
        "least a minute; then it is refused",
        above=0,
    )
    explain: bool = parameter(False, help="show the attack each sensitive cell would enable")
    unsafe: bool = parameter(
        False, help="write the release although it is not safe; its pages then say so"
    )

    large: bool = parameter(
        False, help="too many cells for memory: count and write in blocks (top-down alone)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.large and (
            self.is_ready_made
            or len(self.crossed) != 1
            or any((self.measure, self.also, self.rules, self.apriori, self.curator, self.explain))
        ):
            raise InputError(
                "a large table counts the records of one list of attributes, without rules",
                code="large-table",
                hint="leave out measure, also, rules, apriori, curator and explain",
                parameter="large",
            )
        if not self.is_ready_made and self.apriori is None:
            require_rules(self.rules, self.method)
        if self.also:
            self._require_statistics()

    def _require_statistics(self) -> None:
        unknown = [word for word in self.also if word not in _STATISTICS]
        if unknown:
            raise InputError(
                f"there is no statistic {unknown[0]!r}",
                code="unknown-statistic",
                hint="choose among " + ", ".join(_STATISTICS),
                parameter="also",
            )
        if self.is_ready_made or self.apriori is not None or self.measure is None:
            raise InputError(
                "further statistics are made from records with a measure",
                code="statistics-without-measure",
                hint="give measure, and the records instead of ready-made cells",
                parameter="also",
            )

    def explanations(self, data: Tables) -> Sequence[Report]:
        """Return the attack that each sensitive cell enables where it is published as it is."""
        from discreet.audit.exposure import expose
        from discreet.audit.sensitivity import mark

        if not self.explain:
            return ()
        tables, _ = self.with_apriori(self.made(data))
        return [expose(mark(table, self.rules)) for table in tables]

    def charges(self, data: Tables) -> Mapping[str, int]:
        """Return the events of a method with noise."""
        if self.method is None or self.method.acting.risk != "noise":
            return {}
        if isinstance(self.method, TopDown) and (self.large or self._is_large(data)):
            assert isinstance(data, Dataset)
            return self._large(data).events(self.method)
        if isinstance(self.method, TopDown) and isinstance(data, Dataset):
            # What a release spends follows from its plan; counting would look at the records.
            by = self.crossed[0]
            asked = uncounted(data, by, self.measure, self.statistic, weight=self.weight)
            return self.method.events(asked)
        return self.method.acting.events(self.with_apriori(self.made(data))[0][0])

    def perform(
        self, data: Tables, *, rng: Randomness | None, progress: Progress
    ) -> TableRelease | LinkedRelease | LargeRelease:
        """Tabulate, protect and audit."""
        if self.large or self._is_large(data):
            assert isinstance(data, Dataset)
            assert self.method is not None  # rules or a method that needs none were asked for
            large = self._large(data)
            return large.protect(method=self.method, rng=rng, progress=progress, **self.memory)
        charged = self._charged(data)
        tables, never = self.with_apriori(self.made(data))
        if self.also:
            tables = self._with_statistics(tables, data)
        method = _keeping(self.method, never)
        target: Table | Sequence[Table] = tables[0] if len(tables) == 1 else tables
        return protect(
            target, self.rules, method, rng=rng, unsafe=self.unsafe, like=self.like,
            patience=self.patience, charged=charged, progress=progress, **self.memory,
        )  # fmt: skip

    def _charged(self, data: Tables) -> int | None:
        """Charge a consistent table before its records are counted; return the entry's number.

        Counting refuses records with codes that are not declared: free, the refusal would say as
        often as one likes whether there are some.
        """
        if not isinstance(data, Dataset) or not isinstance(self.method, TopDown):
            return None
        asked = [
            uncounted(data, by, self.measure, self.statistic, weight=self.weight)
            for by in self.crossed
        ]
        events = [self.method.events(table) for table in asked]
        if self.ledger is None or len(asked) > 1:
            return None
        from discreet.ledger.memory import Memory
        from discreet.tables.remembering import titled

        with Memory(self.ledger, data, snapshot=self.snapshot) as memory:
            what = titled(asked, self.method)
            return charge(memory.ledger, memory.dataset.name, events[0], what=what)

    def _large(self, data: Dataset) -> LargeTabulation:
        return tabulate_large(
            data, self.crossed[0], unit=self.unit, weight=self.weight, missing=self.missing
        )

    def _is_large(self, data: Tables) -> bool:
        """Whether a consistent table has too many cells for one in memory; counts nothing."""
        if not isinstance(data, Dataset) or not isinstance(self.method, TopDown):
            return False
        if len(self.crossed) != 1 or any((self.measure, self.also, self.rules, self.apriori)):
            return False
        trees = [declared_hierarchies(data, name, "Total") for name in self.crossed[0]]
        if not all(trees):
            return False  # refused, with the reason
        dimensions = [
            Dimension.of(name, several)
            for name, several in zip(self.crossed[0], trees, strict=True)
        ]
        return combinations(dimensions) > LARGEST

    def _with_statistics(self, tables: Sequence[Table], data: Tables) -> tuple[Table, ...]:
        """Return the tables with those of further statistics, contributors numbered alike."""
        several = [*tables]
        for word in dict.fromkeys(self.also):
            if word != self.statistic:
                measure = None if word == "count" else self.measure
                other = dataclasses.replace(
                    self, measure=measure, statistic="mean" if word == "mean" else "sum", also=()
                )
                several += other.made(data)
        made = [table for table in several if isinstance(table, Tabulation)]
        return number_alike(made) if len(made) == len(several) > 1 else tuple(several)

    def finish(self, result: TableRelease | LinkedRelease | LargeRelease) -> list[str]:
        """Write the curator's page."""
        if self.curator is None or isinstance(result, LargeRelease):
            return []
        whole = result.joint if isinstance(result, LinkedRelease) else result
        whole.write_curator(self.curator)
        return [f"wrote {self.curator}, for the curator only"]

    def shown(self, result: TableRelease | LinkedRelease | LargeRelease) -> Iterator[Shown]:
        """Give the published cells, and the verdict with its counts."""
        from discreet.tables.layout import legend, published_text

        if isinstance(result, LargeRelease):
            cells = f"{result.estimate.places.size:,}"
            yield None, (("", ""), [("verdict", result.verdict), ("cells", cells)])
            return
        for part in result.releases if isinstance(result, LinkedRelease) else (result,):
            yield None, f"{published_text(part)}\n{legend(part)}\n"
        counts = [
            (name, getattr(result.loss, name)) for name in ("cells", "sensitive", "secondaries")
        ]
        yield None, (("", ""), [("verdict", result.verdict), *counts])


def _keeping(method: TableMethod | None, never: tuple[str, ...]) -> TableMethod | None:
    """Return the method with cells that it must leave published."""
    from discreet.tables.methods.suppression import Suppression

    if not never:
        return method
    method = Suppression() if method is None else method
    if not hasattr(method, "never"):
        raise InputError(
            f"the a-priori file keeps cells published (p), which {method.name} cannot",
            code="apriori-never",
            hint="use the method suppression, or leave those lines out",
            parameter="apriori",
        )
    return dataclasses.replace(method, never=(*method.never, *never))  # type: ignore[call-arg]  # it has the field
