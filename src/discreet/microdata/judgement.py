"""Judge a synthetic file: what it keeps, what intruders gain, each beside a control.

A bootstrap of the original must fail the attacks and pass the utility; columns drawn independently
must fail the utility. Figures without these two beside them mean little.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.data.dataset import as_dataset
from discreet.errors import InputError
from discreet.microdata.aligning import aligned, differ
from discreet.microdata.assessment import RiskReport, risk
from discreet.microdata.comparison import UtilityReport, utility
from discreet.microdata.copies import shared_beyond_chance
from discreet.microdata.risks._base import RiskMeasure
from discreet.microdata.utilities._base import UtilityMeasure
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.report import Report, Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = [
    "FEWEST",
    "Judgement",
    "SyntheticRisk",
    "Unpaired",
    "judge",
    "like",
    "linkage_risk",
    "synthetic_risk",
    "synthetic_utility",
]


#: Attacks on fewer records tell nothing.
FEWEST = 40


@dataclasses.dataclass(frozen=True)
class SyntheticRisk(Report):
    """What attacks on a synthetic file gain, beside what they gain where they must succeed."""

    found: RiskReport
    #: The same attacks on original records drawn with replacement, or as they are.
    bootstrap: RiskReport
    remedy: str = ""
    #: What was not tried, in words.
    untried: str = ""

    def __getitem__(self, measure: str) -> Any:
        return self.found[measure]

    @property
    def leaks(self) -> tuple[str, ...]:
        """The attacks that gain something beyond doubt (their 95 % interval is above chance)."""
        return tuple(f.measure for f in self.found.findings if _is_leak(f.facts))

    @property
    def verdict(self) -> str:
        """The risk in one sentence."""
        if not any("low" in finding.facts for finding in self.found.findings):
            words = f"people linked to their records: {self.found.verdict}"
            told = [f.meaning for f in self.found.findings if f.measure == "interval-disclosure"]
            return "; ".join([words, *told])
        untried = f"; {self.untried}" if self.untried else ""
        if not self.leaks:
            tried = ", ".join(f.measure for f in self.found.findings)
            return f"none of the attacks gains anything beyond chance: {tried}{untried}"
        words = next(f.meaning for f in self.found.findings if f.measure == self.leaks[0])
        more = f"; {self.remedy}" if self.remedy else ""
        return f"the file leaks ({', '.join(self.leaks)}): {words}{more}{untried}"

    def rows(self) -> Rows:
        """Return one line per attack, beside it the figure of the control, which must be high."""
        control = {f.measure: f.value for f in self.bootstrap.findings}
        return ("attack", "gain", "gain on the control", "leaks", "meaning"), [
            (
                f.measure,
                f.value,
                control.get(f.measure, 1.0),  # of records as they are every number is told
                "yes" if f.measure in self.leaks else "no",
                f.meaning,
            )
            for f in self.found.findings
        ]


@dataclasses.dataclass(frozen=True)
class Judgement(Report):
    """A synthetic file judged: utility, its control, and the risk where a holdout was given."""

    utility: UtilityReport
    #: Mean distance of pairs of columns, of columns drawn independently of each other.
    independent: float
    risk: SyntheticRisk | None = None

    @property
    def verdict(self) -> str:
        """The judgement in a sentence or two."""
        kept = f"{self.utility.verdict} ({self.independent:.3f} if columns were independent)"
        if self.risk is None:
            return f"{kept}; no attack was tried, which needs a holdout"
        return f"{kept}; {self.risk.verdict}"

    def rows(self) -> Rows:
        """Return every measure, attacks after utilities."""
        lines: list[tuple[Any, ...]] = [
            ("utility", c.measure, c.value, c.meaning) for c in self.utility.comparisons
        ]
        control = "columns drawn independently: what a useless file loses"
        lines.append(("control", "independent columns", self.independent, control))
        if self.risk is not None:
            lines += [("risk", f.measure, f.value, f.meaning) for f in self.risk.found.findings]
            lines += [
                ("control", f"{f.measure} on a bootstrap", f.value, f.meaning)
                for f in self.risk.bootstrap.findings
            ]
        return ("kind", "measure", "value", "meaning"), lines


def judge(
    synthetic: Any,
    original: Any,
    holdout: Any = None,
    *,
    rng: Randomness | None = None,
    progress: Progress = silent,
) -> Judgement:
    """Judge a synthetic file from any tool against the records it was made from.

    Parameters
    ----------
    synthetic, original
        The files: datasets, frames or paths. Any: every library has its own frame.
    holdout
        Records like the original ones that the file was *not* made from, best as many as the
        original has. Without them no attack is tried: what is guessed right of people in the file
        means nothing without what is guessed right of others. A holdout that shares more records
        with the original than chance explains is refused, and one of fewer than 40 records.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50] * 30, "ill": ["flu", "gout"] * 60})
    >>> found = judge(people.sample(100, random_state=1), people)
    >>> found.utility["marginals"].facts["tv2"] < 0.2, found.risk
    (True, None)
    """
    before, after = as_dataset(original), as_dataset(synthetic)
    other = None if holdout is None else as_dataset(holdout)
    shared = [name for name in before.columns if name in after.columns]
    if not shared:
        raise InputError(
            "the synthetic file and the original have no column in common",
            code="no-shared-columns",
            hint="give both files the same header",
        )
    for file, word in ((before, "original"), (after, "synthetic file"), (other, "holdout")):
        if file is not None and len(file) == 0:
            raise InputError(
                f"the {word} holds no records, so nothing can be said of it",
                code="too-few-records",
                hint="give the whole file",
            )
    if other is not None:
        for file, word in ((before, "original"), (other, "holdout")):
            if len(file) < FEWEST:
                raise InputError(
                    f"the {word} holds {len(file)} records, of which attacks tell nothing",
                    code="too-few-records",
                    hint=f"give at least {FEWEST}, or no holdout",
                )
    after = _in_types_of(before, after, "the synthetic file")
    if other is not None:
        other = _in_types_of(before, other, "the holdout")
        _require_apart(before, other, shared)
    rng = rng or Randomness.secure()
    found = synthetic_utility(before, after, holdout=other, rng=rng, progress=progress)
    return Judgement(
        found,
        independent_columns(before, rng=rng),
        None if other is None else synthetic_risk(before, after, other, rng=rng, progress=progress),
    )


def _in_types_of(original: Dataset, file: Dataset, word: str) -> Dataset:
    """Return a file with its columns in the types of the original; a copy stays a copy."""
    types = {field.name: field.type for field in original.relation.schema}
    found = [
        field.name
        for field in file.relation.schema
        if field.name in types and differ(field.type, types[field.name])
    ]
    if not found:
        return file
    return like(file, aligned(file.arrow(), original.arrow(found), file=word))


def _require_apart(original: Dataset, holdout: Dataset, shared: Sequence[str]) -> None:
    """Raise an InputError where people of the holdout stand in the original, too.

    Attacks gain as much on people of both files, so that every attack would seem to fail.
    """
    hidden = {*original.schema.identifiers, original.schema.weight}
    names = [name for name in shared if name not in hidden and name in holdout.columns]
    if not names:
        return
    found = shared_beyond_chance(holdout.arrow(names), original.arrow(names), names)
    if found:
        raise InputError(
            f"{found:,} of the {len(holdout):,} records of the holdout stand in the original, more "
            "than chance explains, so that attacks would tell nothing",
            code="overlapping-holdout",
            hint="give records that the file was not made from: set them aside before synthesis",
            parameter="holdout",
        )


def synthetic_utility(
    original: Dataset,
    released: Dataset,
    *,
    holdout: Dataset | None = None,
    measures: Sequence[UtilityMeasure] | None = None,
    rng: Randomness,
    progress: Progress = silent,
) -> UtilityReport:
    """Return what a synthetic file lost, by every measure that needs no corresponding records."""
    from discreet.microdata.comparison import default_measures

    chosen = [m for m in (measures or default_measures()) if not m.needs_origin]
    return utility(
        original, Unpaired(released), measures=chosen, holdout=holdout, rng=rng, progress=progress
    )


def synthetic_risk(
    original: Dataset,
    released: Dataset,
    holdout: Dataset,
    *,
    remedy: str = "",
    untried: str = "",
    rng: Randomness,
    progress: Progress = silent,
) -> SyntheticRisk:
    """Return what attacks gain on a synthetic file, and on a bootstrap of the original."""
    from discreet.microdata.assessment import default_measures

    attacks: list[RiskMeasure] = [m for m in default_measures() if not m.needs_origin]
    again = original.arrow().take(rng.integers(0, len(original), max(len(released), 1)))
    copies = like(original, again)
    found, control = (
        risk(
            original, Unpaired(file), measures=attacks, holdout=holdout, rng=rng, progress=progress
        )
        for file in (released, copies)
    )
    return SyntheticRisk(found, control, remedy, untried)


def linkage_risk(original: Dataset, released: Dataset, *, rng: Randomness) -> SyntheticRisk:
    """Return how many people are linked to records that stay in their places, and numbers told."""
    from discreet.microdata.risks.interval_disclosure import IntervalDisclosure
    from discreet.microdata.risks.record_linkage import RecordLinkage

    ways: list[RiskMeasure] = [RecordLinkage("exact"), RecordLinkage("distance")]
    found, control = (
        risk(original, file, measures=measures, rng=rng)
        for file, measures in ((released, [*ways, IntervalDisclosure()]), (original, ways))
    )
    return SyntheticRisk(found, control)


def independent_columns(original: Dataset, *, rng: Randomness) -> float:
    """Return the mean distance of pairs of columns when each is shuffled on its own."""
    import pyarrow as pa

    from discreet.microdata.utilities.marginals import Marginals

    rows = original.arrow()
    mixed = pa.table(
        {n: rows.column(n).take(rng.permutation(len(rows))) for n in rows.column_names}
    )
    shuffled = Unpaired(like(original, mixed))
    return utility(original, shuffled, measures=[Marginals()], rng=rng).value


@dataclasses.dataclass(frozen=True)
class Unpaired:
    """A file whose records come from no original record, as measures take it."""

    dataset: Dataset
    corresponds: bool = False


def like(original: Dataset, rows: pa.Table) -> Dataset:
    """Return rows as a dataset with the schema of the original, held in this process."""
    from discreet.data.engines import connect

    engine = original.engine if original.engine.name == "duckdb" else connect()
    return original.replace(relation=engine.load(rows))


def _is_leak(facts: Any) -> bool:
    """Whether the interval of an attack lies above chance."""
    if "AUC" in facts:
        return bool(facts["low"] > 0.5)
    if "ratio" in facts:
        return bool(facts["high"] < 1)
    return bool(facts.get("low", 0.0) > 0)
