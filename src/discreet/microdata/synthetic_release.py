"""A release of synthetic records: one file or several, what they keep, what protects people."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.data.facts import Facts, UncoveredFacts
from discreet.data.release import Evidence, Standing
from discreet.dp.caution import caution
from discreet.errors import RefusedError
from discreet.microdata.bought import Bought
from discreet.microdata.columns import Numbers, Places, is_number
from discreet.microdata.judgement import FEWEST
from discreet.microdata.published import rounded
from discreet.microdata.release import MicrodataRelease
from discreet.microdata.synthesizers._base import Budget, Fitted, Synthesizer, owners
from discreet.randomness import Randomness
from discreet.report import Rows
from discreet.verification import Held

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.comparison import UtilityReport
    from discreet.microdata.judgement import SyntheticRisk
    from discreet.page import Section

__all__ = ["SyntheticRelease"]

#: Files that are attacked together, at most; more where they hold fewer records than this.
_ATTACKED, _ATTACKED_RECORDS = 10, 200_000
#: What arithmetic adds to a number, relative to it.
_DUST = 1e-9
_UNTOLD = "; what they lost is measured for the curator only"
#: The same words whatever the count of copies: a page that leaves must not tell it.
_DRAWN = (
    "The records were drawn from a model, and one of them may equal an original record; their "
    "order was drawn by lot."
)


@dataclasses.dataclass(frozen=True, eq=False)
class SyntheticRelease(MicrodataRelease):
    """Synthetic records with their evidence.

    `frame` has the first file and `sets` all of them. Where the promise is differential privacy,
    nothing that is computed from the original records is written: risk and utility are for the
    curator.
    """

    method: Synthesizer | None = None
    files: tuple[Dataset, ...] = ()
    #: What was learned from the records; stays in the house.
    model: Fitted | None = None
    #: What was spent, where the promise is formal.
    spent: Budget | None = None
    #: Where it was charged, if it was made with a ledger.
    standing: Standing | None = None
    #: What was lost, measured with noise, if a report was bought.
    bought: Bought | None = None

    def __repr__(self) -> str:
        # Not the original: how many records it has is nobody's business where the promise is formal.
        return (
            f"SyntheticRelease({self.method!r}, {len(self.files)} × {len(self.dataset):,} records: "
            f"{self.promise})"
        )

    def events(self) -> Mapping[str, int]:
        """Return the privacy events of the fit."""
        return {} if self.spent is None else self.spent.events

    def discloses(self, memory: Any) -> Sequence[Facts]:
        """Return that only a formal promise holds jointly. Any: as in the base."""
        del memory
        if self.spent is not None:
            return ()
        return (UncoveredFacts("records were synthesised without differential privacy"),)

    @property
    def synthesizer(self) -> Synthesizer:
        """How the records were made."""
        assert self.method is not None
        return self.method

    @property
    def corresponds(self) -> bool:
        """Whether every record stands in the place of an original one."""
        return self.synthesizer.corresponds

    @property
    def sets(self) -> list[Any]:
        """All files, each as a frame in the type that went in. Any: three libraries have frames."""
        return [file.frame for file in self.files]

    @property
    def keeps(self) -> str:
        """What of the original the records keep, in words."""
        return self.synthesizer.keeps

    @property
    def promise(self) -> str:
        """What protects people, in one sentence."""
        method = self.synthesizer
        if self.bought is not None and self.spent is not None:
            method = dataclasses.replace(method, epsilon=self.spent.epsilon)  # type: ignore[call-arg]
        return method.promise

    @property
    def is_private(self) -> bool:
        """Whether the promise is differential privacy."""
        return self.synthesizer.protection == "dp"

    @functools.cached_property
    def _risk(self) -> SyntheticRisk:
        """The attacks, tried on a file that the method makes of one half of the records.

        Both halves are drawn by lot, person by person where units are declared, and the generator is
        fitted anew, with the settings that it found for the whole file: people of the other half are
        like those in the file in everything but that the generator never saw them. As many files are
        drawn as leave together, up to `attacked`.
        """
        import pyarrow as pa

        from discreet.microdata.judgement import like, linkage_risk, synthetic_risk

        rng = self.draws.get("risk") or Randomness.secure()
        if self.corresponds:
            return linkage_risk(self.original, self.dataset, rng=rng)
        names = list(self.dataset.columns)
        rows = self.original.arrow()
        parts = _halves(owners(self.original), rng)
        one, other = (like(self.original, rows.take(np.sort(part))) for part in parts)
        if self.model is None:
            fitted = self.synthesizer.fit(one, rng=rng)
        else:
            fitted = self.model.again(self.synthesizer, one, rng=rng)
        files = [fitted.draw(len(one), rng=rng) for _ in range(self.attacked)]
        again = like(one, pa.concat_tables(files).select(names))
        untried = ""
        if self.attacked < len(self.files):
            untried = f"{self.attacked:,} of the {len(self.files):,} files were attacked together"
        return synthetic_risk(
            one.select(names),
            again,
            other.select(names),
            remedy=self.remedy,
            untried=untried,
            rng=rng,
        )

    @property
    def attacked(self) -> int:
        """How many files the attacks use together: all that leave, where memory and patience allow."""
        most = max(_ATTACKED, _ATTACKED_RECORDS // max(len(self.original) // 2, 1))
        return min(len(self.files) or 1, most)

    def risk(self) -> SyntheticRisk:  # type: ignore[override]  # attacks of their own, half and half
        """Return what intruders gain: half-and-half design, beside a bootstrap that leaks.

        Where records stay in their places, intruders link people to them instead.
        """
        return self._risk

    @functools.cached_property
    def _utility(self) -> UtilityReport:
        from discreet.microdata.judgement import synthetic_utility

        rng = self.draws.get("loss") or Randomness.secure()
        return synthetic_utility(self.original, self.dataset, rng=rng)

    def utility(self) -> UtilityReport:
        """Return what the first file lost against the original."""
        return self._utility

    @functools.cached_property
    def independent(self) -> float:
        """What a useless file loses in pairs of columns: each drawn independently of the others."""
        from discreet.microdata.judgement import independent_columns

        rng = self.draws.get("loss") or Randomness.secure()
        return independent_columns(self.original.select(list(self.dataset.columns)), rng=rng)

    @property
    def remedy(self) -> str:
        """What to do where the file leaks, in words."""
        leaf = self.notes.get("smallest leaf")
        if isinstance(leaf, int) and leaf < 50:
            return f"leaves of {leaf} records are small: write min_leaf=50, or use aim"
        if self.is_private:
            return "lower epsilon"
        return "synthesise with aim, whose promise is formal, or with larger leaves or groups"

    @property
    def verdict(self) -> str:
        """The release in one sentence of plain words."""
        if self.is_private:
            assert self.spent is not None
            warned = caution(self.spent.epsilon)
            return (
                f"synthetic records with the promise: {self.promise}"
                + (f"; {warned}" if warned else "")
                + (f"; {self.bought.words()}" if self.bought is not None else _UNTOLD)
            )
        told = self._measured_words
        return f"synthetic records: {told}; {self.promise}"

    @property
    def _measured_words(self) -> str:
        if len(self.original) < FEWEST:
            return "too few records to try an attack on"
        words = f"{self.risk().verdict}; {self.utility().verdict}"
        if self._own_values:
            listed = ", ".join(f"{many:,} of {name}" for name, many in self._own_values.items())
            words += f"; values that one record alone had stand in the file: {listed}"
        return words

    @functools.cached_property
    def _own_values(self) -> dict[str, int]:
        """How many released values, by column, belonged to a single original record.

        Whoever knows an extreme value finds it again, whatever the record around it: smoothing,
        coarser codes or a private method leave none.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        found: dict[str, int] = {}
        for name in self.dataset.columns:
            before = self.original.arrow([name]).column(0)
            counts = before.drop_null().value_counts()
            single = pc.filter(counts.field("values"), pc.equal(counts.field("counts"), 1))
            held = [file.arrow([name]).column(0).drop_null().unique() for file in self.files]
            # Whole numbers may have become fractions: those are nobody's own.
            kind = before.type
            if any(pa.types.is_floating(one.type) for one in held):
                kind = pa.float64()
            after = pa.chunked_array([one.cast(kind) for one in held], kind).unique()
            if pa.types.is_float64(kind):
                many = _near(after.to_numpy(), single.cast(kind).to_numpy(zero_copy_only=False))
            else:
                many = int(pc.sum(pc.is_in(after, single)).as_py() or 0)
            if many:
                found[name] = many
        return found

    @functools.cached_property
    def copies(self) -> tuple[int, ...]:
        """How many records of each file equal an original one as a whole, for the curator only.

        Common records come again by chance, so the count alone does not say that the file leaks.
        """
        from discreet.microdata.copies import copied

        before = self.original.arrow(list(self.dataset.columns))
        return tuple(copied(file.arrow(), before) for file in self.files)

    def evidence(self) -> Evidence:
        """Return what was done and measured; of a private release nothing that was measured."""
        method = self.synthesizer
        settings: dict[str, Any] = {
            "methods": [method.settings()],
            "identifiers removed": list(self._removed),
            "row order": "drawn by lot",
            "sets": len(self.files),
            "inference": method.inference,
            "keeps": self.keeps,
            "promise": self.promise,
            **self.notes,
        }
        risk: dict[str, Any] = {}
        loss: dict[str, Any] = {}
        if self.bought is not None:
            loss["bought"] = dataclasses.asdict(self.bought)
        if self.spent is not None:
            risk["privacy"] = {
                "epsilon": self.spent.epsilon,
                "delta": self.spent.delta,
                "rho": self.spent.rho,
            }
        else:
            settings["original records"] = len(self.original)
            if len(self.original) >= FEWEST:
                risk |= {f.measure: rounded(dict(f.facts)) for f in self.risk().found.findings}
                risk["values of one record"] = dict(self._own_values)
                loss = {c.measure: rounded(c.value) for c in self.utility().comparisons}
                loss["marginals of independent columns"] = rounded(self.independent)
        return Evidence("synthetic", settings, risk, loss, self.verdict, self.randomness)

    def promises(self) -> Sequence[Mapping[str, Any]]:
        """Return the columns and the number of records of each file."""
        return [
            {
                "kind": "records",
                "file": name,
                "columns": list(file.columns),
                "numbers": [f.name for f in file.relation.schema if is_number(f.type)],
                "records": len(file),
                "counted": "records",
            }
            for name, file in zip(self.file_names, self.files, strict=True)
        ]

    def held(self) -> Held:
        """Return nothing: the promise is about the records written."""
        return Held()

    @property
    def file_names(self) -> list[str]:
        """Names of the written files."""
        if len(self.files) == 1:
            return [self.file_name]
        return [f"{self.dataset.name}-{n}.{self.suffix}" for n in range(1, len(self.files) + 1)]

    def write_files(self, folder: Path) -> None:
        """Write every file in an order drawn by lot, and a page about them."""
        if self.randomness == "seeded":
            raise RefusedError(
                "a seeded random source can be replayed, so it is refused for a release",
                code="seeded-randomness",
                hint="leave out rng, or pass rng=Randomness.secure()",
            )
        for name, file in zip(self.file_names, self.files, strict=True):
            mixed = dataclasses.replace(self, dataset=file).shuffled(rng=self.draws.get("order"))
            mixed.write(folder / name, format=self.suffix)
        (folder / "report.html").write_text(self.page(), encoding="utf-8")

    def page(self) -> str:
        """Return the report as a page for people."""
        from discreet.page import Page

        return Page(
            f"Synthetic records {self.dataset.name}",
            self.sections(),
            verdict=self.verdict,
            lead=f"{len(self.files)} file{'s' * (len(self.files) > 1)} of "
            f"{len(self.dataset):,} records, {len(self.dataset.columns)} columns",
            footer="Identifiers were removed and the order of the records was drawn by lot."
            if self.corresponds
            else _DRAWN,
        ).html()

    def sections(self) -> list[Section]:
        """Return the parts of the page: what was done, what it keeps, what intruders gain."""
        from discreet.microdata.synthetic_pages import measured_sections
        from discreet.page import Section

        settings = self.synthesizer.settings()
        done: Rows = (
            ("what", "how"),
            [
                ("method", settings.pop("name")),
                *(
                    (name, str(value))
                    for name, value in settings.items()
                    if value not in (None, {}, [], (), False)
                ),
                ("kept", self.keeps),
                ("promise", self.promise),
                ("how to combine files", self.synthesizer.inference),
            ],
        )
        parts = [Section("What was done", table=done)]
        if self.is_private:
            words = "Measures that look at the original records are not private: they are not here."
            if self.bought is not None:
                words = f"With noise, {self.bought.words()}. {words}"
            return [*parts, Section("What was lost", words)]
        if len(self.original) < FEWEST:
            return parts
        measured = measured_sections(
            self.original, self.dataset, self.risk(), self.utility(), self.independent
        )
        return [*parts, *measured]


def _near(values: Numbers, known: Numbers) -> int:
    """Return how many values are one of those known, but for what arithmetic adds to them."""
    known = np.sort(known[np.isfinite(known)])
    values = values[np.isfinite(values)]
    if not known.size or not values.size:
        return 0
    dust = _DUST * np.maximum(np.abs(values), np.abs(known).max() * 1e-3)
    below = np.searchsorted(known, values - dust, side="left")
    return int((below < np.searchsorted(known, values + dust, side="right")).sum())


def _halves(owner: Places, rng: Randomness) -> tuple[Places, Places]:
    """Return two lists of records by lot, of one length, that have no owner in common."""
    mixed = rng.permutation(owner.size)
    units, unit = np.unique(owner, return_inverse=True)
    place = np.empty(units.size, np.int64)
    place[rng.permutation(units.size)] = np.arange(units.size)
    inside = place[unit.ravel()[mixed]] < units.size // 2
    one, other = mixed[inside], mixed[~inside]
    size = min(one.size, other.size)
    return one[:size], other[:size]
