"""Anonymise: fix the promises, lose as little as possible."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.release import Evidence, Release
from discreet.errors import EngineError, InputError
from discreet.microdata.frequency_set import as_dataset, quasi_identifiers
from discreet.microdata.methods import Anonymization
from discreet.microdata.models import Model
from discreet.microdata.models._base import ModelCheck
from discreet.progress import Progress, silent
from discreet.report import Report, Rows

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.methods._base import Outcome

__all__ = ["Anonymized", "AnonymizationLoss", "anonymize"]


@dataclasses.dataclass(frozen=True)
class AnonymizationLoss(Report):
    """What an anonymised file lost.

    Examples
    --------
    >>> print(AnonymizationLoss("loss", 0.25, 1000, 12, {"aecs": 8.0}))
    loss (minimised)               0.25
    suppressed records               12
    share of records suppressed   0.012
    aecs                              8
    """

    metric: str
    score: float
    records: int
    suppressed: int
    #: Further measures, by name.
    measures: Mapping[str, float]

    def rows(self) -> Rows:
        """Return one line per measure."""
        share = self.suppressed / self.records if self.records else 0.0
        body: list[tuple[str, Any]] = [
            (f"{self.metric} (minimised)", self.score),
            ("suppressed records", self.suppressed),
            ("share of records suppressed", share),
        ]
        others = [(name, value) for name, value in self.measures.items() if name != self.metric]
        return ("", ""), [*body, *others]


@dataclasses.dataclass(frozen=True, eq=False)
class Anonymized(Release):
    """An anonymised file with its evidence.

    `frame` gives the records in the type that went in; `levels` the level of every
    quasi-identifier after generalisation; `score` the value that was minimised; `suppressed` the
    number of suppressed records; `checks` each model checked again on the result.
    """

    dataset: Dataset
    models: tuple[Model, ...]
    method: Anonymization
    quasi: tuple[str, ...]
    levels: Mapping[str, int]
    score: float
    suppressed: int
    loss: AnonymizationLoss
    checks: tuple[ModelCheck, ...]
    notes: tuple[str, ...] = ()
    work: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def frame(self) -> Any:
        """The records, in the type that went in. Any: three libraries have frames."""
        return self.dataset.frame

    @property
    def safe(self) -> bool:
        """Whether every model was found to hold."""
        return all(check.holds for check in self.checks)

    @property
    def verdict(self) -> str:
        """One sentence in plain words."""
        promises = "; ".join(model.promise for model in self.models)
        share = self.suppressed / self.loss.records if self.loss.records else 0.0
        return (
            f"{'safe' if self.safe else 'NOT safe'} under: {promises}. "
            f"{self.suppressed:,} of {self.loss.records:,} records ({share:.1%}) suppressed."
        )

    def evidence(self) -> Evidence:
        """Return what was done and what it promises."""
        return Evidence(
            "microdata",
            {
                "models": [model.settings() for model in self.models],
                "method": self.method.settings(),
                "quasi": list(self.quasi),
                "levels": dict(self.levels),
                "notes": list(self.notes),
            },
            {"checks": [check.to_dict() for check in self.checks]},
            self.loss.to_dict(),
            self.verdict,
        )

    def write_files(self, folder: Path) -> None:
        """Write the records, sorted so that their order tells nothing, and a page about them."""
        self.sorted().write(folder / f"{self.dataset.name}.{self._suffix}")
        (folder / "report.html").write_text(self.page(), encoding="utf-8")

    @property
    def _suffix(self) -> str:
        return "csv" if self.dataset.library == "pandas" else "parquet"

    def sorted(self) -> Dataset:
        """Return the records in the order of their released values, not of the input."""
        from sqlglot import exp

        from discreet.data.engines import sql

        names = self.dataset.columns
        relation = self.dataset.relation
        query = sql.select(
            sql.subquery(relation.query, "t"), [sql.column(name, "t") for name in names]
        )
        order = [exp.Ordered(this=sql.column(name, "t"), nulls_first=False) for name in names]
        query.set("order", exp.Order(expressions=order))
        return self.dataset.replace(relation=relation.engine.relation(query))

    def page(self) -> str:
        """Return the report as a page for people."""
        from discreet.page import Page, Section

        levels = (("column", "level"), list(self.levels.items()))
        checks = (
            ("model", "promise", "holds", "reached", "classes"),
            [(c.model, c.promise, c.holds, c.value, c.classes) for c in self.checks],
        )
        sections = [
            Section("What is promised", "Checked on the released file.", table=checks),
            Section("What was lost", table=self.loss),
        ]
        if self.levels:
            sections.append(Section("Levels of generalisation", table=levels))
        if self.notes:
            sections.append(Section("How to read it", "\n".join(self.notes)))
        return Page(f"Anonymised file {self.dataset.name}", sections, self.verdict).html()


def anonymize(
    data: Any,
    models: Sequence[Model] | Model,
    *,
    method: Anonymization | None = None,
    quasi: Sequence[str] | None = None,
    verify: bool = True,
    progress: Progress = silent,
) -> Anonymized:
    """Return a file that keeps every model, changed as little as the method can.

    Parameters
    ----------
    data
        A dataset, or a frame whose columns have roles. Any: a frame may be of any library.
    models
        The promises, in any combination.
    method
        How to keep them; by default optimal generalisation without suppression.
    quasi
        The columns an intruder knows; by default those with that role.
    verify
        Check every model once more on the result, by a new count in the engine.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> from discreet.data.hierarchy import Hierarchy
    >>> from discreet.microdata.models.k_anonymity import KAnonymity
    >>> people = read(
    ...     pd.DataFrame({"region": ["N1", "N1", "N2", "S1", "S1"], "ill": list("abcab")}),
    ...     roles={"region": "quasi", "ill": "confidential"},
    ...     hierarchies={"region": Hierarchy.from_levels({"N": ["N1", "N2"], "S": ["S1"]})},
    ... )
    >>> safe = anonymize(people, [KAnonymity(2)])
    >>> safe.levels, safe.suppressed
    ({'region': 1}, 0)
    >>> safe.frame["region"].tolist()
    ['N', 'N', 'N', 'S', 'S']
    """
    from discreet.microdata.methods.generalization import Generalization

    promises = (models,) if isinstance(models, Model) else tuple(models)
    if not promises:
        raise InputError(
            "no model is given", code="missing-model", hint="write models=[dc.KAnonymity(5)]"
        )
    dataset = as_dataset(data)
    keys = quasi_identifiers(dataset, quasi)
    way = Generalization() if method is None else method
    held = _held(dataset, keys)
    outcome = way.anonymize(held, promises, quasi=keys, progress=progress)
    released = _without_identifiers(outcome.dataset)
    checks = _verified(released, dataset, promises, keys, outcome) if verify else ()
    loss = AnonymizationLoss(
        outcome.metric, outcome.score, dataset.count, outcome.suppressed, outcome.losses
    )
    return Anonymized(
        released,
        promises,
        way,
        keys,
        outcome.levels,
        outcome.score,
        outcome.suppressed,
        loss,
        checks,
        outcome.notes,
        outcome.work,
    )


#: Files of up to this many records keep their row numbers, so that `frame` has the input's order
#: and risk measures can pair records before and after.
_NUMBERED = 5_000_000


def _held(dataset: Dataset, keys: Sequence[str]) -> Dataset:
    """Return the dataset with its rows numbered, where it is small enough to hold still."""
    for name in keys:
        if name in dataset.schema.identifiers:
            raise InputError(
                f"column {name!r} is an identifier, which never leaves, and used as "
                "quasi-identifier",
                code="identifier-among-keys",
                hint="give it the role quasi or leave it out",
                column=name,
            )
    return dataset.numbered() if dataset.count <= _NUMBERED else dataset


def _without_identifiers(dataset: Dataset) -> Dataset:
    identifiers = set(dataset.schema.identifiers)
    if not identifiers:
        return dataset
    return dataset.select([name for name in dataset.columns if name not in identifiers])


def _verified(
    released: Dataset,
    original: Dataset,
    models: Sequence[Model],
    keys: Sequence[str],
    outcome: Outcome,
) -> tuple[ModelCheck, ...]:
    from discreet.microdata.verify import verified

    checks = tuple(
        check
        for chosen in outcome.key_sets or (tuple(keys),)
        for check in verified(
            released, original, models, chosen, wildcard=outcome.wildcard, starred=outcome.starred
        )
    )
    failed = [check.model for check in checks if not check.holds]
    if failed:
        raise EngineError(
            f"the result was checked and does not keep {', '.join(failed)}; nothing is released",
            code="model-not-kept",
            hint="this is a mistake of discreet or the engine: please report it",
        )
    return checks
