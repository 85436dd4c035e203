"""A microdata release: the masked file, what it risks and what it lost, ready to be written."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.engines.base import ROW
from discreet.data.facts import Facts, UncoveredFacts
from discreet.data.release import Evidence, Release
from discreet.dp.caution import cautions
from discreet.errors import InputError, RefusedError
from discreet.microdata.columns import is_number
from discreet.microdata.masking import Masking
from discreet.microdata.masking._base import IN_MEMORY
from discreet.microdata.published import loss_class, rounded
from discreet.randomness import Randomness
from discreet.report import Rows
from discreet.verification import Held

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.assessment import RiskReport
    from discreet.microdata.comparison import UtilityReport
    from discreet.microdata.coverage import Coverage
    from discreet.page import Section

__all__ = ["MicrodataRelease"]

_FORMATS = {"csv": "csv", "parquet": "parquet", "arrow": "arrow"}


@dataclasses.dataclass(frozen=True, eq=False)
class MicrodataRelease(Release):
    """A masked file with its evidence.

    `frame` has the records in the order of the input, for work in the house; `write` gives them out
    in an order drawn by lot. The original is kept beside the release for measuring risk and loss, and
    nothing of it is written.

    Parameters
    ----------
    original
        The file before.
    dataset
        The file after, without identifiers.
    methods
        What was done, in order.
    randomness
        Where randomness came from: secure, seeded or none.
    format
        Format of the written file; by default CSV for pandas and files, Parquet for others.
    """

    original: Dataset
    dataset: Dataset
    methods: tuple[Masking, ...]
    randomness: str = "none"
    format: str | None = None
    #: Further settings for the evidence, such as what was tried.
    notes: dict[str, Any] = dataclasses.field(default_factory=dict)
    #: What draws the order of the records and the people that risk and loss look at; secure where
    #: nothing is given.
    draws: dict[str, Randomness] = dataclasses.field(default_factory=dict, repr=False)

    def title(self) -> str:
        """Return what was done."""
        done = ", ".join(method.name for method in self.methods) or "as it is"
        return f"{self.dataset.name}: {done}"

    def records(self) -> Dataset | None:
        """Return the records before."""
        return self.original

    def discloses(self, memory: Any) -> Sequence[Facts]:
        """Return that no joint guarantee covers masked records. Any: as in the base."""
        del memory
        return (UncoveredFacts("records were masked without a model that holds jointly"),)

    @property
    def frame(self) -> Any:
        """The released records, in the type that went in. Any: three libraries have frames."""
        return self.dataset.frame

    @functools.cached_property
    def risk(self) -> RiskReport | None:
        """The measured risk; nothing where no column says what an intruder knows."""
        from discreet.microdata.assessment import risk
        from discreet.microdata.large import large_risk

        try:
            if self._is_large:
                draw = self.draws.get("risk") or Randomness.secure()
                return large_risk(self.original, self.dataset, self._sample, rng=draw)
            return risk(self.original, self, rng=self.draws.get("risk"))
        except InputError as error:
            if error.code != "no-quasi-identifiers":
                raise
            return None

    @functools.cached_property
    def loss(self) -> UtilityReport:
        """What was lost: values changed, distances, moments and tables."""
        from discreet.microdata.comparison import default_measures, utility

        quick = [m for m in default_measures() if m.name not in ("propensity", "trained-model")]
        if self._is_large:
            from discreet.microdata.large import large_loss

            draw = self.draws.get("loss") or Randomness.secure()
            return large_loss(self._sample, quick, rng=draw)
        return utility(self.original, self, measures=quick, rng=self.draws.get("loss"))

    @property
    def _is_large(self) -> bool:
        """Whether the records stay in their engine, numbered alike before and after."""
        numbered = all(ROW in data.relation.columns for data in (self.original, self.dataset))
        return numbered and len(self.dataset) > IN_MEMORY

    @functools.cached_property
    def _sample(self) -> tuple[Dataset, Dataset]:
        """The same records before and after, drawn by lot."""
        from discreet.microdata.large import sampled

        draw = self.draws.get("sample") or Randomness.secure()
        return sampled(self.original, self.dataset, draw)

    @functools.cached_property
    def smallest_class(self) -> int | None:
        """The fewest records that share all their keys."""
        if self.risk is None or len(self.dataset) == 0:
            return None
        return int(self.risk["re-identification"].facts["smallest class"])

    @functools.cached_property
    def coverage(self) -> Coverage:
        """What the verdict is not about: columns left as they are, classes with one value."""
        from discreet.microdata.coverage import coverage, unseen_combinations

        keys = [name for name in self.original.schema.quasi if name in self.dataset.columns]
        changed = {name for method in self.methods for name in method.changes} - self._idle
        found = coverage(self.dataset, keys, changed=changed)
        drawn = [n for m in self.methods if m.draws_categories for n in m.changes]
        drawn = [name for name in dict.fromkeys(drawn) if name in self.dataset.columns]
        unseen = unseen_combinations(self.original, self.dataset, drawn)
        return dataclasses.replace(found, unseen=unseen)

    @functools.cached_property
    def _idle(self) -> frozenset[str]:
        """Masked columns that leave as they were for nearly all records: nothing was done to them."""
        from discreet.microdata.coverage import is_idle
        from discreet.microdata.pair import Pair

        before, after = self._sample if self._is_large else (self.original, self.dataset)
        names = {name for method in self.methods for name in method.changes}
        names &= {*before.columns} & {*after.columns}
        if not names or not len(after):
            return frozenset()
        pair = Pair.of(before, after if self._is_large else self, keys=sorted(names))
        return frozenset(
            n for n in names if is_idle(pair.before(n).take(pair.origin), pair.after(n))
        )

    @property
    def verdict(self) -> str:
        """The release in one sentence of plain words."""
        told = [f"a value lost {loss_class(self.loss.value)} on average", *cautions(self.methods)]
        if self.coverage.words:
            told.append(f"not covered: {self.coverage.words}")
        lost = "; ".join(told)
        if self.risk is None or self.smallest_class is None:
            return f"no quasi-identifier is declared, so no intruder was tried; {lost}"
        alone = self.risk["re-identification"].facts["sample uniques"]
        k = self.smallest_class
        promise = (
            f"safe under k-anonymity with k = {k}"
            + (", each record counted as one person" if self.original.unit is None else "")
            if k > 1
            else f"not k-anonymous: {alone:,} of {self.risk.records:,} records are alone in their class"
        )
        return f"{promise}; {self.risk.verdict}; {lost}"

    def evidence(self) -> Evidence:
        """Return what was done and measured; figures of the original itself are left out."""
        settings = {
            "methods": [method.settings() for method in self.methods],
            "identifiers removed": list(self._removed),
            "row order": "drawn by lot",
            **({"intruders and losses tried on": "records drawn by lot"} if self._is_large else {}),
            **self.notes,
        }
        risk: dict[str, Any] = {"not covered": self.coverage.to_dict()}
        if self.risk is not None:
            risk |= {f.measure: rounded(f.value) for f in self.risk.findings}
        loss = {name: loss_class(value) for name, value in self._told_losses.items()}
        return Evidence("microdata", settings, risk, loss, self.verdict, self.randomness)

    @property
    def _told_losses(self) -> dict[str, float]:
        """The losses that may be told: means over all records of parts between 0 and 1."""
        found = {c.measure: c for c in self.loss.comparisons}
        if "value-loss" not in found:
            return {}
        by_column = found["value-loss"].facts
        told = {name: value for name, value in by_column.items() if name in self.dataset.columns}
        return {"value-loss": found["value-loss"].value, **told}

    def promises(self) -> Sequence[Mapping[str, Any]]:
        """Return the columns, the number of records and the k that the verdict tells."""
        k = self.smallest_class
        if self.risk is None or k is None or k < 2:
            return [self._promise()]
        keys = [list(self.risk.keys)]
        return [self._promise(keys=keys, models=[{"name": "k-anonymity", "k": k}])]

    def _promise(self, **more: Any) -> Mapping[str, Any]:
        """Return what every file of records promises, and more. Any: as `promises`."""
        return {
            "kind": "records",
            "file": self.file_name,
            "columns": list(self.dataset.columns),
            "numbers": [
                field.name for field in self.dataset.relation.schema if is_number(field.type)
            ],
            "records": len(self.dataset),
            "counted": "records" if self.original.unit is None else "people",
            **more,
        }

    def held(self) -> Held:
        """Return the owners of the records, where the promise is about people."""
        from discreet.microdata.pair import Pair

        unit = self.original.unit
        if unit is None or self.risk is None or unit in self.risk.keys:
            return Held()
        origin = Pair.of(self.original, self).origin
        owners = self.original.arrow([unit]).column(0).take(origin)
        records = self.dataset.arrow(list(self.risk.keys)).append_column(unit, owners)
        return Held(records=records, unit=unit)

    @property
    def file_name(self) -> str:
        """The name of the written file."""
        return f"{self.dataset.name}.{self.suffix}"

    @property
    def _removed(self) -> tuple[str, ...]:
        return tuple(
            name for name in self.original.schema.identifiers if name not in self.dataset.columns
        )

    def write_files(self, folder: Path) -> None:
        """Write the records in an order drawn by lot, and a page about them."""
        if self.randomness == "seeded":
            raise RefusedError(
                "a seeded random source can be replayed, so it is refused for a release",
                code="seeded-randomness",
                hint="leave out rng, or pass rng=Randomness.secure()",
            )
        order = self.draws.get("order")
        self.shuffled(rng=order).write(folder / self.file_name, format=self.suffix)
        (folder / "report.html").write_text(self.page(), encoding="utf-8")

    @property
    def suffix(self) -> str:
        """Suffix and format of the written file."""
        given = self.format or getattr(self.original, "format", None)
        if given in _FORMATS:
            return str(given)
        if self.dataset.engine.writes is not None:
            return self.dataset.engine.writes
        return "csv" if self.dataset.library == "pandas" else "parquet"

    def shuffled(self, *, rng: Randomness | None = None) -> Dataset:
        """Return the released records in an order drawn by lot."""
        from discreet.data.engines import keyed, sql

        engine, relation = self.dataset.engine, self.dataset.numbered().relation
        names = list(self.dataset.columns)
        drawn = keyed.drawn(relation, names, rng or Randomness.secure())
        mark = keyed.mark(engine, sql.column("__drawn0"))
        values = [*map(sql.column, names), sql.alias(mark, ROW)]
        query = sql.select(sql.subquery(drawn.query, "t"), values)
        return self.dataset.replace(relation=engine.relation(query))

    def page(self) -> str:
        """Return the report as a page for people; it holds nothing of the original."""
        from discreet.page import Page

        return Page(
            f"Microdata release {self.dataset.name}",
            self.sections(),
            verdict=self.verdict,
            lead=f"{len(self.dataset):,} records, {len(self.dataset.columns)} columns",
            footer="Identifiers were removed and the order of the records was drawn by lot.",
        ).html()

    def sections(self) -> list[Section]:
        """Return the parts of the page: what was done, what it risks, what was lost."""
        from discreet.microdata.pictures import bars
        from discreet.page import Section

        done: Rows = (
            ("method", "parameters"),
            [
                (m.name, ", ".join(f"{k} {v}" for k, v in m.settings().items() if k != "name"))
                for m in self.methods
            ],
        )
        parts = [
            Section("What was done", table=done),
            Section("What is not covered", table=self.coverage),
        ]
        if self.risk is not None:
            values = {f.measure: rounded(f.value) for f in self.risk.findings}
            parts += [
                Section(
                    "What an intruder could do",
                    f"The intruder knows {', '.join(self.risk.keys)}.",
                    table=(
                        ("measure", "risk", "meaning"),
                        [(f.measure, values[f.measure], f.meaning) for f in self.risk.findings],
                    ),
                    picture=bars(values, "risk"),
                    caption="Risk by measure, from 0 to 1",
                ),
                Section("Who the intruders are", table=self.risk.scenarios()),
            ]
        if not self.loss.comparisons:  # an empty file
            return parts
        lost = [(name, loss_class(value)) for name, value in self._told_losses.items()]
        parts.append(
            Section(
                "What was lost",
                "Mean loss of a value, from 0% (as it was) to 100% (gone), in classes: exact losses "
                "would tell what was withheld, and are for the curator (`discreet microdata utility`).",
                table=(("column", "loss"), [("all", lost[0][1]), *lost[1:]] if lost else []),
            )
        )
        return parts
