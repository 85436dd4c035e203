"""A protected table: what is published of it, and the one audit by which it is judged."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from discreet.audit.exposure import Exposures, expose
from discreet.audit.intervals import Audit
from discreet.audit.rules import Rule
from discreet.data.hierarchy_files import hierarchy_file
from discreet.data.release import Evidence
from discreet.data.table import Floats, Ints, Status, Table
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.report import plain
from discreet.tables.assessment import Assessment, assess, of_part
from discreet.tables.loss import TableLoss, measure_loss
from discreet.tables.methods._base import (
    Protected,
    TableMethod,
    floor_of,
    round_up,
    sensitive,
)
from discreet.tables.methods._tree_estimate import Interval
from discreet.tables.tabulation import mean_count
from discreet.verification.held import Need

__all__ = ["CONF_STATUS", "WITHHELD", "ProtectedTable"]

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
class ProtectedTable:
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
    #: Of one of several linked tables: all of them together, and the places of its cells there.
    within: tuple[ProtectedTable, Ints] | None = None
    #: Whether the curator accepts that it is published although it is not safe.
    accepts_unsafe: bool = False

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({len(self.table):,} cells by {self.method.name}: {self.verdict})"

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
        value = protected.value / np.where(divisor > 0, divisor, 1)  # added cells have nobody
        # Adjustment leaves most sums as they were; noise in every one leaves no digit of it.
        method = self.method.acting
        drawn = method.is_random and method.risk != "distance" and protected.grid is None
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
        if protected.estimate is not None:
            low, high = protected.estimate.bounds
            data["lower_95"], data["upper_95"] = _tidy(low), _tidy(high)
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

    def interval(self, selection: Mapping[str, str | Sequence[str]]) -> Interval:
        """Return the published sum of cells, and between what the truth lies 95 times in 100.

        Parameters
        ----------
        selection
            Codes of attributes, one or several each; attributes that are not named are summed up.
        """
        if self.protected.estimate is None:
            raise InputError(
                f"{self.method.name} states no errors, so that sums of cells have no interval",
                code="no-intervals",
                hint="use the method top-down",
            )
        return self.protected.estimate.interval(selection)

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

        Without arguments this is the audit that decided about the release, which verdict, evidence
        and pages tell. `exact` computes the ends of every interval; otherwise an audit stops where
        a cell's protection level is reached, unless exact ends take no more than some seconds.
        """
        kept = self._audit
        is_enough = not exact or not isinstance(kept, Audit) or kept.exact
        if attacker in (None, self.attacker) and is_enough:
            return kept
        attacker = attacker or self.attacker
        return assess(
            self.protected,
            self.method,
            attacker=attacker,
            exact=self._is_quick(attacker) if exact is None else exact,
            progress=progress,
        )

    @functools.cached_property
    def _audit(self) -> Audit | Assessment:
        if self.within is not None:
            whole, places = self.within
            return of_part(whole._audit, self.table, places)
        exact = self._is_quick(self.attacker)
        done = self.protected.confidential.get("audit")
        if isinstance(done, Audit) and not exact:
            return done  # the method audited its own result
        return assess(self.protected, self.method, attacker=self.attacker, exact=exact)

    def kept_as(self, **changes: Any) -> Self:
        """Return the release with other circumstances, such as its records: its audit stays."""
        # Any: fields that no audit depends on, each of its own type.
        other = dataclasses.replace(self, **changes)
        if "_audit" in self.__dict__:
            other.__dict__["_audit"] = self.__dict__["_audit"]
        return other

    @property
    def _whole(self) -> ProtectedTable:
        """All that is published together."""
        return self if self.within is None else self.within[0]

    def _is_quick(self, attacker: str) -> bool:
        """Whether exact ends of all intervals take no more than some seconds."""
        few = int(sensitive(self.table).sum()) <= _EXACT.get(attacker, 100)
        return few and self.protected.lower is None

    def exposures(self, *, limit: int = 1000) -> Exposures:
        """Say which attack each sensitive cell would enable; for the curator only."""
        return expose(self.table, limit=limit)

    @property
    def verdict(self) -> str:
        """One sentence in plain words."""
        return self._whole._audit.verdict if self._is_judged else _NOT_JUDGED

    @property
    def is_safe(self) -> bool | None:
        """Whether every sensitive cell is safe; None where no rule says what is sensitive."""
        return self._whole._audit.safe if self._is_judged else None

    @property
    def caution(self) -> str:
        """What every page says where the release is not safe; empty otherwise."""
        return f"This release is {self.evidence().verdict}." if self.is_safe is False else ""

    @property
    def _is_judged(self) -> bool:
        """Whether anything says what is sensitive, or the method promises without."""
        given = bool(self.rules) or sensitive(self.table).any()
        return bool(given) or self.method.acting.risk == "noise"

    def table_promise(self, files: Sequence[str], folder: str = "") -> Mapping[str, Any]:
        """Return what the files of the table promise. Any: as `Release.promises`."""
        table, printed = self.table, self.protected.prints_intervals
        mean = table.statistic == "mean"
        gap = np.abs(table.equations @ table.value)
        scale = np.maximum(abs(table.equations) @ np.abs(table.value), 1e-12)
        return {
            "kind": "table",
            "folder": folder,
            "files": list(files),
            "columns": list(self.published.columns),
            "by": list(table.by),
            "statistic": table.statistic,
            "measure": table.measure,
            "hierarchies": {
                d.name: [hierarchy_file(d.name, n) for n in range(len(d.hierarchies))]
                for d in table.dimensions
            },
            "withheld": int((self.told == WITHHELD).sum()),
            "withholds": bool(self.protected.withheld.any()),
            "intervals": printed,
            "additive": self.method.acting.is_additive
            and not printed
            and not (mean and not self.withholds),
            # Tables that came as they are may be additive up to rounding.
            "tolerance": 1e-6 if (gap <= 1e-8 * scale).all() else 2e-3,
            "nonnegative": bool((table.value >= 0).all()),
        }

    def needs(self) -> list[Need]:
        """Return between what values each sensitive cell must remain possible to an outsider."""
        audit = self._audit
        if not isinstance(audit, Audit) or not audit.safe or self.protected.lower is not None:
            return []
        rows = audit.intervals
        return [
            Need(tuple(map(str, codes)), float(low), float(high))
            for *codes, low, high in rows[[*self.table.by, "need_lower", "need_upper"]].to_numpy()
        ]

    def evidence(self) -> Evidence:
        """Return what was done and what it promises; nothing from which a value could be computed."""
        audit = self._whole._audit
        # Neither how many cells are sensitive nor how many of them are not safe: where the rule
        # is told, their number narrows down the values nearly as much as which they are.
        risk: dict[str, Any] = {"safe": self.is_safe, "attacker": self.attacker}
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

    The width of a sum, divided by the number of records, would tell it: so ends go out to the next
    round numbers, as far apart in every cell as the widest of them needs.
    """
    assert protected.lower is not None
    assert protected.upper is not None
    count = np.where(count > 0, count, 1)  # added cells have nobody
    lower, upper = protected.lower / count, protected.upper / count
    hidden = protected.withheld
    step = round_up(float((upper - lower)[hidden].max(initial=0.0)))
    lower = np.where(hidden, np.floor(lower / step) * step, lower)
    upper = np.where(hidden, np.maximum(np.ceil(upper / step) * step, lower + 2 * step), upper)
    return np.maximum(lower, floor_of(protected.table)), upper


def _tidy(value: Floats) -> Floats:
    """Return values without the last digits, which tell how sums of parts, also withheld, came out."""
    with np.errstate(all="ignore"):
        near = np.round(value)
        whole = np.abs(value - near) <= 1e-9 * np.maximum(1.0, np.abs(value))
        scale = 10.0 ** (11 - np.floor(np.log10(np.abs(value))))
        return np.where(whole, near + 0.0, np.round(value * scale) / scale)
