"""Auditing a published table from its file alone, as anybody could."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.audit.intervals import Audit, audit_table
from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Dimension, Floats, Status, Table
from discreet.errors import InputError, nearest
from discreet.progress import Progress, silent

__all__ = ["audit_published", "read_published"]

_OWN = ("value", "lower", "upper", "count", "status", "conf_status")


def read_published(
    source: Any,
    hierarchies: Mapping[str, Hierarchy | Sequence[Hierarchy]] | None = None,
    *,
    value: str = "value",
    total: str = "Total",
) -> Table:
    """Return a published table: withheld values are not a number, statuses are what is printed.

    Beside a file, `hierarchy_<attribute>.csv` is used where no hierarchy is given: releases are
    written with theirs. Attributes are all columns but value, count, status and intervals.

    Parameters
    ----------
    source
        Path of a CSV or Parquet file, or a frame. Any: of any library that narwhals reads.
    """
    import narwhals.stable.v1 as nw
    import pandas as pd

    path = Path(source) if isinstance(source, str | Path) else None
    if path is not None:
        if not path.exists():
            raise InputError(f"there is no file {path}", code="file-not-found", file=path)
        texts = {"dtype": str, "keep_default_na": False}
        parquet = path.suffix == ".parquet"
        frame = pd.read_parquet(path) if parquet else pd.read_csv(path, **texts)  # type: ignore[call-overload]
    else:
        frame = nw.from_native(source, eager_only=True).to_pandas()
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
    by = [name for name in frame.columns if name not in _OWN and name != value]
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
    counts = _numbers(frame["count"]) if is_mean else None
    table = Table(
        tuple(dimensions),
        np.stack(codes, axis=1),
        values if counts is None else values * counts,
        status=_status(frame, values),
        statistic="mean" if is_mean else "sum",
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
    exact: bool = True,
    progress: Progress = silent,
) -> Audit:
    """Compute what anybody can infer of the withheld cells of a published table.

    Parameters
    ----------
    within
        How far a printed value may lie from the true one (rounding, bounded noise); without it
        printed values are exact.
    protection
        Percent of its middle that each interval must reach on both sides to be called safe;
        without it a cell is unsafe only where it can be computed exactly.

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
    table = read_published(source, hierarchies, value=value, total=total)
    withheld = np.isnan(table.value)
    bounds, published = None, ~withheld
    if within is not None:
        slack = np.full(len(table), float(within))
        lower, upper = table.value - slack, table.value + slack
        bounds = _bounds(table, lower, upper)
        published = np.zeros(len(table), dtype=bool)
        table = table.replace(status=np.full(len(table), np.int8(Status.PRIMARY)))
    intervals = _printed_intervals(source, table)
    if intervals is not None and within is None:
        bounds = _bounds(table, *intervals)
    audit = audit_table(
        table, published=published, exact=exact, bounds=bounds, cells="sensitive", progress=progress
    )
    return _judged(audit, protection or 0.0)


def _bounds(table: Table, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    known = ~np.isnan(table.value)
    negative = bool((table.value[known] < 0).any())
    lower = np.where(np.isnan(lower), -np.inf, lower)
    lower = lower if negative else np.maximum(lower, 0.0)
    return lower, np.where(np.isnan(upper), np.inf, upper)


def _printed_intervals(source: Any, table: Table) -> tuple[Floats, Floats] | None:
    import narwhals.stable.v1 as nw
    import pandas as pd

    if isinstance(source, str | Path):
        path = Path(source)
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    else:
        frame = nw.from_native(source, eager_only=True).to_pandas()
    if "lower" not in frame.columns or "upper" not in frame.columns:
        return None
    lower, upper = _numbers(frame["lower"]), _numbers(frame["upper"])
    shown = ~np.isnan(table.value)
    return np.where(shown, table.value, lower), np.where(shown, table.value, upper)


def _judged(audit: Audit, protection: float) -> Audit:
    """Judge by the intervals alone: a file does not tell protection levels."""
    lower, upper = audit._lower, audit._upper
    middle = np.where(np.isfinite(lower + upper), np.abs(lower + upper) / 2, 0.0)
    width = upper - lower
    point = width <= 1e-9 * np.maximum(1.0, middle)
    safe = ~point & (width >= 2 * middle * protection / 100 - 1e-9)
    return dataclasses.replace(
        audit,
        safe=bool(safe.all()),
        unsafe=int((~safe).sum()),
        disclosed=int(point.sum()),
        shortfall=0.0 if safe.all() else 1.0,
        _safe=safe,
    )


def _dimension(
    name: str,
    codes: Sequence[str],
    given: Hierarchy | Sequence[Hierarchy] | None,
    path: Path | None,
    total: str,
) -> Dimension:
    if given is None and path is not None:
        beside = path.parent / f"hierarchy_{name}.csv"
        given = Hierarchy.from_pairs(beside) if beside.exists() else None
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


def _numbers(column: Any) -> Floats:
    import pandas as pd

    # Whatever is printed in place of a withheld value (–, c, ..) is no number.
    numbers = pd.to_numeric(column, errors="coerce")
    return np.asarray(numbers, dtype=np.float64)


def _status(frame: Any, values: Floats) -> Any:
    withheld = np.isnan(values)
    if "status" not in frame.columns:
        return np.where(withheld, np.int8(Status.PRIMARY), np.int8(Status.SAFE))
    words = {member.word: int(member) for member in Status}
    status = np.array([words.get(str(word), 0) for word in frame["status"]], dtype=np.int8)
    return np.where(withheld, np.where(status > 0, status, Status.PRIMARY), Status.SAFE).astype(
        np.int8
    )
