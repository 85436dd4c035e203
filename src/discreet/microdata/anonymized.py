"""A file that keeps models: what is released of it, and what it lost."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.data.dataset import Dataset
from discreet.data.facts import Facts
from discreet.data.release import Evidence, Standing
from discreet.errors import RefusedError
from discreet.ledger.memory import Memory
from discreet.microdata.memory import (
    EARLIER,
    earlier_classes,
    file_facts,
    require_sums_safe,
)
from discreet.microdata.methods import Anonymization
from discreet.microdata.models import Model
from discreet.microdata.models._base import ModelCheck
from discreet.microdata.published import rounded
from discreet.microdata.release import MicrodataRelease
from discreet.registry import members
from discreet.report import Report, Rows
from discreet.verification import Held

if TYPE_CHECKING:
    from discreet.microdata.coverage import Coverage
    from discreet.microdata.methods._base import Outcome
    from discreet.microdata.ordered_classes import Ordered
    from discreet.page import Section

__all__ = ["AnonymizationLoss", "Anonymized", "explained"]

#: Keys told inside their classes that the verdict names; the evidence names all.
_TOLD = 3


def explained(measures: Mapping[str, float]) -> Rows:
    """Return measures of loss with what each of them says.

    >>> explained({"aecs": 8.0})[1]
    [('aecs', 8.0, 'average number of records that share their values')]
    """
    known: Any = members("metric")  # Any: members are found by name
    body = [
        (name, value, known[name].meaning if name in known else "")
        for name, value in measures.items()
    ]
    return ("measure", "value", "what it says"), body


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
class Anonymized(MicrodataRelease):
    """An anonymised file with its evidence.

    `frame` gives the records in the type that went in; `levels` the level of every
    quasi-identifier after generalisation; `score` the value that was minimised; `suppressed` the
    number of suppressed records; `checks` each model checked again on the result.
    """

    models: tuple[Model, ...] = ()
    method: Anonymization | None = None
    quasi: tuple[str, ...] = ()
    outcome: Outcome | None = None
    checks: tuple[ModelCheck, ...] = ()
    standing: Standing | None = None

    def title(self) -> str:
        """Return what is promised by which keys."""
        promised = ", ".join(model.name for model in self.models)
        return f"{promised} by {', '.join(self.quasi)}"

    def records(self) -> Dataset | None:
        """Return the records before."""
        return self.original

    def discloses(self, memory: Memory) -> Sequence[Facts]:
        """Return the classes, and the sums of numbers that leave as they are."""
        from discreet.microdata.pair import Pair

        pair = Pair.of(self.original, self)
        ks = [int(getattr(model, "k", 2)) for model in self.models]
        released = self.dataset.arrow()
        return file_facts(
            self.original,
            released,
            np.asarray(pair.origin),
            self.quasi,
            [model.settings() for model in self.models],
            memory,
            untouched=[n for n in self.dataset.columns if n not in self.quasi],
            k=max([2, *ks]),
        )

    def judge(self, memory: Memory) -> None:
        """Refuse a file whose models do not hold in the joint classes with earlier files."""
        classes = earlier_classes(memory)
        if classes is not None:
            self._require_joint(classes)
        require_sums_safe(self.discloses(memory), memory)

    def _require_joint(self, classes: Any) -> None:
        """Check every model in the joint classes. Any: an array of numbers."""
        import pyarrow as pa

        from discreet.microdata.pair import Pair
        from discreet.microdata.verify import verified

        if self._done.wildcard:
            raise _unsafe_together("files with missing keys are not judged together with others")
        origin = np.asarray(Pair.of(self.original, self).origin)
        words = pa.array([f"c{number}" for number in np.asarray(classes)[origin].tolist()])
        owned = self._done.dataset.with_columns({EARLIER: words})
        checks = verified(
            owned,
            self.original,
            self.models,
            (*self.quasi, EARLIER),
            wildcard=False,
            starred=self._done.starred,
            maps=self._done.maps,
        )
        failed = [check.model for check in checks if not check.holds]
        if failed:
            raise _unsafe_together(f"{', '.join(failed)} would not hold in the joint classes")

    @property
    def _done(self) -> Outcome:
        assert self.outcome is not None
        return self.outcome

    @property
    def levels(self) -> Mapping[str, int]:
        """The level of every quasi-identifier after generalisation, 0 as it is."""
        return self._done.levels

    @property
    def score(self) -> float:
        """The value of the metric that was minimised."""
        return self._done.score

    @property
    def suppressed(self) -> int:
        """Number of suppressed records."""
        return self._done.suppressed

    @property
    def work(self) -> Mapping[str, Any]:
        """Facts about the work: nodes of the lattice evaluated, cells removed."""
        return self._done.work

    @property
    def loss(self) -> AnonymizationLoss:  # type: ignore[override]  # measured by the search, for files of any size
        """What was lost, as the search measured it; `dc.utility` measures more."""
        done = self._done
        return AnonymizationLoss(
            done.metric, done.score, self.original.count, done.suppressed, done.losses
        )

    @property
    def _told_loss(self) -> AnonymizationLoss:
        """The loss as it is published: without measures that count the original values."""
        known: Any = members("metric")  # Any: members are found by name
        found = self.loss
        hidden = {name for name, metric in known.items() if not metric.is_published}
        measures = {name: value for name, value in found.measures.items() if name not in hidden}
        score = math.nan if found.metric in hidden else found.score
        return dataclasses.replace(found, score=score, measures=measures)

    @property
    def safe(self) -> bool:
        """Whether every model was found to hold."""
        return bool(self.checks) and all(check.holds for check in self.checks)

    @functools.cached_property
    def coverage(self) -> Coverage:
        """What no model is about: columns left as they are, classes with one value."""
        from discreet.microdata.coverage import coverage
        from discreet.microdata.verify import without_starred

        modelled = {column for model in self.models for column in model.columns}
        seen = without_starred(self.dataset, self.quasi) if self._done.starred else self.dataset
        assert self.method is not None
        changed = self.method.covered(self.quasi)
        return coverage(seen, changed, changed=changed, modelled=modelled)

    @functools.cached_property
    def ordered(self) -> tuple[Ordered, ...]:
        """Columns whose order tells keys inside the released classes; of large files, nothing."""
        from discreet.microdata.ordered_classes import MOST_RECORDS, ordered_classes
        from discreet.microdata.pair import Pair

        if not self.checks or self.original.count > MOST_RECORDS or not len(self.dataset):
            return ()
        assert self.method is not None
        changed = self.method.covered(self.quasi)
        others = [name for name in self.dataset.columns if name not in {*self.quasi, *changed}]
        origin = np.asarray(Pair.of(self.original, self).origin)
        return ordered_classes(self.original, self.dataset, origin, self.quasi, others)

    @property
    def verdict(self) -> str:
        """One sentence in plain words."""
        found = "safe" if self.safe else "not checked" if not self.checks else "not safe"
        promises = "; ".join(dict.fromkeys(check.promise for check in self.checks)) or "; ".join(
            model.promise for model in self.models
        )
        records = self.original.count
        share = self.suppressed / records if records else 0.0
        sets = self._partial_keys
        if sets:
            promises += " by " + " and by ".join(" and ".join(keys) for keys in sets) + " alone"
        if self.original.unit is None:
            promises += "; each record counted as one person"
        words = f"{found} under: {promises}; {self.suppressed:,} of {records:,} records ({share:.1%}) suppressed"
        if self.guess is not None:
            known = "one of these sets of keys" if sets else "every quasi-identifier"
            words += (
                f"; an intruder who knows {known} and guesses within the class "
                f"names the right record for {self.guess:.1%} of those released"
            )
        told = [one.words for one in self.ordered[:_TOLD]]
        more = [self.coverage.words] if self.coverage.words else []
        gaps = "; ".join([*more, *told, *self._chosen_by])
        return words + (f"; not covered: {gaps}" if gaps else "")

    @property
    def _chosen_by(self) -> list[str]:
        """What follows from how the classes were chosen, where that depends on confidential values."""
        names = list(dict.fromkeys(name for model in self.models for name in model.columns))
        if not names:
            return []
        return [
            f"the classes were chosen by looking at {', '.join(names)}, so that whoever repeats the "
            "choice with other values may exclude some"
        ]

    @property
    def guess(self) -> float | None:
        """Share of records found by guessing within their class; `dc.risk` tries more intruders."""
        if not self.checks or self._done.wildcard or not self.checks[0].records:
            return None
        return max(check.classes / (check.people or check.records) for check in self.checks)

    @property
    def _partial_keys(self) -> tuple[tuple[str, ...], ...]:
        """The sets of keys that the promise is about, where it is not about all of them."""
        sets = self._done.key_sets
        return sets if any(len(keys) < len(self.quasi) for keys in sets) else ()

    def evidence(self) -> Evidence:
        """Return what was done and what it promises."""
        assert self.method is not None
        settings = {
            "models": [model.settings() for model in self.models],
            "method": self.method.settings(),
            "quasi": list(self.quasi),
            "levels": dict(self.levels),
            "identifiers removed": list(self._removed),
            "row order": "sorted by the released values",
            "remarks": list(self._done.notes),
        }
        risk: dict[str, Any] = {
            "checks": [check.to_dict() for check in self._told_checks],
            "not covered": self.coverage.to_dict(),
        }
        if self.ordered:
            risk["told inside classes"] = [one.words for one in self.ordered]
        if self._chosen_by:
            risk["told by the choice of classes"] = self._chosen_by
        if self.guess is not None:
            risk["guess within the class"] = self.guess
        return Evidence(
            "microdata", settings, risk, rounded(self._told_loss.to_dict()), self.verdict
        )

    @property
    def _told_checks(self) -> tuple[ModelCheck, ...]:
        """The checks without what a class reaches against a file with suppressed records.

        The exact distance would tell the confidential values of the records that were left out.
        """
        compared = {model.name for model in self.models if model.compares}
        if not self._done.suppressed:
            return self.checks
        return tuple(
            dataclasses.replace(check, value=math.nan) if check.model in compared else check
            for check in self.checks
        )

    def promises(self) -> Sequence[Mapping[str, Any]]:
        """Return the models with the keys and the reading they hold for."""
        done = self._done
        starred = {"starred": True, "blank": self._blank} if done.starred else {}
        promise = self._promise(
            keys=[list(keys) for keys in done.key_sets or (self.quasi,)],
            models=[model.settings() for model in self.models] if self.checks else [],
            reading="wildcard" if done.wildcard else "category",
            suppressed=done.suppressed,
            **starred,
        )
        return [promise]

    @property
    def _blank(self) -> list[str]:
        """The columns that suppressed records have no value of."""
        return [name for name in self.dataset.columns if name not in self.quasi]

    def held(self) -> Held:
        """Return the owners, the distributions before and the population that models speak of."""
        from discreet.microdata.verify import held_for

        blank = self._blank if self._done.starred else []
        return held_for(self._done, self.original, self.models, [*self.quasi, *blank])

    def write_files(self, folder: Path) -> None:
        """Write the records, sorted so that their order tells nothing, and a page about them."""
        self.sorted().write(folder / self.file_name, format=self.suffix)
        (folder / "report.html").write_text(self.page(), encoding="utf-8")

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

    def sections(self) -> list[Section]:
        """Return the parts of the page: what is promised, what was lost, what it risks."""
        from discreet.microdata.pictures import bars
        from discreet.page import Section

        checks = (
            ("model", "promise", "holds", "reached", "classes"),
            [
                (c.model, c.promise, c.holds, "" if math.isnan(c.value) else c.value, c.classes)
                for c in self._told_checks
            ],
        )
        parts = [
            Section("What is promised", "Checked on the released file.", table=checks),
            Section(
                "What is not covered",
                "\n".join(one.words for one in self.ordered),
                table=self.coverage,
            ),
        ]
        if self.checks and not self._done.wildcard and not self._partial_keys:
            crowds = self._crowds()
            parts.append(
                Section(
                    "Among how many one hides",
                    "Records that an intruder who knows every quasi-identifier cannot tell apart.",
                    table=(
                        ("size of the class", "share of records"),
                        [(size, f"{share:.1%}") for size, share in crowds.items()],
                    ),
                    picture=bars(crowds, "share of records"),
                    caption="Released records by the size of their class",
                )
            )
        loss = self._told_loss
        lost = f"{loss.suppressed:,} of {loss.records:,} records were left out."
        table = explained(rounded({loss.metric: loss.score, **loss.measures}))
        parts.append(Section("What was lost", lost, table=table))
        if self.levels:
            heights = {n: self._height(n) for n in self.levels}
            used = {n: level / max(heights[n], 1) for n, level in self.levels.items()}
            parts.append(
                Section(
                    "Levels of generalisation",
                    "0 is as it was.",
                    table=(
                        ("column", "level", "of"),
                        [(name, level, heights[name]) for name, level in self.levels.items()],
                    ),
                    picture=bars(used, "share of the levels used"),
                    caption="How far each column was generalised, from 0 (as it was) to 1 (gone)",
                )
            )
        if self._done.notes:
            parts.append(Section("How to read it", "\n".join(self._done.notes)))
        return parts

    def _height(self, column: str) -> int:
        """Return the number of levels above the values of a column."""
        tree = self.original.schema.hierarchies(column)[0]
        # Numbers lie below the finest intervals.
        return tree.height + (tree.edges is not None)

    def _crowds(self) -> dict[str, float]:
        """Return the share of released records by the size of their class."""
        import numpy as np

        rows = self.dataset.frequencies(list(self.quasi))
        sizes = np.asarray(rows.column(len(self.quasi)).to_numpy())
        total = max(int(sizes.sum()), 1)
        edges = [1, 2, 3, 5, 10, 20, 50, 100, 1000]
        found = {}
        for low, high in zip(edges, [*edges[1:], None], strict=True):
            inside = (sizes >= low) & (sizes < high) if high else sizes >= low
            name = f"{low:,} and more" if high is None else f"{low}"
            name = f"{low} to {high - 1}" if high and high - 1 > low else name
            found[name] = float(sizes[inside].sum() / total)
        while found and not next(iter(found.values())):  # nobody hides among so few
            found.pop(next(iter(found)))
        return found

    def page(self) -> str:
        """Return the report as a page for people; it holds nothing of the original."""
        from discreet.page import Page

        return Page(
            f"Anonymised file {self.dataset.name}",
            self.sections(),
            verdict=self.verdict,
            lead=f"{len(self.dataset):,} records, {len(self.dataset.columns)} columns",
            footer="Identifiers were removed; records are in the order of their released values.",
        ).html()


def _unsafe_together(why: str) -> RefusedError:
    return RefusedError(
        f"together with earlier files the file tells too much: {why}",
        code="unsafe-together",
        hint="use generalization with ledger=, which protects in the joint classes, or allow more "
        "suppression",
    )
