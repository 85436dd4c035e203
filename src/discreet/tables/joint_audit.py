"""The joint audit: what everything that a ledger remembers tells together.

It needs no records: facts say what was told, and which records stand in which cell. So withheld
values are as unknown here as to a reader, and exact answers of gateways, whose sets are only known
beside the records, are counted but not computed with.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.audit.atoms import atoms_of
from discreet.audit.intervals import audit_table
from discreet.data.facts import ClassFacts, LinearFacts, UncoveredFacts
from discreet.data.roster import Roster
from discreet.data.table import Status, Table
from discreet.dp.grant import granted
from discreet.ledger.memory import Earlier, earlier_releases, unpack_roster
from discreet.ledger.opening import open_ledger
from discreet.ledger.overview import datasets
from discreet.ledger.store import Ledger
from discreet.report import Report, Rows
from discreet.tables.joint_picture import Touch, draw_narrowest, draw_touches, touch_of
from discreet.tables.memory import JointJudgement

__all__ = ["JointAudit", "Quantity", "joint_audit"]

#: More cells than this are not computed exactly.
_MOST = 5_000
#: So many releases and cells are drawn.
_DRAWN = 20


@dataclasses.dataclass(frozen=True)
class Quantity(Report):
    """What all releases about one quantity of a dataset tell together."""

    dataset: str
    #: The measure that is added up, "records" where they are counted, or "classes" of files.
    quantity: str
    releases: tuple[int, ...]
    told: int
    withheld: int
    safe: bool
    #: The narrowest interval left for a withheld cell, as a share of its middle; none where there
    #: is no withheld cell.
    narrowest: float | None
    found: str
    #: The withheld cells with the narrowest intervals, and how wide these are.
    cells: tuple[tuple[str, float], ...] = ()


@dataclasses.dataclass(frozen=True)
class JointAudit(Report):
    """What everything that a ledger remembers tells together."""

    quantities: tuple[Quantity, ...]
    #: What no joint guarantee covers, and budgets.
    notes: tuple[str, ...]
    #: Whom each release tells of.
    touches: tuple[Touch, ...] = ()

    @property
    def safe(self) -> bool:
        """Whether nothing is told that must not be."""
        return all(quantity.safe for quantity in self.quantities)

    @property
    def verdict(self) -> str:
        """One sentence in plain words."""
        releases = {n for quantity in self.quantities for n in quantity.releases}
        if self.safe:
            return f"safe: {len(releases):,} releases tell together no more than they may"
        wrong = [q.quantity for q in self.quantities if not q.safe]
        return f"not safe: together the releases tell too much of {', '.join(wrong)}"

    def rows(self) -> Rows:
        """Return one line per quantity, then the notes."""
        header = ("dataset", "quantity", "releases", "told", "withheld", "narrowest", "found")
        body: list[tuple[Any, ...]] = [
            (
                q.dataset,
                q.quantity,
                ", ".join(map(str, q.releases)),
                q.told,
                q.withheld,
                _share(q.narrowest),
                q.found,
            )
            for q in self.quantities
        ]
        return header, [*body, *(("", "", "", "", "", "", note) for note in self.notes)]

    def page(self) -> str:
        """Return the report as a page for the curator, with which releases touch which quantity."""
        from discreet.page import Page, Section

        sections = [Section("What is told together", table=self)]
        if self.touches:
            sections.append(
                Section(
                    "Which releases touch whom",
                    "For each release, by its number in the ledger, how many records stand in a cell "
                    "or class that it tells of, how many only in cells that it withholds, and how "
                    "many it says nothing about.",
                    table=_touch_rows(self.touches),
                    picture=draw_touches(self.touches[-_DRAWN:]),
                    caption=f"The last {min(len(self.touches), _DRAWN)} of {len(self.touches)}"
                    if len(self.touches) > _DRAWN
                    else "Records by what each release tells of them",
                )
            )
        narrow = sorted((c for q in self.quantities for c in q.cells), key=lambda cell: cell[1])
        if narrow:
            sections.append(
                Section(
                    "The narrowest intervals left",
                    "Between which values withheld cells lie for somebody who has everything that "
                    "was told, as a share of the middle. 0 % is a cell that can be computed.",
                    table=(("cell", "width"), [(name, _share(width)) for name, width in narrow]),
                    picture=draw_narrowest([c for c in narrow if np.isfinite(c[1])][:_DRAWN]),
                    caption="Withheld cells with the narrowest intervals",
                )
            )
        return Page(
            "Everything released, judged together",
            sections,
            verdict=self.verdict,
            lead="For the curator: not for publication.",
        ).html()


def _touch_rows(touches: Sequence[Touch]) -> Rows:
    header = ("release", "what", "quantity", "told", "only withheld", "not in it")
    return header, [dataclasses.astuple(one) for one in touches]


@dataclasses.dataclass(frozen=True, eq=False)
class _Remembered:
    """The memory of a ledger without the records."""

    identity: str
    rosters: dict[str, Roster]
    facts: tuple[tuple[Earlier, LinearFacts], ...]
    answers: tuple[Any, ...] = ()

    @functools.cached_property
    def roster(self) -> Roster:
        return self.rosters[self.identity]

    def linear(self) -> Sequence[tuple[Earlier, LinearFacts]]:
        return self.facts


def _share(narrowest: float | None) -> str:
    if narrowest is None:
        return ""
    return "unbounded" if narrowest == float("inf") else f"{narrowest:.0%}"


def joint_audit(ledger: str | Path | Ledger) -> JointAudit:
    """Compute what all releases that a ledger remembers tell together.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.demo import salaries
    >>> with dc.open_ledger() as ledger:
    ...     joint_audit(ledger).verdict
    'safe: 0 releases tell together no more than they may'
    """
    given = isinstance(ledger, Ledger)
    book = open_ledger(ledger, read_only=not given)
    try:
        found: list[Quantity] = []
        notes: list[str] = []
        touches: list[Touch | None] = []
        for name in datasets(book):
            earlier = earlier_releases(book, name)
            touches += [touch_of(e.number, e.entry.question, f) for e in earlier for f in e.facts]
            found += _linear(book, name, earlier)
            found += _classes(name, earlier)
            notes += _notes(book, name, earlier)
    finally:
        if not given:
            book.close()
    touched = tuple(one for one in touches if one is not None)
    return JointAudit(tuple(found), tuple(notes), touched)


def _linear(book: Ledger, dataset: str, earlier: Sequence[Earlier]) -> list[Quantity]:
    rosters = {
        str(entry.details["snapshot"]): unpack_roster(entry.answer)
        for entry in book.history(dataset, kind="roster")
    }
    by_quantity: dict[Any, list[tuple[Earlier, LinearFacts]]] = {}
    for release in earlier:
        for fact in release.facts:
            if isinstance(fact, LinearFacts):
                by_quantity.setdefault(fact.quantity, []).append((release, fact))
    found = []
    every = [one for several in by_quantity.values() for one in several]
    for (measure, _), several in by_quantity.items():
        last, own = several[-1]
        memory = _Remembered(last.snapshot, rosters, tuple(o for o in every if o[1] is not own))
        judgement = JointJudgement(memory, own)
        isolating = not judgement.is_alone and judgement.isolating(own.exact)[0].any()
        cells = _narrowest(judgement, own, last.number)
        narrowest = None if cells is None else min((w for _, w in cells), default=float("inf"))
        words = "sets of fewer than k people are told" if isolating else "no set under k is told"
        if narrowest is not None and narrowest <= 1e-9:
            words += "; a withheld cell can be computed"
        found.append(
            Quantity(
                dataset,
                measure or "records",
                tuple(release.number for release, _ in several),
                sum(int((~fact.withheld).sum()) for _, fact in several),
                sum(int(fact.withheld.sum()) for _, fact in several),
                not isolating,
                narrowest,
                words,
                tuple(cells or ()),
            )
        )
    return found


def _narrowest(
    judgement: JointJudgement, own: LinearFacts, number: int
) -> list[tuple[str, float]] | None:
    """Return the withheld cells with the narrowest intervals, and their widths beside the middle."""
    hidden = int(own.withheld.sum()) + sum(int(f.withheld.sum()) for _, f in judgement.alike)
    size = len(own.lower) + sum(len(fact.lower) for _, fact in judgement.alike)
    if not hidden or size > _MOST:
        return None
    table = Table(
        own.dimensions,
        own.codes.astype(np.int32),
        own.lower,
        statistic=own.statistic,
        measure=own.measure,
        status=np.where(own.withheld, np.int8(Status.PRIMARY), np.int8(Status.SAFE)),
        lower=np.zeros(len(own.lower)),
        upper=np.zeros(len(own.lower)),
    )
    stacked = judgement.joint(table, alone=True)
    assert stacked is not None
    whole, withheld = stacked
    withheld[: len(table)] = own.withheld
    start, status = len(table), np.asarray(whole.status).copy()
    for _, fact in judgement.alike:
        status[start : start + len(fact.lower)][fact.withheld] = Status.PRIMARY
        start += len(fact.lower)
    whole = whole.replace(status=status)
    audit = audit_table(whole, published=~withheld, exact=True)
    frame = audit.intervals
    names = _names([(number, own), *((e.number, f) for e, f in judgement.alike)])
    middle = (frame["lower"] + frame["upper"]).abs() / 2
    width = ((frame["upper"] - frame["lower"]) / middle.clip(lower=1e-12)).to_numpy()
    bounded = np.flatnonzero(np.isfinite(width))
    order = bounded[np.argsort(width[bounded], kind="stable")][:_DRAWN]
    return [(names[int(audit.cells[place])], float(width[place])) for place in order]


def _names(several: Sequence[tuple[int, LinearFacts]]) -> list[str]:
    """Return what the cells of several releases are called, one after another."""
    names = []
    for number, fact in several:
        words = [dimension.codes for dimension in fact.dimensions]
        for row in fact.codes.tolist():
            codes = " × ".join(word[code] for word, code in zip(words, row, strict=True))
            names.append(f"release {number}: {codes}")
    return names


def _classes(dataset: str, earlier: Sequence[Earlier]) -> list[Quantity]:
    """Return the joint classes of files of each snapshot."""
    by_snapshot: dict[str, list[tuple[Earlier, ClassFacts]]] = {}
    for release in earlier:
        for fact in release.facts:
            if isinstance(fact, ClassFacts):
                by_snapshot.setdefault(release.snapshot, []).append((release, fact))
    found = []
    for several in by_snapshot.values():
        joint = atoms_of([fact.members for _, fact in several])
        inside = np.all([fact.members >= 0 for _, fact in several], axis=0)
        sizes = np.bincount(joint[inside]) if inside.any() else np.zeros(1, np.int64)
        smallest = int(sizes[sizes > 0].min(initial=len(joint)))
        ks = [int(m["k"]) for _, fact in several for m in fact.models if "k" in m]
        k = max(ks, default=1)
        found.append(
            Quantity(
                dataset,
                "classes",
                tuple(release.number for release, _ in several),
                int((sizes > 0).sum()),
                int((~inside).sum()),
                smallest >= k,
                None,
                f"the smallest joint class has {smallest} records, k is {k}",
            )
        )
    return found


def _notes(book: Ledger, dataset: str, earlier: Sequence[Earlier]) -> list[str]:
    notes = [
        f"{release.name}: {fact.reason}; no joint guarantee covers it"
        for release in earlier
        for fact in release.facts
        if isinstance(fact, UncoveredFacts)
    ]
    if answers := len(book.history(dataset, kind="exact")):
        notes.append(
            f"{answers:,} exact answers about {dataset!r} are judged when releases are made, beside "
            "the records, and not here"
        )
    grant, events = granted(book, dataset), book.spent(dataset, "dataset")
    if grant is not None:
        spent = grant.spent(events)
        notes.append(f"{dataset!r} has spent ε = {spent:.4g} of {grant.epsilon:g}")
    return notes
