"""How risky a release is: every measure that applies, each with its intruder in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.errors import InputError, nearest
from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding, RiskMeasure
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.report import Report, Rows

__all__ = ["RiskBelow", "RiskReport", "risk"]


@dataclasses.dataclass(frozen=True)
class RiskReport(Report):
    """The risk of a release.

    `value` is the largest share of people that any of the linking intruders finds, `verdict` says
    it in words, `findings` has every measure, and `skipped` those that do not apply, with what they
    need.
    """

    value: float
    verdict: str
    records: int
    keys: tuple[str, ...]
    findings: tuple[Finding, ...]
    skipped: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __getitem__(self, measure: str) -> Finding:
        for finding in self.findings:
            if finding.measure == measure:
                return finding
        names = [finding.measure for finding in self.findings]
        guess = nearest(measure, names)
        raise InputError(
            f"the report has no measure {measure!r}",
            code="unknown-measure",
            hint=f"write {guess!r}" if guess else "choose one of " + ", ".join(names),
        )

    def rows(self) -> Rows:
        """Return one line per measure."""
        return ("measure", "risk", "meaning"), [
            (finding.measure, finding.value, finding.meaning) for finding in self.findings
        ]

    def scenarios(self) -> Rows:
        """Return who the intruder of each measure is."""
        return ("measure", "intruder"), [(f.measure, f.scenario) for f in self.findings]

    def not_measured(self) -> Rows:
        """Return the measures that were skipped, and what each of them needs."""
        return ("measure", "needs"), list(self.skipped.items())


@dataclasses.dataclass(frozen=True)
class RiskBelow(Report):
    """A demand on the risk, for `strengthen`: made by writing `dc.risk < 0.05`.

    Examples
    --------
    >>> risk < 0.05
    RiskBelow(limit=0.05, measure=None)
    >>> risk["re-identification"] < 0.2
    RiskBelow(limit=0.2, measure='re-identification')
    """

    limit: float
    measure: str | None = None

    def value(self, report: RiskReport) -> float:
        """Return the figure that the demand is about."""
        return report.value if self.measure is None else report[self.measure].value

    def holds(self, report: RiskReport) -> bool:
        """Whether the risk is below the limit."""
        return self.value(report) < self.limit


@dataclasses.dataclass(frozen=True)
class _Measured:
    """Something that can be compared with a limit to make a demand."""

    measure: str | None = None

    def __lt__(self, limit: float) -> RiskBelow:
        return RiskBelow(float(limit), self.measure)


class _Risk(_Measured):
    """Measure the risk of a release; compared with a number it is a demand for `strengthen`."""

    def __getitem__(self, measure: str) -> _Measured:
        return _Measured(measure)

    def __repr__(self) -> str:
        return "risk"

    def __call__(
        self,
        original: Any,
        released: Any = None,
        *,
        keys: Sequence[str] | None = None,
        measures: Sequence[RiskMeasure] | None = None,
        population: Any = None,
        holdout: Any = None,
        rng: Randomness | None = None,
        progress: Progress = silent,
    ) -> RiskReport:
        """Return the risk of a release, by every measure that applies or those given.

        Parameters
        ----------
        original, released
            The file before and after: datasets, releases or frames; without a second file the
            risk of releasing the original as it is. Any: every library has its own frame.
        keys
            The columns an intruder knows; the quasi-identifiers by default, or else everything
            but identifiers and what the curator called confidential.
        measures
            What to measure; by default every member of the family `risk`.
        population
            Size of the population that the file is a sample of, where the schema has no weight; or
            the population itself, a dataset, frame or path of a file with the same keys.
        holdout
            Records like the original ones that the release was not made from; measures that set
            what an intruder says of people in the file against what they say of others need it.
        rng
            Draws the people whom linking intruders look for.

        Examples
        --------
        >>> import pandas as pd
        >>> raw = pd.DataFrame({"age": [20, 30, 40], "pay": [5.0, 6.0, 9.0]})
        >>> report = risk(raw, raw.assign(age=30), keys=["age"])
        >>> round(report["record-linkage: distance"].value, 3)
        0.333
        >>> report["re-identification"].facts["smallest class"]
        3
        """
        pair = Pair.of(original, released, keys=keys, population=population, holdout=holdout)
        chosen = tuple(default_measures() if measures is None else measures)
        rng = rng or Randomness.secure()
        findings, skipped = [], {}
        for done, measure in enumerate(chosen):
            progress("risk", done, len(chosen))
            if measure.needs_origin and not pair.paired:
                skipped[measure.name] = "released records that each come from an original one"
            elif measure.applies(pair):
                findings.append((measure, measure.measure(pair, rng=rng)))
            else:
                skipped[measure.name] = measure.needs
        progress("risk", len(chosen), len(chosen))
        return _report(pair, findings, skipped)


def default_measures() -> list[RiskMeasure]:
    """Return every risk measure, record linkage once for each way of linking."""
    from discreet.microdata.risks.record_linkage import RecordLinkage
    from discreet.registry import members

    found: list[RiskMeasure] = []
    for member in members("risk").values():
        if member is RecordLinkage:
            ways = next(p.choices for p in member.parameters() if p.name == "method")
            found += [RecordLinkage(way) for way in ways or ()]
        else:
            found.append(member())  # type: ignore[arg-type]  # members of this family
    return found


def _report(
    pair: Pair, findings: Sequence[tuple[RiskMeasure, Finding]], skipped: Mapping[str, str]
) -> RiskReport:
    linking = [finding for measure, finding in findings if measure.counts(pair)]
    worst = max(linking, key=lambda finding: finding.value, default=None)
    if worst is None:
        verdict = "no linking intruder was tried"
        value = max((finding.value for _, finding in findings), default=0.0)
    else:
        value = worst.value
        verdict = worst.meaning
    return RiskReport(
        value,
        verdict,
        pair.size,
        pair.released_keys,
        tuple(finding for _, finding in findings),
        skipped,
    )


risk = _Risk()
