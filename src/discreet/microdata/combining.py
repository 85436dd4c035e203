"""Combine: one honest estimate from several synthetic files.

Estimates from m files vary because the files were drawn; each kind of synthesis has its own rule
for how much that adds to, or takes from, the variance that each file shows by itself.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InputError
from discreet.microdata.columns import Numbers, codes, is_number, numbers
from discreet.microdata.synthetic_files import published
from discreet.report import Report, Rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Combined", "Estimate", "combine", "combined_estimate"]

#: An analysis of one file: the estimates and their variances, by name. Any: a frame.
Analysis = Callable[[Any], tuple[Mapping[str, float], Mapping[str, float]]]
_KINDS = ("fully", "partially", "simple", "proper")


@dataclasses.dataclass(frozen=True)
class Estimate(Report):
    """One figure with its interval."""

    name: str
    estimate: float
    variance: float
    #: Degrees of freedom; infinite for the normal distribution.
    freedom: float
    low: float
    high: float
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Combined(Report):
    """Estimates from several synthetic files, by one rule."""

    kind: str
    files: int
    level: float
    estimates: tuple[Estimate, ...]

    def __getitem__(self, name: str) -> Estimate:
        for one in self.estimates:
            if one.name == name:
                return one
        raise InputError(
            f"there is no estimate {name!r}",
            code="unknown-estimate",
            hint="choose one of " + ", ".join(one.name for one in self.estimates),
        )

    def rows(self) -> Rows:
        """Return one line per estimate."""
        return ("term", "estimate", "error", "freedom", "low", "high", "note"), [
            (e.name, e.estimate, math.sqrt(e.variance), e.freedom, e.low, e.high, e.note)
            for e in self.estimates
        ]


def combined_estimate(
    estimates: Sequence[float],
    variances: Sequence[float],
    *,
    kind: str,
    ratio: float = 1.0,
    level: float = 0.95,
    name: str = "",
) -> Estimate:
    """Return one estimate from those of m files and their variances.

    With q̄ and v̄ the means, b the variance between files, `ratio` k/n synthetic per original record:

    - fully (Raghunathan, Reiter and Rubin 2003): T = (1 + 1/m) b − v̄; where that is not positive,
      T = (k/n) v̄ with m − 1 degrees of freedom.
    - partially (Reiter 2003): T = v̄ + b/m.
    - simple (Raab, Nowok and Dibben 2016): T = v̄ (k/n + 1/m); proper: v̄ (k/n + (1 + k/n)/m).

    >>> found = combined_estimate([10.0, 12.0, 11.0], [1.0, 1.2, 0.8], kind="partially")
    >>> found.estimate, round(found.variance, 4), round(found.freedom, 1)
    (11.0, 1.3333, 32.0)
    """
    import scipy.stats

    m = len(estimates)
    _require_kind(kind, m)
    _require_level(level)
    _require_figures(name, estimates, variances, ratio)
    middle, within = float(np.mean(estimates)), float(np.mean(variances))
    between = float(np.var(estimates, ddof=1)) if m > 1 else 0.0
    freedom, note = math.inf, ""
    if kind == "partially":
        variance = within + between / m
        if between > 0:
            freedom = (m - 1) * (1 + within / (between / m)) ** 2
    elif kind == "fully":
        spread = (1 + 1 / m) * between
        variance = spread - within
        if variance > 0:
            freedom = (m - 1) * (1 - within / spread) ** 2
        else:
            variance, freedom = ratio * within, float(m - 1)
            note = "the variance between files is small: more files would tell more"
    elif kind == "simple":
        variance = within * (ratio + 1 / m)
    else:
        variance = within * (ratio + (1 + ratio) / m)
    # Fewer than one degree of freedom gives intervals without end, which tell nobody anything.
    freedom = max(freedom, 1.0)
    reach = float(scipy.stats.t.ppf((1 + level) / 2, min(freedom, 1e9))) * math.sqrt(variance)
    return Estimate(name, middle, variance, freedom, middle - reach, middle + reach, note)


def combine(
    files: Any,
    analysis: str | Analysis,
    *,
    kind: str | None = None,
    originals: int | None = None,
    level: float = 0.95,
) -> Combined:
    """Return estimates from synthetic files with intervals that hold for the original population.

    Parameters
    ----------
    files
        A synthetic release, the folder it was written to, or a list of files or frames. A file that
        comes twice, that is not what its evidence says, or that comes from another release is
        refused. Any: every library has its own frame.
    analysis
        A linear regression as text, "income ~ age + sex", or a function of a frame that returns
        estimates and variances by name.
    kind
        How the files were made: fully, partially, simple or proper; releases and their folders say
        it themselves, and another word is refused.
    originals
        The number of original records, for the rules that need it; by default what the release says,
        or as many as a file has.

    Examples
    --------
    >>> import pandas as pd
    >>> files = [
    ...     pd.DataFrame({"x": range(9), "y": [2 * n + (n * s) % 3 for n in range(9)]})
    ...     for s in (1, 2)
    ... ]
    >>> found = combine(files, "y ~ x", kind="partially")
    >>> 1.8 < found["x"].estimate < 2.2
    True
    """
    _require_level(level)
    _require_originals(originals)
    if not isinstance(analysis, str) and not callable(analysis):
        raise InputError(
            f"an analysis is a formula or a function, found {type(analysis).__name__}",
            code="parameter-type",
            hint='write "income ~ age + sex", or a function of a frame that returns estimates and '
            "variances by name",
            parameter="analysis",
        )
    tables, said, known = _opened(files)
    if None not in (originals, known) and originals != known:
        raise InputError(
            f"the files were made from {known:,} records, so {originals:,} would give wrong intervals",
            code="wrong-rule",
            hint="leave out originals",
            parameter="originals",
        )
    if said is not None and kind is not None and kind != said:
        raise InputError(
            f"the files were made for the rule {said!r}, so {kind!r} would give wrong intervals",
            code="wrong-rule",
            hint="leave out kind",
            parameter="kind",
        )
    rule = said or kind
    if rule is None:
        raise InputError(
            "nothing says how the files were made",
            code="missing-parameter",
            hint="write kind='fully', 'partially' or 'simple', or give the folder of the release",
            parameter="kind",
        )
    _require_kind(rule, len(tables))
    found: list[tuple[Mapping[str, float], Mapping[str, float]]]
    if isinstance(analysis, str):
        found = _regressions(tables, analysis)
    else:
        found = [_analysed(analysis(table.to_pandas())) for table in tables]
        if any(set(one) != set(found[0][0]) for one, _ in found):
            raise _bad_analysis("gives other estimates for one file than for another")
    ratio = tables[0].num_rows / (originals or known or tables[0].num_rows)
    names = list(found[0][0])
    estimates = tuple(
        combined_estimate(
            [float(one[name]) for one, _ in found],
            [float(two[name]) for _, two in found],
            kind=rule,
            ratio=ratio,
            level=level,
            name=name,
        )
        for name in names
    )
    return Combined(rule, len(tables), level, estimates)


def _require_level(level: float) -> None:
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InputError(
            f"a level lies between 0 and 1, found {level!r}",
            code="parameter-range",
            hint="write level=0.95",
            parameter="level",
        )


def _require_originals(originals: int | None) -> None:
    if originals is None:
        return
    whole = isinstance(originals, Integral) and not isinstance(originals, bool)
    if not whole or originals < 1:
        raise InputError(
            f"the number of original records is a whole one from 1 on, found {originals!r}",
            code="parameter-range",
            hint="leave out originals where the release says it",
            parameter="originals",
        )


def _require_figures(
    name: str, estimates: Sequence[float], variances: Sequence[float], ratio: float
) -> None:
    """Raise an InputError where figures are none, or no variance."""
    word = f"of {name!r} " if name else ""
    if len(variances) != len(estimates) or not len(estimates):
        raise _bad_analysis(
            f"gives {len(estimates)} estimates {word}and {len(variances)} variances"
        )
    if not (np.isfinite(estimates).all() and np.isfinite(variances).all()):
        raise _bad_analysis(f"gives an estimate or variance {word}that is no number")
    if min(variances) < 0:
        raise _bad_analysis(f"gives a variance {word}below 0")
    if not (math.isfinite(ratio) and ratio > 0):
        raise InputError(
            f"the ratio of synthetic to original records is above 0, found {ratio!r}",
            code="parameter-range",
            parameter="ratio",
        )


def _analysed(found: Any) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return what a function said of a file. Any: somebody else wrote it."""
    if (
        not isinstance(found, tuple)
        or len(found) != 2
        or not all(isinstance(part, Mapping) for part in found)
        or set(found[0]) != set(found[1])
        or not found[0]
    ):
        raise _bad_analysis("does not return two mappings with the same names")
    for part in found:
        for value in part.values():
            if isinstance(value, bool) or not isinstance(value, Real):
                raise _bad_analysis(f"returns {type(value).__name__} where a number is needed")
    return found


def _bad_analysis(what: str) -> InputError:
    return InputError(
        f"the analysis {what}",
        code="bad-analysis",
        hint="return ({'mean': 3.1}, {'mean': 0.2}): estimates and their variances, by name",
    )


def _require_kind(kind: str, m: int) -> None:
    if kind == "none":
        raise InputError(
            "no rule combines these files: their method keeps moments exactly, or adds noise that no "
            "file shows",
            code="no-rule",
            hint="use the estimates of one file, without an interval",
        )
    if kind not in _KINDS:
        raise InputError(
            f"there is no rule {kind!r}",
            code="unknown-rule",
            hint="choose one of " + ", ".join(_KINDS),
            parameter="kind",
        )
    if kind in ("fully", "partially") and m < 2:
        raise InputError(
            f"the rule {kind!r} needs at least two files, found {m}",
            code="too-few-files",
            hint="synthesise with m=5, or m=20 for fully synthetic files",
        )


def _opened(files: Any) -> tuple[list[pa.Table], str | None, int | None]:
    """Return the files, how they say they were made, and from how many records."""
    method = getattr(files, "synthesizer", None)
    if method is not None:
        made = [file.arrow() for file in files.files]
        return made, method.inference, None if files.is_private else len(files.original)
    found = published(files)
    return found.tables, found.rule, found.originals


def _regressions(
    tables: Sequence[pa.Table], text: str
) -> list[tuple[Mapping[str, float], Mapping[str, float]]]:
    """Return coefficients of one linear regression in every file, and their variances."""
    left, _, right = text.partition("~")
    goal, terms = left.strip(), [term.strip() for term in right.split("+")]
    columns = tables[0].column_names
    if len({goal, *terms}) <= len(terms):
        raise InputError(
            "the regression names a column twice",
            code="repeated-column",
            hint='write "income ~ age + sex"',
        )
    for name in (goal, *terms):
        if name not in columns:
            raise InputError(
                f"the regression names {name!r}, which is no column of the files",
                code="unknown-column",
                hint='write "income ~ age + sex"; columns are ' + ", ".join(columns),
                column=name,
            )
    levels = {
        term: sorted({v for t in tables for v in _texts(t, term)})[1:]
        for term in terms
        if not is_number(tables[0].schema.field(term).type)
    }
    return [_regression(table, goal, terms, levels) for table in tables]


def _texts(table: pa.Table, name: str) -> list[str]:
    import pyarrow as pa

    return [str(value) for value in codes(table.column(name).cast(pa.string()))[1].to_pylist()]


def _regression(
    table: pa.Table, goal: str, terms: Sequence[str], levels: Mapping[str, Sequence[str]]
) -> tuple[dict[str, float], dict[str, float]]:
    import pyarrow as pa

    names, design = ["(constant)"], [np.ones(table.num_rows)]
    for term in terms:
        if term not in levels:
            names.append(term)
            design.append(numbers(table.column(term), name=term))
            continue
        places, values = codes(table.column(term).cast(pa.string()))
        words = [str(value) for value in values.to_pylist()]
        for level in levels[term]:
            here = places == words.index(level) if level in words else np.zeros(len(places), bool)
            names.append(f"{term}={level}")
            design.append(np.where(places < 0, np.nan, here.astype(float)))
    rows: Numbers = np.stack(design, axis=1)
    told = numbers(table.column(goal), name=goal)
    known = ~np.isnan(rows).any(axis=1) & ~np.isnan(told)
    rows, told = rows[known], told[known]
    if len(rows) <= rows.shape[1]:
        raise InputError(
            f"{len(rows)} complete records are too few for {rows.shape[1]} coefficients",
            code="too-few-records",
        )
    inverse = np.linalg.pinv(rows.T @ rows)
    slope = inverse @ (rows.T @ told)
    rest = told - rows @ slope
    variance = np.diag(inverse) * float(rest @ rest) / (len(rows) - rows.shape[1])
    return (
        dict(zip(names, map(float, slope), strict=True)),
        dict(zip(names, map(float, variance), strict=True)),
    )
