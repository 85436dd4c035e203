"""A released table: its files and pages, alone or together with linked ones."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Mapping, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.audit.intervals import Audit
from discreet.data.dataset import Dataset
from discreet.data.facts import Facts
from discreet.data.hierarchy_files import file_name, write_hierarchies
from discreet.data.release import Evidence, Release, Standing
from discreet.errors import RefusedError
from discreet.progress import Progress, silent
from discreet.tables.assessment import Assessment
from discreet.tables.loss import TableLoss
from discreet.tables.measured_file import MEASUREMENTS, write_measurements
from discreet.tables.protected_table import ProtectedTable
from discreet.verification import Held

if TYPE_CHECKING:
    from discreet.ledger.memory import Memory

__all__ = ["LinkedRelease", "TableRelease", "require_unseeded"]

#: More rows than this are no help in a workbook, and take minutes to write.
_SHEET = 200_000
#: Cells that a notebook shows.
_SHOWN = 200


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TableRelease(ProtectedTable, Release):
    """A protected table and its evidence, as it leaves.

    `published` is what is written. `cells` also says which withheld cells are sensitive and which
    only protect others. `loss`, `audit()` and `exposures()` are computed with the true values. All
    of these are for the curator: only what gives no value away goes into files.
    """

    #: The records that were tabulated, and where the release was judged.
    data: Dataset | None = None
    standing: Standing | None = None

    def title(self) -> str:
        """Return what is shown by what."""
        shown = "counts" if self.table.measure is None else str(self.table.measure)
        return f"{shown} by {' × '.join(self.table.by)}"

    def records(self) -> Dataset | None:
        """Return the records that were tabulated."""
        return self.data

    def events(self) -> Mapping[str, int]:
        """Return the privacy events of the method."""
        return self.protected.events

    def discloses(self, memory: Memory) -> Sequence[Facts]:
        """Return what the cells tell."""
        from discreet.tables.memory import state_facts

        return state_facts(self, memory)

    def judge(self, memory: Memory) -> None:
        """Refuse cells that tell too much together with earlier releases."""
        from discreet.tables.remembering import require_safe_together

        require_safe_together(self, memory)

    def write_files(self, folder: Path) -> None:
        """Write the cells (CSV, Parquet, Excel), the hierarchies and the page for readers."""
        from discreet.tables.page import release_page

        frame = self.published
        frame.to_csv(folder / "cells.csv", index=False)
        _write_parquet(frame, folder / "cells.parquet")
        _write_excel(frame, folder / "cells.xlsx", self.caution)
        for dimension in self.table.dimensions:
            write_hierarchies(dimension.hierarchies, dimension.name, folder)
        estimate = self.protected.estimate
        if estimate is not None and estimate.measured is not None:
            levels = self.protected.facts["levels"]
            write_measurements(estimate.measured, estimate.places, levels, folder / MEASUREMENTS)
        page = release_page(self).html()
        (folder / "report.html").write_text(page, encoding="utf-8")

    def promises(self) -> Sequence[Mapping[str, Any]]:
        """Return what the files of the table promise."""
        return [self.table_promise(self.files)]

    @property
    def files(self) -> list[str]:
        """The names of the files that hold the cells."""
        return ["cells.csv", "cells.parquet", *(["cells.xlsx"] if _has_sheet(self.table) else [])]

    def held(self) -> Held:
        """Return what sensitive cells need."""
        return Held(needs={"": self.needs()})

    def require_releasable(self, *, unsafe: bool = False) -> None:
        """Refuse what a seeded random source drew, and what is not safe unless that is accepted."""
        require_unseeded(self.randomness)
        if self.is_safe is False and not (unsafe or self.accepts_unsafe):
            raise RefusedError(
                f"the release is {self.evidence().verdict}",
                code="unsafe-release",
                hint="use a stronger method or merge categories; to publish it as it is, and have "
                "its pages say that it is not safe, write unsafe=True (--unsafe, in a policy "
                "unsafe: true)",
            )

    def write_curator(self, path: str | Path) -> Path:
        """Write the page for the curator: attacks, intervals, exact loss. Not for publication."""
        from discreet.data.atomic import atomic_file
        from discreet.tables.page import curator_page

        with atomic_file(path, private=True) as temporary:
            temporary.write_text(curator_page(self).html(), encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        shown = self._frame.head(_SHOWN)
        left = len(self._frame) - len(shown)
        more = f"<p>The first {len(shown):,} of {len(self._frame):,} cells.</p>" if left else ""
        return f"{super()._repr_html_()}{shown.to_html(index=False, na_rep='–')}{more}"


@dataclasses.dataclass(frozen=True, eq=False)
class LinkedRelease(Release):
    """Several linked tables protected and audited together."""

    joint: TableRelease
    releases: tuple[TableRelease, ...]
    #: The cells of other measures, where several are protected together.
    others: tuple[TableRelease, ...] = ()
    standing: Standing | None = None

    def title(self) -> str:
        """Return the titles of the tables."""
        return "; ".join(release.title() for release in self.releases)

    def records(self) -> Dataset | None:
        """Return the records that were tabulated."""
        return self.releases[0].data

    def discloses(self, memory: Memory) -> Sequence[Facts]:
        """Return what the cells of all tables tell."""
        return [fact for release in self.releases for fact in release.discloses(memory)]

    def judge(self, memory: Memory) -> None:
        """Refuse cells that tell too much together with earlier releases and with each other."""
        if not memory.earlier and not memory.answers:
            return  # they were protected together
        for release in self.releases:
            release.judge(memory)
            memory = memory.beside(release.title(), release.discloses(memory))

    def __repr__(self) -> str:
        return f"LinkedRelease({len(self.releases)} tables: {self.verdict})"

    @property
    def _worst(self) -> TableRelease:
        """The measure that is judged worst: the first that is not safe."""
        several = (self.joint, *self.others)
        return next((one for one in several if not one._audit.safe), self.joint)

    @property
    def cells(self) -> tuple[Any, ...]:
        """The released cells of each table, with statuses for the curator."""
        return tuple(release.cells for release in self.releases)

    @property
    def loss(self) -> TableLoss:
        """What is lost over all distinct cells of the first measure."""
        return self.joint.loss

    @property
    def verdict(self) -> str:
        """One sentence in plain words."""
        return self._worst.verdict

    def audit(
        self,
        *,
        attacker: str | None = None,
        exact: bool | None = None,
        progress: Progress = silent,
    ) -> Audit | Assessment:
        """Judge what an attacker can infer from all tables together; of several measures, the worst."""
        return self._worst.audit(attacker=attacker, exact=exact, progress=progress)

    def evidence(self) -> Evidence:
        """Return the evidence of all tables together."""
        whole = self._worst.evidence()
        tables = [list(release.table.by) for release in self.releases]
        return dataclasses.replace(whole, settings={**whole.settings, "tables": tables})

    def require_releasable(self, *, unsafe: bool = False) -> None:
        """Refuse what may not leave, judged by all tables together."""
        self._worst.require_releasable(unsafe=unsafe)

    def promises(self) -> Sequence[Mapping[str, Any]]:
        """Return what the files of each table promise."""
        return [release.table_promise(release.files, folder) for folder, release in self._folders()]

    def held(self) -> Held:
        """Return what sensitive cells need, table by table."""
        return Held(needs={folder: release.needs() for folder, release in self._folders()})

    def _folders(self) -> list[tuple[str, TableRelease]]:
        return [
            (f"{number}-{'-'.join(file_name(name) for name in release.table.by)}", release)
            for number, release in enumerate(self.releases, start=1)
        ]

    def write_files(self, folder: Path) -> None:
        """Write each table into a folder of its own, named by its attributes."""
        for name, release in self._folders():
            (folder / name).mkdir()
            release.write_files(folder / name)


def require_unseeded(randomness: str) -> None:
    """Refuse to publish what a seeded random source drew."""
    if randomness == "seeded":
        raise RefusedError(
            "a seeded random source can be replayed, so it is refused for a release",
            code="seeded-randomness",
            hint="leave out rng, or pass rng=Randomness.secure()",
        )


def _has_sheet(cells: Sized) -> bool:
    """Whether the cells are also written as a workbook."""
    return len(cells) <= _SHEET and importlib.util.find_spec("openpyxl") is not None


def _write_parquet(frame: Any, path: Path) -> None:
    """Write cells without the footer of pandas: a file holds rows and types, and nothing else."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = pa.Table.from_pandas(frame, preserve_index=False)
    parquet.write_table(rows.replace_schema_metadata(None), path)


def _write_excel(frame: Any, path: Path, caution: str) -> None:
    """Write a workbook with a legend, where the library for it is installed and the cells fit."""
    if not _has_sheet(frame):
        return
    import pandas as pd

    legend = pd.DataFrame(
        {
            "conf_status": ["F", "C"],
            "meaning": ["free for publication", "withheld: confidential"],
        }
    )
    if caution:
        legend.loc[len(legend)] = ["", caution]
    with pd.ExcelWriter(path, engine="openpyxl") as writer:
        frame.to_excel(writer, sheet_name="cells", index=False)
        legend.to_excel(writer, sheet_name="legend", index=False)
        for row in writer.sheets["cells"].iter_rows():
            for cell in row:
                if cell.data_type == "f":  # a code that begins with = is no formula
                    cell.data_type = "s"
