"""How useful a release still is: every measure that applies, before beside after."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from discreet.errors import InputError, nearest
from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.report import Report, Rows

__all__ = ["UtilityReport", "utility"]


@dataclasses.dataclass(frozen=True)
class UtilityReport(Report):
    """What a release lost: `value` is the mean loss of a value, from 0 (nothing) to 1 (all)."""

    value: float
    verdict: str
    comparisons: tuple[Comparison, ...]

    def __getitem__(self, measure: str) -> Comparison:
        for comparison in self.comparisons:
            if comparison.measure == measure:
                return comparison
        names = [comparison.measure for comparison in self.comparisons]
        guess = nearest(measure, names)
        raise InputError(
            f"the report has no measure {measure!r}",
            code="unknown-measure",
            hint=f"write {guess!r}" if guess else "choose one of " + ", ".join(names),
        )

    def rows(self) -> Rows:
        """Return one line per measure."""
        return ("measure", "loss", "meaning"), [
            (found.measure, found.value, found.meaning) for found in self.comparisons
        ]


def utility(
    original: Any,
    released: Any,
    *,
    measures: Sequence[UtilityMeasure] | None = None,
    analyses: Sequence[UtilityMeasure] = (),
    keys: Sequence[str] | None = None,
    holdout: Any = None,
    rng: Randomness | None = None,
    progress: Progress = silent,
) -> UtilityReport:
    """Return what a release lost, by every measure that applies or those given.

    Parameters
    ----------
    original, released
        The file before and after: datasets, releases or frames. Any: every library has its own.
    measures
        What to measure; by default every member of the family `utility`.
    analyses
        Uses of one's own, added to these: `dc.Regression("pay", on=["age"])`,
        `dc.ContingencyTables(by=["job", "sex"])`, or `dc.Analysis("mean pay", function)`.
    keys
        The columns an intruder knows; the quasi-identifiers by default.
    holdout
        Records like the original ones that the release was not made from, for models to be tested
        on.
    rng
        Draws the records that models learn from.

    Examples
    --------
    >>> import pandas as pd
    >>> raw = pd.DataFrame({"age": [20, 30, 40], "pay": [5.0, 6.0, 9.0]})
    >>> utility(raw, raw).value
    0.0
    """
    from discreet.microdata.utilities.marginals import Marginals
    from discreet.microdata.utilities.value_loss import ValueLoss

    pair = Pair.of(original, released, keys=keys, holdout=holdout)
    chosen = [*(default_measures() if measures is None else measures), *analyses]
    rng = rng or Randomness.secure()
    found = []
    for done, measure in enumerate(chosen):
        progress("utility", done, len(chosen))
        if (pair.paired or not measure.needs_origin) and measure.applies(pair):
            found.append(measure.compare(pair, rng=rng))
    progress("utility", len(chosen), len(chosen))
    # Values are lost one by one where records correspond, and in tables where they do not.
    main: UtilityMeasure = ValueLoss() if pair.paired else Marginals()
    overall = next((c for c in found if c.measure == main.name), None)
    overall = overall or main.compare(pair, rng=rng)
    return UtilityReport(overall.value, overall.meaning, tuple(found))


def default_measures() -> list[UtilityMeasure]:
    """Return every utility measure with its defaults."""
    from discreet.registry import members

    return [member() for member in members("utility").values()]  # type: ignore[misc]  # members of this family
