"""Risk and loss of files that stay in their engine: classes counted there, intruders on a sample.

How many people look alike is counted over the whole file. Intruders who link records, and what values
lost, are tried on records drawn by lot: among fewer candidates a link is found no less often, and a
mean over a sample is that of the file up to chance. Measures that need all records of a class are
left out, and the report says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from discreet.data.engines import keyed, sql
from discreet.data.engines.base import ROW
from discreet.microdata.assessment import RiskReport, default_measures, risk
from discreet.microdata.comparison import UtilityReport, utility
from discreet.microdata.risks.re_identification import ReIdentification
from discreet.randomness import Randomness

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.risks._base import Finding
    from discreet.microdata.utilities._base import UtilityMeasure

__all__ = ["SAMPLE", "large_loss", "large_risk", "sampled"]

#: Records on which intruders and losses are tried, about.
SAMPLE = 50_000
#: Marks of rows lie below this.
_MARKS = 2**60


def sampled(original: Dataset, released: Dataset, rng: Randomness) -> tuple[Dataset, Dataset]:
    """Return the same records of two numbered files, drawn by lot, as small files in memory."""
    engine, rows = released.engine, keyed.drawn(released.relation, list(released.columns), rng)
    share = min(SAMPLE / max(len(released), 1), 1.0)
    limit = sql.number(min(int(share * _MARKS), _MARKS - 1))
    drawn = exp.LTE(this=keyed.mark(engine, sql.column("__drawn0")), expression=limit)
    kept = engine.project(engine.filter(rows, drawn), [*released.columns, ROW])
    after = engine.fetch(kept).sort_by(ROW)
    chosen = original.engine.load(after.select([ROW]))
    query = sql.select(
        sql.subquery(original.relation.query, "t"),
        [sql.column(name, "t") for name in original.relation.columns],
    ).join(
        sql.subquery(chosen.query, "c"),
        on=exp.EQ(this=sql.column(ROW, "t"), expression=sql.column(ROW, "c")),
    )
    before = original.engine.fetch(query).sort_by(ROW)
    original.engine.drop(chosen)
    return _small(original, before), _small(released, after)


def _small(dataset: Dataset, rows: object) -> Dataset:
    import pyarrow as pa

    from discreet.data.sources import default_engine

    assert isinstance(rows, pa.Table)
    place = rows.column_names.index(ROW)
    numbered = rows.set_column(place, ROW, pa.array(np.arange(rows.num_rows)))
    return dataset.replace(relation=default_engine().load(numbered))


def large_risk(
    original: Dataset, released: Dataset, sample: tuple[Dataset, Dataset], *, rng: Randomness
) -> RiskReport:
    """Return the risk of a file that stays in its engine, by a sample of it before and after."""
    before, after = sample
    tried = [measure for measure in default_measures() if measure.of_sample]
    report = risk(before, after, measures=tried, rng=rng)
    whole = _counted(original, released, report.keys)
    words = f"in a sample of {len(after):,} records, "
    findings: list[Finding] = [whole] + [
        dataclasses.replace(finding, meaning=words + finding.meaning) for finding in report.findings
    ]
    left_out = {
        measure.name: "a file small enough to be held in memory"
        for measure in default_measures()
        if not measure.of_sample and measure.name != whole.measure
    }
    return dataclasses.replace(
        report,
        verdict=words + report.verdict,
        records=len(released),
        findings=tuple(findings),
        skipped={**left_out, **report.skipped},
    )


def _counted(original: Dataset, released: Dataset, keys: Sequence[str]) -> Finding:
    """Return what the sizes of all classes tell, counted by the engine."""
    engine, unit = released.engine, original.unit
    rows = released.relation
    people: exp.Expr = exp.Count(this=exp.Star())
    if unit is not None and unit in original.columns:
        named = engine.relation(
            sql.select(
                sql.subquery(original.relation.query, "o"),
                [sql.column(ROW), sql.alias(sql.column(unit), "__unit")],
            )
        )
        rows = engine.relation(
            sql.select(
                sql.subquery(released.relation.query, "t"),
                [*(sql.column(name, "t") for name in keys), sql.column("__unit", "u")],
            ).join(
                sql.subquery(named.query, "u"),
                on=exp.EQ(this=sql.column(ROW, "t"), expression=sql.column(ROW, "u")),
            )
        )
        people = exp.Count(this=exp.Distinct(expressions=[sql.column("__unit")]))
    classes = sql.select(
        sql.subquery(rows.query, "t"),
        [
            sql.alias(sql.bigint(people), "people"),
            sql.alias(sql.bigint(exp.Count(this=exp.Star())), "records"),
        ],
    ).group_by(*(sql.column(name) for name in keys))
    sizes = sql.select(
        sql.subquery(classes, "c"),
        [
            sql.column("people"),
            sql.alias(sql.bigint(exp.Count(this=exp.Star())), "classes"),
            sql.alias(sql.bigint(exp.Sum(this=sql.column("records"))), "n"),
        ],
    ).group_by(sql.column("people"))
    found = engine.fetch(sizes)
    return ReIdentification().of_sizes(
        *(found.column(name).to_numpy().astype(np.int64) for name in ("people", "classes", "n"))
    )


def large_loss(
    sample: tuple[Dataset, Dataset], measures: Sequence[UtilityMeasure], *, rng: Randomness
) -> UtilityReport:
    """Return what the values of a file that stays in its engine lost, by a sample of it."""
    before, after = sample
    chosen = [measure for measure in measures if measure.of_sample]
    found = utility(before, after, measures=chosen, rng=rng)
    return dataclasses.replace(found, verdict=f"in a sample of {len(after):,}, {found.verdict}")
