"""Consistent tables of many places: counted in the engine, estimated by level, streamed to Parquet.

No table of all cells is ever built: the engine counts the single cells that are not empty, the levels
are arrays, and the published cells go to the file in blocks.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.audit.rules import Rule
from discreet.data.dataset import Dataset
from discreet.data.hierarchy_files import hierarchy_file
from discreet.data.release import Evidence, Release, Standing
from discreet.data.table import Dimension, Floats, Ints, Table
from discreet.dp.grant import charge
from discreet.dp.hierarchical.budget import Budget
from discreet.errors import InputError
from discreet.page import Page
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.report import Report, plain
from discreet.tables.measured_file import MEASUREMENTS, write_measurements
from discreet.tables.methods import TableMethod
from discreet.tables.methods._contributors import require_records, require_unweighted
from discreet.tables.methods._cube import LARGEST, combinations
from discreet.tables.methods._places import Places
from discreet.tables.methods._promised import verdict_of
from discreet.tables.methods._tree_estimate import Interval, TreeEstimate
from discreet.tables.methods.top_down import TopDown
from discreet.tables.release import require_unseeded
from discreet.tables.tabulation import Source, declared_hierarchies, require_columns

if TYPE_CHECKING:
    from discreet.ledger.store import Ledger

__all__ = ["Effort", "LargeRelease", "LargeTabulation", "large_by_size", "tabulate_large"]

#: Rows of a block of the file.
_ROWS = 500_000
#: Hours of one core beyond which nobody waits.
_HOURS = 48.0
#: Seconds that a draw takes, seconds that a published cell takes besides, and its bytes; measured.
_SECONDS, _CELL_SECONDS, _CELL_BYTES = 15e-6, 1e-6, 4


@dataclasses.dataclass(frozen=True)
class Effort(Report):
    """What a consistent table will take; known before any record is looked at."""

    cells: int
    draws: int
    #: Hours of one core.
    hours: float
    #: Bytes of the published files.
    disk: int

    def __str__(self) -> str:
        time = f"{self.hours:,.1f} hours" if self.hours >= 1 else f"{60 * self.hours:,.1f} minutes"
        return (
            f"{self.cells:,} cells, {self.draws:,} draws of noise: about {time} of one core and "
            f"{self.disk / 2**20:,.0f} MiB on disk"
        )

    def require_affordable(self, free: int) -> None:
        """Refuse what takes more time or room than there is."""
        if self.hours > _HOURS or self.disk > free:
            lacks = "time" if self.hours > _HOURS else f"room ({free / 2**20:,.0f} MiB are free)"
            raise InputError(
                f"the table needs more {lacks} than there is: {self}",
                code="table-too-large",
                hint="cross fewer attributes, or measure fewer queries",
            )


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LargeTabulation:
    """Counts over places and attributes, not yet made: `protect` counts in the engine."""

    source: Source
    dimensions: tuple[Dimension, ...]

    def __repr__(self) -> str:
        over = " × ".join(dimension.name for dimension in self.dimensions)
        return f"LargeTabulation({over})"

    @property
    def by(self) -> tuple[str, ...]:
        """Names of the crossed attributes."""
        return tuple(dimension.name for dimension in self.dimensions)

    def leaves(self, places: Places) -> Ints:
        """Return the counts of single cells, one row per leaf, from the engine."""
        found = self.source.dataset.cells(
            {dimension.name: dimension.hierarchies for dimension in self.dimensions},
            largest=0,
            margins=False,
            missing=self.source.missing,
        )
        codes = []
        for dimension in self.dimensions:
            coded = found.column(dimension.name).combine_chunks().dictionary_encode()
            index = [dimension.index[code] for code in coded.dictionary.to_pylist()]
            codes.append(np.array(index, dtype=np.int64)[coded.indices.to_numpy()])
        counts = found.column("count").to_numpy().astype(np.int64)
        return places.histograms(codes, counts)

    def effort(self, method: TopDown) -> Effort:
        """Return what the table will take, without looking at a record."""
        places = Places.of(self.dimensions, method.place_of(self.by))
        return _effort(method, places, method.task_of(places).budget)

    def events(self, method: TopDown) -> Mapping[str, int]:
        """Return what a release will be charged, without looking at a record."""
        places = Places.of(self.dimensions, method.place_of(self.by))
        return method.task_of(places).budget.events()

    def protect(
        self,
        rules: Sequence[Rule] = (),
        *,
        method: TableMethod,
        rng: Randomness | None = None,
        ledger: str | Path | Ledger | None = None,
        snapshot: str | None = None,
        progress: Progress = silent,
    ) -> LargeRelease:
        """Return the release: charged, checked, measured and estimated, in this order.

        What can be refused without looking at a record is refused first, and not charged.
        """
        if rules:
            raise InputError(
                "noise protects all cells alike: a large table takes no rules",
                code="rules-not-used",
                hint="leave out rules=, or tabulate without large=True",
                parameter="rules",
            )
        if not isinstance(method, TopDown):
            raise InputError(
                f"{method.name} needs a table of all cells",
                code="large-method",
                hint="use top-down, or tabulate without large=True",
                parameter="method",
            )
        require_unweighted(self.source, method.name)
        places = Places.of(self.dimensions, method.place_of(self.by))
        task = method.task_of(places)
        effort = _effort(method, places, task.budget)
        effort.require_affordable(shutil.disk_usage(Path.cwd()).free)
        progress(str(effort), 0, effort.draws)
        standing = None
        if ledger is not None:
            from discreet.ledger.memory import Memory
            from discreet.ledger.recording import standing_in

            with Memory(ledger, self.source.dataset, snapshot=snapshot) as memory:
                what = f"counts by {' × '.join(self.by)}"
                number = charge(memory.ledger, memory.dataset.name, task.budget.events(), what=what)
                standing = standing_in(memory, number)
        require_records(self.source, method.records, method.name)
        leaves = self.leaves(places)
        task.require_possible(leaves)
        measured = task.measure(leaves, progress)
        del leaves
        rng = Randomness.secure() if rng is None else rng
        estimate = method.estimate(measured, places, rng=rng, progress=progress)
        facts = {**method.facts(task), "large": True}
        return LargeRelease(
            method, estimate, facts, rng.kind, task.budget.events(), self.source.dataset, standing
        )


def _effort(method: TopDown, places: Places, budget: Budget) -> Effort:
    draws = places.draws(budget)
    hours = (draws * _SECONDS + places.size * _CELL_SECONDS) / 3600
    disk = places.size * _CELL_BYTES + (draws * _CELL_BYTES if method.measurements else 0)
    return Effort(places.size, draws, hours, disk)


def large_by_size(table: Table, method: TableMethod) -> LargeTabulation | None:
    """Return the large way for a table that has too many combinations of codes for the small one."""
    source = getattr(table, "source", None)
    if (
        not isinstance(method, TopDown)
        or source is None
        or combinations(table.dimensions) <= LARGEST
    ):
        return None
    if table.statistic != "count" or not all(d.declared for d in table.dimensions):
        return None  # the small way says what is wrong
    return LargeTabulation(source, table.dimensions)


def tabulate_large(
    data: Dataset,
    by: Sequence[str],
    *,
    unit: str | None = None,
    weight: str | None = None,
    missing: str | None = None,
) -> LargeTabulation:
    """Cross attributes of a dataset for a consistent table of many places; nothing is counted yet."""
    names = tuple(str(name) for name in by)
    require_columns(data, names, None, "sum", (unit, weight))
    dimensions = []
    for name in names:
        data.schema.require_dimension(name)
        several = declared_hierarchies(data, name, "Total")
        if not several or any(tree.observed for tree in several):
            raise InputError(
                f"the codes of {name} are not declared, and those found in the records would tell "
                "who is in them",
                code="undeclared-codes",
                hint="declare a hierarchy or a domain for every attribute",
                column=name,
            )
        dimensions.append(Dimension.of(name, several))
    source = Source(
        data,
        names,
        None,
        data.unit if unit is None else unit,
        data.weight if weight is None else weight,
        {dimension.name: dimension.hierarchies for dimension in dimensions},
        missing=missing,
    )
    return LargeTabulation(source, tuple(dimensions))


@dataclasses.dataclass(frozen=True, eq=False)
class LargeRelease(Release):
    """A consistent table of many places; it is written in blocks and never held as a frame."""

    method: TopDown
    estimate: TreeEstimate
    facts: Mapping[str, Any]
    randomness: str
    #: What it spent, as the accountant spells it; the records; and where it was charged.
    spent: Mapping[str, int]
    data: Dataset
    standing: Standing | None = None

    def title(self) -> str:
        """Return what is shown by what."""
        return "counts by " + " × ".join(d.name for d in self.estimate.places.dimensions)

    def records(self) -> Dataset:
        """Return the records that were counted."""
        return self.data

    def events(self) -> Mapping[str, int]:
        """Return the privacy events of the measurements."""
        return self.spent

    def __repr__(self) -> str:
        return f"LargeRelease({self.estimate.places.size:,} cells: {self.verdict})"

    @property
    def verdict(self) -> str:
        """One sentence in plain words."""
        return verdict_of(self.facts["promise"], self.facts["caution"])

    def interval(self, selection: Mapping[str, str | Sequence[str]]) -> Interval:
        """Return the published sum of cells, and between what the truth lies 95 times in 100."""
        return self.estimate.interval(selection)

    def level(self, number: int) -> Ints | Floats:
        """Return what is published of single cells of a level, one row per place."""
        if self.estimate.whole is not None:
            return self.estimate.whole[number]
        return self.estimate.places.basis.backward(self.estimate.fit.estimate[number])

    def evidence(self) -> Evidence:
        """Return what was done and what it promises."""
        places = self.estimate.places
        settings = {
            "by": [dimension.name for dimension in places.dimensions],
            "measure": None,
            "statistic": "count",
            "rules": [],
            "method": self.method.settings(),
            "facts": plain(dict(self.facts)),
        }
        loss = {"cells": places.size}
        return Evidence("table", settings, {"safe": True}, loss, self.verdict, self.randomness)

    def require_releasable(self, *, unsafe: bool = False) -> None:
        """Refuse what a seeded random source drew."""
        require_unseeded(self.randomness)

    def blocks(self) -> Iterator[Any]:
        """Give the published cells as tables of pyarrow, some places at a time. Any: those."""
        import pyarrow as pa

        places = self.estimate.places
        spine = places.dimensions[places.place]
        shape = [len(d.codes) for d in places.attributes]
        width = int(np.prod(shape, dtype=np.int64))
        names = [pa.array(d.codes) for d in places.attributes]
        grid = np.indices(shape).reshape(len(shape), width)  # no attribute but the spine: one cell
        for number in range(places.spine.depth):
            # A leaf above the last level is printed once.
            rows = np.flatnonzero(places.level_of[places.nodes[number]] == number)
            for start in range(0, len(rows), max(_ROWS // width, 1)):
                part = rows[start : start + max(_ROWS // width, 1)]
                codes = np.repeat(places.nodes[number][part], width).astype(np.int32)
                value, lower, upper = self.estimate.of_nodes(number, part)
                columns: dict[str, Any] = {
                    spine.name: pa.DictionaryArray.from_arrays(codes, pa.array(spine.codes))
                }
                for place, dimension in enumerate(places.attributes):
                    index = np.tile(grid[place], len(part)).astype(np.int32)
                    columns[dimension.name] = pa.DictionaryArray.from_arrays(index, names[place])
                kind = np.int64 if self.estimate.whole is not None else np.float64
                columns |= {"value": value.astype(kind), "lower_95": lower, "upper_95": upper}
                level = [self.facts["levels"][number]]
                zeros = np.zeros(len(value), dtype=np.int8)
                columns["level"] = pa.DictionaryArray.from_arrays(zeros, pa.array(level))
                table = pa.table(columns)
                yield table.cast(
                    pa.schema(
                        [
                            (f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type)
                            for f in table.schema
                        ]
                    )
                )

    def write_files(self, folder: Path) -> None:
        """Write the cells (Parquet), the hierarchies, and the page for readers."""
        from pyarrow import parquet

        places = self.estimate.places
        writer = None
        try:
            for block in self.blocks():
                if writer is None:
                    writer = parquet.ParquetWriter(
                        folder / "cells.parquet", block.schema, compression="zstd"
                    )
                writer.write_table(block)
        finally:
            if writer is not None:
                writer.close()
        for dimension in places.dimensions:
            for number, hierarchy in enumerate(dimension.hierarchies):
                hierarchy.to_pairs(folder / hierarchy_file(dimension.name, number))
        if self.estimate.measured is not None:
            path = folder / MEASUREMENTS
            write_measurements(self.estimate.measured, places, self.facts["levels"], path)
        page = _page(self).html()
        (folder / "report.html").write_text(page, encoding="utf-8")


def _page(release: LargeRelease) -> Page:
    """Return the page of a table that is too large to be shown."""
    from discreet.tables.top_down_page import top_down_sections

    places = release.estimate.places
    by = ", ".join(dimension.name for dimension in places.dimensions)
    evidence = release.evidence()
    return Page(
        f"Number of records by {by}",
        top_down_sections(release.method, release.estimate, release.facts),
        verdict=evidence.verdict,
        lead=f"{places.size:,} cells in cells.parquet, protected so that no single contributor can "
        "be recognised in them.",
        footer=f"discreet {evidence.version}, {evidence.time}",
    )
