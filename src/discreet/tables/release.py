"""A released table: what is published of it, with its evidence."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.exposure import Exposures, expose
from discreet.audit.intervals import Audit
from discreet.audit.rules import Rule
from discreet.data.release import Evidence, Release
from discreet.data.table import Floats, Status, Table
from discreet.errors import RefusedError
from discreet.progress import Progress, silent
from discreet.report import plain
from discreet.tables.assessment import Assessment, assess
from discreet.tables.loss import TableLoss, measure_loss
from discreet.tables.methods._base import (
    Protected,
    TableMethod,
    floor_of,
    round_up,
    sensitive,
)
from discreet.tables.published import file_name, hierarchy_file
from discreet.tables.tabulation import mean_count

__all__ = ["CONF_STATUS", "WITHHELD", "LinkedRelease", "TableRelease"]

#: More rows than this are no help in a workbook, and take minutes to write.
_SHEET = 200_000
#: Up to so many sensitive cells an audit of withheld cells is exact unless told otherwise.
_EXACT = {"outsider": 2000, "contributors": 100}
#: SDMX code list CL_CONF_STATUS: free; confidential; secondary confidentiality set by the sender.
CONF_STATUS = {
    Status.SAFE: "F",
    Status.CHANGED: "F",
    Status.PRIMARY: "C",
    Status.SECONDARY: "D",
}
_NOT_JUDGED = "not judged: no rule says what is sensitive"
#: The status of withheld cells in files.
WITHHELD = "withheld"


@dataclasses.dataclass(frozen=True, eq=False)
class TableRelease(Release):
    """A protected table and its evidence.

    `published` is what is written. `cells` also says which withheld cells are sensitive and which
    only protect others. `loss`, `audit()` and `exposures()` are computed with the true values. All
    of these are for the curator: only what gives no value away goes into files.
    """

    protected: Protected
    method: TableMethod
    rules: tuple[Rule, ...] = ()
    randomness: str = "none"
    #: Number of cells before recoding.
    before: int | None = None

    def __repr__(self) -> str:
        return f"TableRelease({len(self.table):,} cells by {self.method.name}: {self.verdict})"

    @property
    def table(self) -> Table:
        """The true table in the shape that is published, with what is sensitive; stays in the house."""
        return self.protected.table

    @property
    def withholds(self) -> bool:
        """Whether cells are withheld or given as intervals, rather than changed."""
        return self.protected.prints_intervals or bool(self.protected.withheld.any())

    @property
    def attacker(self) -> str:
        """Against whom the method protects."""
        return str(getattr(self.method.acting, "attacker", "outsider"))

    @functools.cached_property
    def _frame(self) -> Any:
        import pandas as pd

        table, protected = self.table, self.protected
        data: dict[str, Any] = {
            dimension.name: np.array(dimension.codes, dtype=object)[table.codes[:, place]]
            for place, dimension in enumerate(table.dimensions)
        }
        # A printed interval replaces the value of every cell that is not safe.
        shown = ~protected.withheld
        divisor = mean_count(table) if table.statistic == "mean" else np.ones(len(table))
        value = protected.value / divisor
        drawn = self.method.acting.is_random and protected.grid is None
        if table.statistic == "mean" and not self.withholds and not drawn:
            value = _without_count(value, protected.grid)
        data["value"] = np.where(shown, _tidy(value), np.nan)
        if protected.prints_intervals:
            assert protected.lower is not None
            assert protected.upper is not None
            ends = protected.lower, protected.upper
            if table.statistic == "mean":
                ends = _intervals_of_means(protected, divisor)
            data["lower"], data["upper"] = _tidy(ends[0]), _tidy(ends[1])
        if table.statistic == "mean" and self.withholds:
            # With it sums can be computed, and audited. Where values are changed instead of
            # withheld it would tell how few stand behind a cell.
            data["count"] = np.where(shown, divisor, np.nan)
        words = np.array([status.word for status in Status], dtype=object)
        letters = np.array([CONF_STATUS[status] for status in Status], dtype=object)
        data["status"] = words[protected.status]
        data["conf_status"] = letters[protected.status]
        return pd.DataFrame(data)

    @functools.cached_property
    def published(self) -> Any:
        """What is written into files: as `cells`, with all withheld cells marked alike.

        Together with the rule, which is told, the statuses would give values away: of a table of
        counts with a minimum frequency of 3 a sensitive cell is 1 or 2 and a secondary one at
        least 3, from which most of them can be computed. Any: a pandas frame.
        """
        frame = self._frame.copy()
        frame["status"] = self.told
        hidden = self.told == WITHHELD
        frame["conf_status"] = np.where(hidden, CONF_STATUS[Status.PRIMARY], frame["conf_status"])
        return frame

    @functools.cached_property
    def told(self) -> npt.NDArray[np.object_]:
        """The status of each cell as anybody may know it: safe, changed or withheld."""
        words = np.array([status.word for status in Status], dtype=object)
        hidden = np.isin(self.protected.status, (Status.PRIMARY, Status.SECONDARY))
        return np.where(hidden, WITHHELD, words[self.protected.status])

    @property
    def cells(self) -> Any:
        """The released cells: codes, value (missing where withheld), status, SDMX status.

        The statuses tell sensitive (primary) cells from secondary ones: see `published`. Any: a
        frame of the library the records came in, pandas otherwise.
        """
        source = getattr(self.table, "source", None)
        library = "pandas" if source is None else source.dataset.library
        if library == "pandas":
            return self._frame.copy()
        import pyarrow as pa

        from discreet.data.dataset import to_library

        return to_library(pa.Table.from_pandas(self._frame, preserve_index=False), library)

    @functools.cached_property
    def loss(self) -> TableLoss:
        """What the release loses against the true table; for the curator."""
        return measure_loss(self.protected, before=self.before)

    def audit(
        self,
        *,
        attacker: str | None = None,
        exact: bool | None = None,
        progress: Progress = silent,
    ) -> Audit | Assessment:
        """Judge what an attacker can infer; against the method's own attacker unless another is named.

        `exact` computes the ends of every interval; without it the audit stops where a cell's need
        is met. Left out, they are exact where that takes no more than some seconds.
        """
        if exact is None:
            few = int(sensitive(self.table).sum()) <= _EXACT.get(attacker or self.attacker, 100)
            exact = few and self.protected.lower is None
        if attacker is None and not exact:
            return self._audit
        return assess(
            self.protected,
            self.method,
            attacker=attacker or self.attacker,
            exact=exact,
            progress=progress,
        )

    @functools.cached_property
    def _audit(self) -> Audit | Assessment:
        done = self.protected.confidential.get("audit")
        if isinstance(done, Audit):
            return done  # the method audited its own result
        return assess(self.protected, self.method, attacker=self.attacker)

    def exposures(self, *, limit: int = 1000) -> Exposures:
        """Say which attack each sensitive cell would enable; for the curator only."""
        return expose(self.table, limit=limit)

    @property
    def verdict(self) -> str:
        """One sentence in plain words."""
        return self._audit.verdict if self._is_judged else _NOT_JUDGED

    @property
    def _is_judged(self) -> bool:
        """Whether anything says what is sensitive, or the method promises without."""
        given = bool(self.rules) or sensitive(self.table).any()
        return bool(given) or self.method.acting.risk == "noise"

    def evidence(self) -> Evidence:
        """Return what was done and what it promises; nothing from which a value could be computed."""
        audit = self._audit
        # Neither how many cells are sensitive nor how many of them are not safe: where the rule
        # is told, their number narrows down the values nearly as much as which they are.
        safe = audit.safe if self._is_judged else None
        risk: dict[str, Any] = {"safe": safe, "attacker": self.attacker}
        loss = self.loss.public()
        if self.method.acting.risk == "noise":
            risk, loss = {"safe": audit.safe}, {"cells": len(self.table)}
        settings = {
            "by": list(self.table.by),
            "measure": self.table.measure,
            "statistic": self.table.statistic,
            "rules": [rule.settings() for rule in self.rules],
            "method": self.method.settings(),
            "facts": plain(dict(self.protected.facts)),
        }
        return Evidence(
            kind="table",
            settings=settings,
            risk=risk,
            loss=loss,
            verdict=audit.promise if self._is_judged else _NOT_JUDGED,
            randomness=self.randomness,
        )

    def write_files(self, folder: Path) -> None:
        """Write the cells (CSV, Parquet, Excel), the hierarchies and the page for readers."""
        from discreet.tables.page import release_page

        self.require_releasable()
        frame = self.published
        frame.to_csv(folder / "cells.csv", index=False)
        frame.to_parquet(folder / "cells.parquet", index=False)
        _write_excel(frame, folder / "cells.xlsx")
        for dimension in self.table.dimensions:
            _write_hierarchies(dimension.hierarchies, dimension.name, folder)
        page = release_page(self).html()
        (folder / "report.html").write_text(page, encoding="utf-8")

    def require_releasable(self) -> None:
        """Refuse to write what a seeded random source drew."""
        if self.randomness == "seeded":
            raise RefusedError(
                "a seeded random source can be replayed, so it is refused for a release",
                code="seeded-randomness",
                hint="leave out rng, or pass rng=Randomness.secure()",
            )

    def write_curator(self, path: str | Path) -> Path:
        """Write the page for the curator: attacks, intervals, exact loss. Not for publication."""
        from discreet.data.atomic import atomic_file
        from discreet.tables.page import curator_page

        with atomic_file(path) as temporary:
            temporary.write_text(curator_page(self).html(), encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        return str(self._frame.to_html(index=False, na_rep="–", max_rows=200))


@dataclasses.dataclass(frozen=True, eq=False)
class LinkedRelease(Release):
    """Several linked tables protected and audited together."""

    joint: TableRelease
    releases: tuple[TableRelease, ...]

    def __repr__(self) -> str:
        return f"LinkedRelease({len(self.releases)} tables: {self.joint.verdict})"

    @property
    def cells(self) -> tuple[Any, ...]:
        """The released cells of each table, with statuses for the curator."""
        return tuple(release.cells for release in self.releases)

    @property
    def loss(self) -> TableLoss:
        """What is lost over all distinct cells."""
        return self.joint.loss

    @property
    def verdict(self) -> str:
        """One sentence in plain words."""
        return self.joint.verdict

    def audit(
        self,
        *,
        attacker: str | None = None,
        exact: bool | None = None,
        progress: Progress = silent,
    ) -> Audit | Assessment:
        """Judge what an attacker can infer from all tables together."""
        return self.joint.audit(attacker=attacker, exact=exact, progress=progress)

    def evidence(self) -> Evidence:
        """Return the evidence of all tables together."""
        whole = self.joint.evidence()
        tables = [list(release.table.by) for release in self.releases]
        return dataclasses.replace(whole, settings={**whole.settings, "tables": tables})

    def write_files(self, folder: Path) -> None:
        """Write each table into a folder of its own, named by its attributes."""
        for number, release in enumerate(self.releases, start=1):
            part = folder / f"{number}-{'-'.join(file_name(name) for name in release.table.by)}"
            part.mkdir()
            release.write_files(part)


def _without_count(means: Floats, grid: float | None) -> Floats:
    """Return means from which nobody can tell by how many a sum was divided.

    Of sums that are multiples of a number, so are the means; of others three digits are left.
    """
    if grid is not None:
        return np.asarray(np.floor(means / grid + 0.5) * grid)
    with np.errstate(all="ignore"):
        scale = 10.0 ** (2 - np.floor(np.log10(np.abs(means))))
        return np.where(means == 0, 0.0, np.round(means * scale) / scale)


def _intervals_of_means(protected: Protected, count: Floats) -> tuple[Floats, Floats]:
    """Return intervals of means, with ends that are round for means and not for sums.

    The ends of sums, which are round numbers, divided by the number of records would tell it.
    """
    table = protected.table
    lower, upper = table.value / count, table.value / count
    steps = np.zeros(len(table)) if protected.steps is None else protected.steps
    for cell in np.flatnonzero(steps > 0):
        step = round_up(steps[cell] / count[cell])
        middle = np.floor(lower[cell] / step + 0.5) * step
        lower[cell], upper[cell] = middle - step, middle + step
    return np.maximum(lower, floor_of(table)), upper


def _tidy(value: Floats) -> Floats:
    """Return values without the last digits, which tell how sums of parts, also withheld, came out."""
    with np.errstate(all="ignore"):
        near = np.round(value)
        whole = np.abs(value - near) <= 1e-9 * np.maximum(1.0, np.abs(value))
        scale = 10.0 ** (11 - np.floor(np.log10(np.abs(value))))
        return np.where(whole, near + 0.0, np.round(value * scale) / scale)


def _write_hierarchies(hierarchies: tuple[Any, ...], name: str, folder: Path) -> None:
    import csv

    for number, hierarchy in enumerate(hierarchies):
        path = folder / hierarchy_file(name, number)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["child", "parent"])
            writer.writerows(hierarchy.pairs())


def _write_excel(frame: Any, path: Path) -> None:
    """Write a workbook with a legend, where the library for it is installed and it fits a sheet."""
    if len(frame) > _SHEET:
        return
    try:
        import openpyxl  # noqa: F401
    except ModuleNotFoundError:
        return
    import pandas as pd

    legend = pd.DataFrame(
        {
            "conf_status": ["F", "C"],
            "meaning": ["free for publication", "withheld: confidential"],
        }
    )
    with pd.ExcelWriter(path, engine="openpyxl") as writer:
        frame.to_excel(writer, sheet_name="cells", index=False)
        legend.to_excel(writer, sheet_name="legend", index=False)
