"""Auditing a published table from its file alone, as anybody could."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.intervals import Audit, audit_table
from discreet.audit.knowledge import least
from discreet.data.hierarchy import Hierarchy
from discreet.data.hierarchy_files import hierarchy_file
from discreet.data.linked import LinkedTables
from discreet.data.table import Dimension, Floats, Status, Table
from discreet.errors import InputError, nearest
from discreet.progress import Progress, silent
from discreet.report import Rows
from discreet.tables.printed import printed_numbers, read_printed
from discreet.tables.totals import find_total, is_total_word

__all__ = [
    "OWN",
    "PublishedAudit",
    "audit_published",
    "read_published",
]

#: The code of totals that is looked for first.
_TOTAL = "Total"
#: Columns that a release has besides its attributes.
OWN = (
    "value", "lower", "upper", "count", "status", "conf_status", "lower_95", "upper_95"
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class PublishedAudit(Audit):
    """What anybody can infer from published cells, judged without knowing what needs protection."""

    #: Percent of its middle that an interval must reach on both sides; 0: not be a point.
    protection: float = 0.0
    #: Withheld cells of a table of means of which the number of records can be computed exactly.
    counted: int = 0
    #: For each attribute the code of its total, or none where none was recognised.
    totals: Mapping[str, str | None] = dataclasses.field(default_factory=dict)

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
        if self.counted and not self.unsafe:
            return (
                f"not safe: anybody can compute how many records stand behind {self.counted:,} of "
                f"{self.sensitive:,} cells"
            )
        if self.safe:
            return f"safe: nobody can compute any of {self.sensitive:,} cells {near}"
        exactly = f", {self.disclosed:,} of them exactly" if self.protection else ""
        return (
            f"not safe: anybody can compute {self.unsafe:,} of {self.sensitive:,} cells "
            f"{near}{exactly}"
        )

    def rows(self) -> Rows:
        """Return the counts, and what was taken for totals."""
        head, lines = super().rows()
        told = [f"{name}: {code or 'none found'}" for name, code in self.totals.items()]
        return head, [*lines, ("totals", "; ".join(told))]


def read_published(
    source: Any,
    hierarchies: Mapping[str, Hierarchy | Sequence[Hierarchy]] | None = None,
    *,
    value: str = "value",
    total: str | None = None,
    within: float | None = None,
    counts: bool | None = None,
) -> Table:
    """Return a published table: withheld values are not a number, statuses are what is printed.

    Beside a file, `hierarchy_<attribute>.csv` (and `hierarchy_<attribute>.2.csv` …) is used where
    no hierarchy is given, and `evidence.json` where `counts` is not: releases are written with
    theirs. Attributes are all columns but value, count, status and intervals.

    Parameters
    ----------
    source
        Path of a CSV or Parquet file, or a frame. Any: of any library that narwhals reads.
    total
        The code of totals of attributes without a hierarchy; left out, the code that is printed as
        the sum of the others.
    counts
        Whether values are counts, of which nobody withholds a zero; left out, as `evidence.json`
        beside the file says, and without that whole numbers where only these are printed.
    """
    path = Path(source) if isinstance(source, str | Path) else None
    frame = read_printed(source)
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
    values = printed_numbers(frame[value])
    texts = {name: [str(code) for code in frame[name]] for name in by}

    def of(added: Floats) -> Table:
        return Table(*_placed(texts, given, path, added, total, within), added)

    plain = of(values)
    is_mean = "count" in frame.columns
    if is_mean:
        # Foreign files print numbers of records beside sums, too: what adds up is a sum.
        multiplied = of(values * printed_numbers(frame["count"]))
        is_mean = not _adds_up(plain, within) or _adds_up(multiplied, within)
    table = multiplied if is_mean else plain
    if np.isnan(values).any():  # of a complete table nothing is computed
        for name in by:
            if total not in texts[name] and not _hierarchies_of(name, given, path):
                _require_proof(texts, name, table.value, within)
    told = counts if counts is not None else _counts_beside(path)
    table = table.replace(
        status=_status(frame, values),
        statistic="mean" if is_mean else "count" if told else "sum",
        # Where nothing says what the values are, whole numbers are taken for what they look like.
        whole=True if told is None and not is_mean and within is None else None,
    )
    table._require_distinct()
    return table


def _placed(
    texts: Mapping[str, list[str]],
    given: Mapping[str, Any],
    path: Path | None,
    added: Floats,
    total: str | None,
    within: float | None,
) -> tuple[tuple[Dimension, ...], npt.NDArray[np.int32]]:
    """Return the dimensions of a published table, and the place of each cell in them.

    Where nothing says which code is that of totals, it is found by what adds up.
    """
    dimensions, codes = [], []
    for name in texts:
        hierarchy = _hierarchies_of(name, given, path)
        if hierarchy is None:
            known = total if total in texts[name] else _proven_total(texts, name, added, within)
            dimension = _flat(name, texts[name], known or _total_word(texts[name]))
        else:
            dimension = _covering(name, texts[name], hierarchy, path)
        dimensions.append(dimension)
        codes.append(np.array([dimension.index[code] for code in texts[name]], dtype=np.int32))
    return tuple(dimensions), np.stack(codes, axis=1)


def _adds_up(table: Table, within: float | None) -> bool:
    """Return whether there are totals of which all parts are printed, and all are their sums."""
    hidden = np.isnan(table.value)
    whole = np.asarray(abs(table.equations) @ hidden.astype(float)) == 0
    value = np.where(hidden, 0.0, table.value)
    gap = np.abs(table.equations @ value)[whole]
    parts = abs(table.equations)
    allowed = 1e-3 * (parts @ np.abs(value)) + (within or 0.0) * (parts @ np.ones(len(table)))
    return bool(gap.size and (gap <= allowed[whole]).all())


def audit_published(
    source: Any,
    hierarchies: Mapping[str, Hierarchy | Sequence[Hierarchy]] | None = None,
    *,
    value: str = "value",
    total: str | None = None,
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
    total
        The code of totals of attributes without a hierarchy, and that those which lack it have no
        totals; left out, the code that is printed as the sum of the others. Where no equation is
        recognised at all, or nothing shows that a total is one, the audit is refused, and so is
        the verdict "safe" where an attribute has no total that was recognised.
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
        read_published(one, hierarchies, value=value, total=total, within=within, counts=counts)
        for one in several
    ]
    ends = [_ends(one, table, within) for one, table in zip(several, tables, strict=True)]
    table, lower, upper = _joined(tables, ends)
    _require_equations(table)
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
    judged = _judged(audit, lower, upper, protection or 0.0, _totals(table))
    if judged.safe and len(judged.cells) and total is None:
        for one, each in zip(several, tables, strict=True):
            _require_totals(one, each, hierarchies or {})
    if len(several) == 1 and judged.is_of_means:
        known = _counted(several[0], table)
        judged = dataclasses.replace(judged, counted=known, safe=judged.safe and not known)
    return judged


def _counted(source: Any, table: Table) -> int:
    """Return of how many withheld cells the number of records beside means can be computed."""
    printed = printed_numbers(read_printed(source)["count"])
    numbers = Table(table.dimensions, table.codes, printed, status=table.status, statistic="count")
    hidden = np.isnan(printed)
    # Nobody withholds a mean of nothing.
    bounds = np.where(hidden, 1.0, printed), np.where(hidden, np.inf, printed)
    audit = audit_table(numbers, published=~hidden, exact=True, bounds=bounds, cells="suppressed")
    return int((audit._upper - audit._lower <= 1e-9).sum())


def _ends(source: Any, table: Table, within: float | None) -> tuple[Floats, Floats]:
    """Return between what each cell lies by what is printed of it alone."""
    withheld = np.isnan(table.value)
    slack = 0.0 if within is None else float(within)
    lower = np.where(withheld, -np.inf, table.value - slack)
    upper = np.where(withheld, np.inf, table.value + slack)
    frame = read_printed(source)
    if "lower" in frame.columns and "upper" in frame.columns:
        # Intervals of means say nothing of sums where the number of records is not told.
        times = printed_numbers(frame["count"]) if table.statistic == "mean" else 1.0
        printed = printed_numbers(frame["lower"]) * times, printed_numbers(frame["upper"]) * times
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


def _judged(
    audit: Audit,
    low: Floats,
    high: Floats,
    protection: float,
    totals: Mapping[str, str | None],
) -> PublishedAudit:
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
    return PublishedAudit(**found, protection=protection, totals=totals)


def _proven_total(
    texts: Mapping[str, Sequence[str]], name: str, value: Floats, within: float | None
) -> str | None:
    """Return the code of an attribute that is printed as the sum of the others."""
    columns = [codes for other, codes in texts.items() if other != name]
    lines = list(zip(*columns, strict=True)) if columns else [()] * len(value)
    return find_total(texts[name], lines, value, within or 0.0)


def _total_word(codes: Sequence[str]) -> str | None:
    return next(filter(is_total_word, codes), None)


def _require_proof(
    texts: Mapping[str, Sequence[str]], name: str, value: Floats, within: float | None
) -> None:
    """Refuse a code that is called a total, and that nothing printed shows to be one."""
    word = _total_word(texts[name])
    if word is None or set(texts[name]) == {word}:
        return
    if _proven_total(texts, name, value, within) is not None:
        return
    # It may be the sum of some of the others, which are sums themselves.
    raise InputError(
        f"nothing printed shows that {word!r} of attribute {name!r} is the sum of all other codes",
        code="unproven-total",
        hint=f"give the hierarchy of {name!r}, or say total={word!r} (--total {word!r}) if it is",
        column=name,
    )


def _flat(name: str, codes: Sequence[str], total: str | None) -> Dimension:
    """Return an attribute whose codes are parts of one total, which may be printed or not."""
    top = _TOTAL if total is None else total
    return Dimension.of(
        name, Hierarchy.flat([c for c in dict.fromkeys(codes) if c != top], total=top)
    )


def _covering(
    name: str,
    codes: Sequence[str],
    given: Hierarchy | Sequence[Hierarchy],
    path: Path | None,
) -> Dimension:
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


def _require_equations(table: Table) -> None:
    """Refuse to judge where nothing is printed, or no equation ties a withheld cell to anything."""
    withheld = np.flatnonzero(np.isnan(table.value))
    if withheld.size == len(table):
        raise InputError(
            f"none of {len(table)} values is a number",
            code="nothing-printed",
            hint="name the column of values with value= (--value)",
        )
    if not withheld.size or table.equations[:, withheld].nnz:
        return
    raise InputError(
        f"no equation was recognised for any of {withheld.size} withheld cells: no code of "
        + " or of ".join(table.by)
        + " is the sum of the others",
        code="no-equations",
        hint="name the code of totals with total= (--total CODE), or give the hierarchies; a table "
        "without totals cannot be judged",
    )


def _require_totals(source: Any, table: Table, given: Mapping[str, Any]) -> None:
    """Refuse to call a table safe of which sums over an attribute may be printed unrecognised."""
    path = Path(source) if isinstance(source, str | Path) else None
    for place, dimension in enumerate(table.dimensions):
        codes = np.unique(table.codes[:, place])
        if len(codes) > 1 and codes[0] != 0 and not _hierarchies_of(dimension.name, given, path):
            raise InputError(
                f"no code of {dimension.name!r} is recognised as the sum of others, and if one is, it "
                "may give withheld cells away",
                code="no-total",
                hint=f"give the hierarchy of {dimension.name!r}, or the code of totals with total= "
                "(--total CODE), also where the other attributes alone have it",
                column=dimension.name,
            )


def _totals(table: Table) -> dict[str, str | None]:
    """Return the code of each attribute's total, none where no cell has it."""
    return {
        dimension.name: dimension.total if (table.codes[:, place] == 0).any() else None
        for place, dimension in enumerate(table.dimensions)
    }


def _hierarchies_of(name: str, given: Mapping[str, Any], path: Path | None) -> Any:
    """Return the hierarchies of an attribute, as given or beside the file; none: nothing tells.

    Any: one hierarchy or several.
    """
    return given.get(name) or (_beside(path.parent, name) if path is not None else None)


def _beside(folder: Path, name: str) -> list[Hierarchy] | None:
    """Return the hierarchies of an attribute that lie beside a published table, all of them."""
    found: list[Hierarchy] = []
    while (path := folder / hierarchy_file(name, len(found))).exists():
        found.append(Hierarchy.from_pairs(path))
    return found or None


def _counts_beside(path: Path | None) -> bool | None:
    """Return whether a table holds counts with no zero among the withheld; none: nothing tells."""
    if path is None:
        return None
    for folder in (path.parent, path.parent.parent):  # linked tables have theirs one up
        try:
            settings = json.loads((folder / "evidence.json").read_text(encoding="utf-8"))[
                "settings"
            ]
            rules = [rule["name"] for rule in settings["rules"]]
            return settings["statistic"] == "count" and "zero-cells" not in rules
        except (OSError, ValueError, KeyError, TypeError):
            continue  # none, or the evidence of something else
    return None


def _status(frame: Any, values: Floats) -> Any:
    withheld = np.isnan(values)
    if "status" not in frame.columns:
        return np.where(withheld, np.int8(Status.PRIMARY), np.int8(Status.SAFE))
    words = {member.word: int(member) for member in Status}
    status = np.array([words.get(str(word), 0) for word in frame["status"]], dtype=np.int8)
    return np.where(withheld, np.where(status > 0, status, Status.PRIMARY), Status.SAFE).astype(
        np.int8
    )
