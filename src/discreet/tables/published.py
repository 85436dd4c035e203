"""Auditing a published table from its file alone, as anybody could."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.audit.intervals import Audit, audit_table
from discreet.audit.knowledge import least
from discreet.data.hierarchy import Hierarchy
from discreet.data.linked import LinkedTables
from discreet.data.table import Dimension, Floats, Status, Table
from discreet.errors import InputError, nearest
from discreet.progress import Progress, silent

__all__ = [
    "OWN",
    "PublishedAudit",
    "audit_published",
    "file_name",
    "hierarchy_file",
    "read_published",
]

#: Columns that a release has besides its attributes.
OWN = ("value", "lower", "upper", "count", "status", "conf_status")


@dataclasses.dataclass(frozen=True)
class PublishedAudit(Audit):
    """What anybody can infer from published cells, judged without knowing what needs protection."""

    #: Percent of its middle that an interval must reach on both sides; 0: not be a point.
    protection: float = 0.0

    @property
    def is_of_means(self) -> bool:
        """Whether values are means: intervals are then of their sums, which add up."""
        return self._table.statistic == "mean"

    @property
    def verdict(self) -> str:
        """One sentence in plain words."""
        near = f"to within {self.protection:g} %" if self.protection else "exactly"
        if not self.sensitive:
            return "safe: no cell is withheld"
        if self.safe:
            return f"safe: nobody can compute any of {self.sensitive:,} cells {near}"
        exactly = f", {self.disclosed:,} of them exactly" if self.protection else ""
        return (
            f"not safe: anybody can compute {self.unsafe:,} of {self.sensitive:,} cells "
            f"{near}{exactly}"
        )


def read_published(
    source: Any,
    hierarchies: Mapping[str, Hierarchy | Sequence[Hierarchy]] | None = None,
    *,
    value: str = "value",
    total: str = "Total",
    counts: bool | None = None,
) -> Table:
    """Return a published table: withheld values are not a number, statuses are what is printed.

    Beside a file, `hierarchy_<attribute>.csv` (and `hierarchy_<attribute>_2.csv` …) is used where
    no hierarchy is given, and `evidence.json` where `counts` is not: releases are written with
    theirs. Attributes are all columns but value, count, status and intervals.

    Parameters
    ----------
    source
        Path of a CSV or Parquet file, or a frame. Any: of any library that narwhals reads.
    counts
        Whether values are counts, of which nobody withholds a zero.
    """
    path = Path(source) if isinstance(source, str | Path) else None
    frame = _frame(source)
    if value not in frame.columns:
        guess = nearest(value, list(frame.columns))
        raise InputError(
            f"the published table has no column {value!r}",
            code="unknown-column",
            hint=f"write {guess!r}" if guess else "name the column of values",
            file=path,
            column=value,
        )
    given = dict(hierarchies or {})
    by = [name for name in frame.columns if name not in OWN and name != value]
    unknown = [name for name in given if name not in by]
    if unknown:
        raise InputError(
            f"the published table has no attribute {unknown[0]!r}",
            code="unknown-column",
            hint="choose one of " + ", ".join(by),
            column=unknown[0],
            file=path,
        )
    dimensions, codes = [], []
    for name in by:
        texts_of = [str(code) for code in frame[name]]
        dimension = _dimension(name, texts_of, given.get(name), path, total)
        dimensions.append(dimension)
        codes.append(np.array([dimension.index[code] for code in texts_of], dtype=np.int32))
    values = _numbers(frame[value])
    is_mean = "count" in frame.columns
    records = _numbers(frame["count"]) if is_mean else None
    table = Table(
        tuple(dimensions),
        np.stack(codes, axis=1),
        values if records is None else values * records,
        status=_status(frame, values),
        statistic="mean" if is_mean else "count" if _are_counts(counts, path) else "sum",
    )
    table._require_distinct()
    return table


def audit_published(
    source: Any,
    hierarchies: Mapping[str, Hierarchy | Sequence[Hierarchy]] | None = None,
    *,
    value: str = "value",
    total: str = "Total",
    within: float | None = None,
    protection: float | None = None,
    counts: bool | None = None,
    exact: bool = True,
    progress: Progress = silent,
) -> PublishedAudit:
    """Compute what anybody can infer of the withheld cells of a published table.

    Parameters
    ----------
    source
        Path or frame of a published table, or a list of them: linked tables are audited together.
    within
        How far a printed value may lie from the true one (rounding, bounded noise); without it
        printed values are exact.
    protection
        Percent of its middle that each interval must reach on both sides to be called safe;
        without it a cell is unsafe only where it can be computed exactly.
    counts
        Whether values are counts, of which nobody withholds a zero; told by `evidence.json` where
        that lies beside the file.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = pd.DataFrame(
    ...     {
    ...         "row": ["1", "1", "1", "2", "2", "2", "3", "3", "3", "Total", "Total", "Total"],
    ...         "column": ["1", "2", "Total"] * 4,
    ...         "value": [None, None, 7, None, None, 3, 3, 3, 6, 9, 7, 16],
    ...     }
    ... )
    >>> audit_published(cells).intervals[["lower", "upper"]].values.tolist()[0]
    [3.0, 6.0]
    """
    several = list(source) if isinstance(source, list | tuple) else [source]
    tables = [
        read_published(one, hierarchies, value=value, total=total, counts=counts) for one in several
    ]
    ends = [_ends(one, table, within) for one, table in zip(several, tables, strict=True)]
    table, lower, upper = _joined(tables, ends)
    exactly = lower == upper
    if within is not None:
        table = table.replace(status=np.full(len(table), np.int8(Status.PRIMARY)))
    # Whatever is withheld of counts is not zero.
    floor = least(table, np.where(np.isnan(table.value), 1.0, table.value))
    if within is not None:
        floor = np.minimum(floor, 0.0)
    lower = np.maximum(lower, floor)
    audit = audit_table(
        table,
        published=exactly,
        exact=exact,
        bounds=(lower, upper),
        cells="sensitive",
        progress=progress,
    )
    return _judged(audit, lower, upper, protection or 0.0)


def _frame(source: Any) -> Any:
    """Return the published cells as a pandas frame; codes of a CSV file stay texts.

    Any: a path or a frame of any library.
    """
    import narwhals.stable.v1 as nw
    import pandas as pd

    if not isinstance(source, str | Path):
        return nw.from_native(source, eager_only=True).to_pandas()
    path = Path(source)
    if not path.exists():
        raise InputError(f"there is no file {path}", code="file-not-found", file=path)
    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    except (ValueError, OSError) as error:  # of pandas and pyarrow, undecodable bytes included
        raise InputError(
            f"{path.name} cannot be read as a table: {str(error).strip()}",
            code="unreadable-file",
            hint="give a CSV file in UTF-8 with one header line, or a Parquet file",
            file=path,
        ) from error


def _ends(source: Any, table: Table, within: float | None) -> tuple[Floats, Floats]:
    """Return between what each cell lies by what is printed of it alone."""
    withheld = np.isnan(table.value)
    slack = 0.0 if within is None else float(within)
    lower = np.where(withheld, -np.inf, table.value - slack)
    upper = np.where(withheld, np.inf, table.value + slack)
    frame = _frame(source)
    if "lower" in frame.columns and "upper" in frame.columns:
        # Intervals of means say nothing of sums where the number of records is not told.
        times = _numbers(frame["count"]) if table.statistic == "mean" else 1.0
        printed = _numbers(frame["lower"]) * times, _numbers(frame["upper"]) * times
        lower = np.where(withheld & ~np.isnan(printed[0]), printed[0], lower)
        upper = np.where(withheld & ~np.isnan(printed[1]), printed[1], upper)
    return lower, upper


def _joined(
    tables: Sequence[Table], ends: Sequence[tuple[Floats, Floats]]
) -> tuple[Table, Floats, Floats]:
    """Return several published tables as one: what any of them tells of a cell is told."""
    if len(tables) == 1:
        return tables[0], *ends[0]
    linked = LinkedTables.of(tables)
    size = len(linked.joint)
    value, lower, upper = np.full(size, np.nan), np.full(size, -np.inf), np.full(size, np.inf)
    for table, (low, high), place in zip(tables, ends, linked.places, strict=True):
        shown = ~np.isnan(table.value)
        value[place[shown]] = table.value[shown]
        np.maximum.at(lower, place, low)
        np.minimum.at(upper, place, high)
    status = linked.joint.status
    assert status is not None
    known = np.where(np.isnan(value), status, np.int8(Status.SAFE))
    return linked.joint.replace(value=value, status=known), lower, upper


def _judged(audit: Audit, low: Floats, high: Floats, protection: float) -> PublishedAudit:
    """Judge by the intervals alone: a file does not tell protection levels."""
    # Programs find ends up to their tolerance; what is printed holds exactly.
    lower = np.maximum(audit._lower, low[audit.cells])
    upper = np.minimum(audit._upper, high[audit.cells])
    middle = np.where(np.isfinite(lower + upper), np.abs(lower + upper) / 2, 0.0)
    width = upper - lower
    point = width <= 1e-9 * np.maximum(1.0, middle)
    safe = ~point & (width >= 2 * middle * protection / 100 - 1e-9)
    found = {field.name: getattr(audit, field.name) for field in dataclasses.fields(audit)}
    found |= {"_lower": lower, "_upper": np.maximum(upper, lower), "_safe": safe}
    found |= {"safe": bool(safe.all()), "unsafe": int((~safe).sum())}
    found |= {"disclosed": int(point.sum()), "shortfall": 0.0 if safe.all() else 1.0}
    return PublishedAudit(**found, protection=protection)


def _dimension(
    name: str,
    codes: Sequence[str],
    given: Hierarchy | Sequence[Hierarchy] | None,
    path: Path | None,
    total: str,
) -> Dimension:
    if given is None and path is not None:
        given = _beside(path.parent, name)
    if given is None:
        leaves = [code for code in dict.fromkeys(codes) if code != total]
        return Dimension.of(name, Hierarchy.flat(leaves, total=total))
    dimension = Dimension.of(name, given)
    missing = sorted(set(codes) - set(dimension.codes))
    if missing:
        raise InputError(
            f"attribute {name!r} has {len(missing)} codes that its hierarchy lacks, such as "
            + ", ".join(repr(code) for code in missing[:3]),
            code="hierarchy-not-covering",
            hint="add them to the hierarchy",
            column=name,
            file=path,
        )
    return dimension


def file_name(name: str) -> str:
    """Return the name of an attribute as part of the name of a file."""
    return "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)


def hierarchy_file(name: str, number: int = 0) -> str:
    """Return the name of the file with one of an attribute's hierarchies.

    >>> hierarchy_file("size class"), hierarchy_file("region", 1)
    ('hierarchy_size_class.csv', 'hierarchy_region_2.csv')
    """
    return f"hierarchy_{file_name(name)}{f'_{number + 1}' if number else ''}.csv"


def _beside(folder: Path, name: str) -> list[Hierarchy] | None:
    """Return the hierarchies of an attribute that lie beside a published table, all of them."""
    found: list[Hierarchy] = []
    while (path := folder / hierarchy_file(name, len(found))).exists():
        found.append(Hierarchy.from_pairs(path))
    return found or None


def _are_counts(told: bool | None, path: Path | None) -> bool:
    """Return whether a table holds counts with no zero among the withheld."""
    if told is not None or path is None:
        return bool(told)
    for folder in (path.parent, path.parent.parent):  # linked tables have theirs one up
        try:
            settings = json.loads((folder / "evidence.json").read_text(encoding="utf-8"))[
                "settings"
            ]
            rules = [rule["name"] for rule in settings["rules"]]
            return settings["statistic"] == "count" and "zero-cells" not in rules
        except (OSError, ValueError, KeyError, TypeError):
            continue  # none, or the evidence of something else
    return False


def _numbers(column: Any) -> Floats:
    import pandas as pd

    # Whatever is printed in place of a withheld value (–, c, ..) is no number.
    numbers = np.asarray(pd.to_numeric(column, errors="coerce"), dtype=np.float64)
    endless = np.flatnonzero(np.isinf(numbers))
    if endless.size:
        raise InputError(
            f"{endless.size} values are infinite, the first in row {endless[0] + 1}",
            code="not-a-number",
            hint="leave the value of a withheld cell empty",
        )
    return numbers


def _status(frame: Any, values: Floats) -> Any:
    withheld = np.isnan(values)
    if "status" not in frame.columns:
        return np.where(withheld, np.int8(Status.PRIMARY), np.int8(Status.SAFE))
    words = {member.word: int(member) for member in Status}
    status = np.array([words.get(str(word), 0) for word in frame["status"]], dtype=np.int8)
    return np.where(withheld, np.where(status > 0, status, Status.PRIMARY), Status.SAFE).astype(
        np.int8
    )
