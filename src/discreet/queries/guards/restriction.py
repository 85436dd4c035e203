"""Query restriction: exact answers, or a refusal that tells nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.audit.dependences import families
from discreet.audit.history.auditor import Auditor, Decision, answer_groups, warm
from discreet.data.facts import Facts, LinearFacts
from discreet.data.sql.query import Measure, Query, from_clause
from discreet.errors import EngineError, InputError, RefusedError
from discreet.ledger.entry import Entry
from discreet.queries.guards._base import (
    Guard,
    Keeper,
    Proposal,
    Protected,
    addable,
    aggregate,
    whole_sum,
)
from discreet.queries.guards._dependences import dependences
from discreet.queries.guards._few_values import few_values, telling
from discreet.queries.guards._followed import Followed, bent, followed
from discreet.queries.guards._margin import known_bounds
from discreet.queries.guards._nearby import covering, nearest_answered
from discreet.queries.guards._partition import partition
from discreet.queries.guards._profiles import Profiles
from discreet.queries.guards._room import Plan, Room
from discreet.queries.guards._tables import told_sets
from discreet.queries.packing import packed
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.ledger.store import Ledger
    from discreet.queries.guards._grouping import Parts

    #: Groups, and their values or why these cannot be computed.

__all__ = ["Restriction"]

Ids = npt.NDArray[np.int64]
_LINEAR = ("count", "units", "sum", "avg")


@dataclasses.dataclass(frozen=True)
class Restriction(Guard):
    """Answer exactly, and refuse what would isolate fewer than k records with all earlier answers.

    The decision looks at query sets and at the history of everybody's answers, never at the value
    asked for, so a refusal tells nothing (Kenthapadi, Mishra and Nissim). With `mode="partition"`
    the records are put into cells of at least k by their public columns once, and exactly the
    unions of cells are answered.

    With `interval`, nobody who knows `bounds` can narrow a record's value below that width, from
    all answers together. Without bounds for a column everybody is taken to know that it is not
    negative, if it never is. As for withheld cells of a table, this needs values that are not at the
    ends of what everybody knows: each must lie at least `margin` (half the interval if left out)
    inside its bounds, which is checked once, when the gateway opens, and told to the curator only.
    A question is then refused if the query sets leave some record too little room to move, the
    others moving by no more than the margin. This also looks at query sets alone. Where values
    may lie at the ends, no rule that is blind to them can answer anything: the largest possible
    sum would give everybody's value away.

    A sum of zeros says that all of them are: counts, sums and means of a confidential column of
    texts or truths, and of numbers declared `categorical`, are refused, unless `tells="accepted"`.
    Numbers that are few, or that follow from public columns as a salary does from its grade, and are
    not declared keep the gateway from opening. Confidential columns that follow from each other
    (along a straight line or rising together, found when the gateway opens, or declared as
    `dependent`) are audited as one: a sum of any of them counts as a sum of all.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.demo import salaries
    >>> with dc.Gateway(salaries(), guard=Restriction(k=3)) as gate:
    ...     total = gate.ask("SELECT SUM(salary) FROM people", user="ana")
    ...     difference = gate.ask(
    ...         "SELECT SUM(salary) FROM people WHERE NOT (sector = 'Fin' AND region = 'TGN')",
    ...         user="bob",
    ...     )
    >>> total.kind, difference.kind
    ('exact', 'refused')
    """

    name: ClassVar[str] = "restriction"
    reference: ClassVar[str] = (
        "Kenthapadi, Mishra and Nissim (2005), Simulatable auditing; "
        "Chin and Ozsoyoglu (1982), Auditing and inference control in statistical databases"
    )
    answers: ClassVar[str] = "exact"

    k: int = parameter(5, help="smallest number of records an answer may isolate", low=2)
    mode: Literal["history", "partition"] = parameter(
        "history", help="audit all earlier answers, or answer only unions of fixed cells"
    )
    interval: float | None = parameter(
        None, help="smallest width to which a record's value may be narrowed", above=0
    )
    bounds: dict[str, tuple[float, float]] = parameter(
        {}, help="what everybody knows of a column: smallest and largest value"
    )
    margin: float | None = parameter(
        None,
        help="how far inside its bounds every value lies; half the interval if left out",
        above=0,
    )
    tells: Literal["refused", "accepted"] = parameter(
        "refused",
        help="whether sums and counts of a confidential column with few values are answered, "
        "which tell everybody's value where a group is all alike",
    )
    categorical: tuple[str, ...] = parameter(
        (),
        help="confidential columns of numbers that have few values, such as zeros and ones, or that "
        "follow from public columns",
    )
    dependent: dict[str, tuple[str, ...]] = parameter(
        {}, help="confidential columns that follow from others, and from which"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.interval is None:
            return
        if 2 * self.inside < self.interval:
            raise InputError(
                f"restriction: a margin of {self.inside:g} leaves an interval of "
                f"{2 * self.inside:g} at most",
                code="parameter-range",
                parameter="margin",
                hint=f"write a margin of {self.interval / 2:g} or more, or leave it out",
            )
        for column, (low, high) in self.bounds.items():
            if high - low < 2 * self.inside:
                raise InputError(
                    f"restriction: the bounds of {column!r} are narrower than twice the margin",
                    code="parameter-range",
                    parameter="bounds",
                    column=column,
                    hint="widen the bounds or lower the interval",
                )

    @property
    def inside(self) -> float:
        """How far inside its bounds every value must lie."""
        return self.margin if self.margin is not None else (self.interval or 0.0) / 2

    def open(self, data: Protected, ledger: Any = None) -> Keeper:
        """Return the guard at work: an auditor per attribute, on profiles of the records."""
        return _Keeper(self, data, ledger)


@dataclasses.dataclass(eq=False)
class _Ready:
    """What is known of a question before it is its turn."""

    groups: Parts
    #: In which groups are decided.
    order: Ids
    #: Their values; that these cannot be computed tells something of them.
    rows: pa.Table | EngineError
    #: All of them, as the ledger keeps them.
    packed: bytes = b""


@dataclasses.dataclass(eq=False)
class _Step:
    """What one answer changes for one attribute."""

    #: None where the partition decides.
    decision: Decision | None
    plan: Plan | None
    #: What it means together with answers under other settings.
    joint: Decision | None


class _Keeper(Keeper):
    serial = True

    def __init__(self, guard: Restriction, data: Protected, ledger: Ledger | None) -> None:
        self._guard = guard
        self._data = data
        if guard.k > data.count:
            raise InputError(
                f"k = {guard.k} is more than the {data.count} records",
                code="k-too-large",
                parameter="k",
            )
        _require_single(data)
        self._profiles = Profiles.of(data)
        self._cells: Ids | None = None
        if guard.mode == "partition":
            self._cells = partition(self._profiles, guard.k)
            self._sizes = np.bincount(self._cells, weights=self._profiles.counts)
        self._auditors: dict[str, Auditor] = {}
        self._rooms: dict[str, Room] = {}
        #: What is told and what tables withhold, as if all of it were told.
        self._withheld: dict[str, Auditor] = {}
        # Users of other guards may tell what they heard: all answers together keep the smallest k.
        self._floor = _floor(guard, data, ledger)
        self._joint: dict[str, Auditor] = {}
        found, pairs = dependences(data, guard.dependent), bent(data)
        straight = families(found)
        pairs = [(a, b) for a, b in pairs if a not in straight or straight[a] != straight.get(b)]
        self._family = families(found, pairs)
        if self._family and guard.interval is not None:
            column = found[0].column if found else pairs[0][1]
            raise InputError(
                f"{column!r} follows from other confidential columns: an interval of one "
                "would not be kept by the other",
                code="dependent-interval",
                column=column,
                hint="leave one of them out of the data, or leave out interval",
            )
        data.relation.require(*guard.categorical)
        told = followed(data)
        few = few_values(data)
        self._few = self._categorical(few, told)
        crowd = self._profiles.crowd(data.count)
        self.notices = (
            *(() if crowd is None else (crowd,)),
            *(str(one) for one in found),
            *(f"{a} and {b} follow from each other: protected together" for a, b in pairs),
            *(str(one) for one in told if one.column not in few),
            *(telling(data, column, guard.k) for column in sorted(self._few)),
        )
        #: What everybody knows of each column that has an interval to keep.
        self._bounds = (
            {} if guard.interval is None else known_bounds(data, guard.bounds, guard.inside)
        )

    # -- deciding --------------------------------------------------------------------------------
    def ready(self, query: Query) -> _Ready:
        """Find the groups and their values; which may be told is another matter."""
        from discreet.queries.guards._grouping import summed

        self._check(query)
        keys, groups = self._profiles.grouping(query)
        # Largest first, so that what must be withheld to protect a small group is small too.
        order = np.argsort(-summed(self._profiles.counts, groups[0], groups[1]), kind="stable")
        try:
            rows = self._exact(query, keys, groups)
        except EngineError as error:
            if error.code in ("interrupted", "connection-lost"):
                raise
            return _Ready(groups, order, error)
        return _Ready(groups, order, rows, packed(rows))

    def _categorical(self, found: frozenset[str], told: Sequence[Followed]) -> frozenset[str]:
        """Return the columns that are not answered exactly: what was declared, not what is found.

        A refusal that followed from the values would tell something of them. So numbers that turn
        out to be few, or to follow from public columns, are said to the curator, who declares them;
        nobody is answered before.
        """
        guard, data = self._guard, self._data
        numbers = {name for name in found if data.catalog[name].is_number}
        undeclared = sorted(numbers - set(guard.categorical))
        if undeclared and guard.tells == "refused":
            raise InputError(
                f"column {undeclared[0]!r} has few values: exact answers would tell them where a "
                "group is all alike",
                code="undeclared-categorical",
                column=undeclared[0],
                hint=f"declare categorical: [{', '.join(undeclared)}], which refuses them, "
                "or tells: accepted",
            )
        for one in told:
            if one.exactly and one.column not in guard.categorical and guard.tells == "refused":
                raise InputError(
                    f"column {one.column!r} follows from {', '.join(one.by)}, which everybody may "
                    "know: exact answers would tell it of everybody",
                    code="follows-from-public",
                    column=one.column,
                    hint=f"declare categorical: [{one.column}], which refuses them, "
                    "or tells: accepted; or answer under Perturbation",
                )
        return found | set(guard.categorical)

    def attributes(self, query: Query) -> list[str]:
        return list(dict.fromkeys(name for _, name in self._audited(query)))

    def _audited(self, query: Query) -> list[tuple[Measure, str]]:
        """Return each measure with the attributes whose auditors must agree to it.

        A mean together with a sum of the same records tells how many they are, so a mean counts
        as a count too; where values are missing, only beside a sum, for it is a count of its own.
        """
        found = []
        summed = {m.column for m in query.measures if m.function == "sum"}
        for measure in query.measures:
            attribute = _attribute(measure)
            found.append((measure, self._family.get(attribute, attribute)))
            is_mean = measure.function == "avg"
            if is_mean and (self._is_complete(measure) or measure.column in summed):
                found.append((measure, "*"))
        return found

    def answer(self, query: Query, user: str, ready: _Ready | None = None) -> Proposal:
        ready = ready or self.ready(query)
        shown = self._shown(query, ready)
        if shown.size and not shown.any():
            raise _too_few(self._guard)
        if isinstance(ready.rows, EngineError):
            raise ready.rows
        if shown.all():
            return Proposal("exact", ready.rows, ready.packed)
        return Proposal("exact", ready.rows.filter(shown), withheld=int((~shown).sum()))

    def prepare(self, query: Query) -> None:
        warm()
        self.ready(query)

    def _shown(self, query: Query, ready: _Ready) -> npt.NDArray[np.bool_]:
        """Decide on each group and take what is answered into the history."""
        flat, ends, _ = ready.groups
        same = all(
            self._is_complete(m) or (name != "*" and name not in self._family)
            for m, name in self._audited(query)
        )
        free = not self._withheld.keys() & set(self.attributes(query))
        if self._cells is None and self._guard.interval is None and same and free:
            return answer_groups(self._asked(query), flat, ends, ready.order)
        shown = np.zeros(ends.size, bool)
        for place in ready.order:
            inside = flat[ends[place - 1] if place else 0 : ends[place]]
            decided = self._decide(query, inside)
            if decided is not None:
                self._accept(decided)
                shown[place] = True
        return shown

    def _asked(self, query: Query) -> list[Auditor]:
        """Return the auditors of all attributes a question asks about.

        Records without a value count nothing for theirs, so that all look at the same records.
        """
        attributes = self.attributes(query)
        asked = [self._auditor(attribute) for attribute in attributes]
        if self._floor is not None:
            asked += [self._together(attribute) for attribute in attributes]
        return asked

    def _check(self, query: Query) -> None:
        named = query.predicate_columns.union(*(key.columns for key in query.keys))
        if secret := sorted(named & self._data.confidential):
            raise RefusedError(
                f"a condition on the confidential column {secret[0]!r} is not answered exactly",
                code="confidential-condition",
                hint="select by other columns",
            )
        for measure in query.measures:
            if measure.function not in _LINEAR:
                raise RefusedError(
                    f"{measure.function.upper()} is not answered exactly",
                    code="not-linear",
                    hint="ask for COUNT, SUM or AVG",
                )
            if measure.argument is not None and measure.column is None:
                raise RefusedError(
                    "an expression inside an aggregate is not answered exactly",
                    code="not-a-column",
                    hint="aggregate a single column, and put conditions into WHERE",
                )
            if measure.column in self._few and self._guard.tells == "refused":
                raise RefusedError(
                    f"{measure.column!r} has few values, or others tell them: exact answers about "
                    "it would tell whose they are",
                    code="tells-values",
                    hint="ask a gateway with Perturbation, or the curator for tells: accepted",
                )
        if self._has_several(query):
            # One decision at a time: the difference counts the records without a value.
            raise RefusedError(
                "counts of different records are not answered in one statement",
                code="several-counts",
                hint="ask for COUNT(*) and for the count of a column in two statements",
            )

    def _has_several(self, query: Query) -> bool:
        """Whether one auditor would have to decide on different records at once."""
        missing: dict[str, set[str | None]] = {}
        for measure, name in self._audited(query):
            missing.setdefault(name, set()).add(self._missing(measure))
        return any(len(columns) > 1 for columns in missing.values())

    def _decide(self, query: Query, inside: Ids) -> dict[str, _Step] | None:
        """Return the decision per attribute, or None where any is unsafe."""
        if self._cells is not None and not self._is_union(query, inside):
            return None
        decided: dict[str, _Step] = {}
        for measure, attribute in self._audited(query):
            if attribute in decided:
                continue
            step = self._step(attribute, self._with_value(measure, inside))
            if step is None:
                return None
            decided[attribute] = step
        return decided

    def _step(self, attribute: str, here: Ids) -> _Step | None:
        decision = joint = plan = None
        if self._cells is None:
            decision = self._auditor(attribute).decide(here)
            if not decision.safe or (not decision.known and self._tells_withheld(attribute, here)):
                return None
            if not decision.known and (room := self._room(attribute)) is not None:
                plan = room.after(here)
                if plan is None:
                    return None
        if self._floor is not None:
            joint = self._together(attribute).decide(here)
            if not joint.safe:
                return None
        return _Step(decision, plan, joint)

    def _is_union(self, query: Query, inside: Ids) -> bool:
        assert self._cells is not None
        held = np.bincount(
            self._cells[inside],
            weights=self._profiles.counts[inside],
            minlength=self._sizes.size,
        )
        whole = ((held == 0) | (held == self._sizes)).all() and held.any()
        return bool(whole) and all(self._is_complete(m) for m in query.measures)

    def _is_complete(self, measure: Measure) -> bool:
        # A cell with missing values may hold fewer than k of a column.
        return self._missing(measure) is None

    def _missing(self, measure: Measure) -> str | None:
        """Return the column of a measure if some records have no value there."""
        return measure.column if measure.column in self._profiles.known else None

    def _with_value(self, measure: Measure, inside: Ids) -> Ids:
        column = self._missing(measure)
        return inside if column is None else inside[self._profiles.known[column][inside]]

    def _auditor(self, attribute: str) -> Auditor:
        if attribute not in self._auditors:
            self._auditors[attribute] = Auditor(self._counts(attribute), self._guard.k)
        return self._auditors[attribute]

    def _together(self, attribute: str) -> Auditor:
        """Return the auditor of answers under all settings, which keep the smallest k."""
        assert self._floor is not None
        if attribute not in self._joint:
            self._joint[attribute] = Auditor(self._counts(attribute), self._floor)
        return self._joint[attribute]

    def _room(self, attribute: str) -> Room | None:
        guard = self._guard
        if guard.interval is None or attribute not in self._bounds:
            return None
        if attribute not in self._rooms:
            share = guard.interval / (2 * guard.inside)
            self._rooms[attribute] = Room(self._counts(attribute), share)
        return self._rooms[attribute]

    def _counts(self, attribute: str) -> Ids:
        counts = self._profiles.counts
        if attribute in self._profiles.known and attribute not in self._family:
            counts = np.where(self._profiles.known[attribute], counts, 0)
        return counts

    def _tells_withheld(self, attribute: str, here: Ids) -> bool:
        """Whether an answer could tell, with earlier ones, a cell that a table withholds.

        Where it follows from what is told and all withheld cells together, it may; else it cannot.
        """
        withheld = self._withheld.get(attribute)
        return withheld is not None and withheld.decide(here).known

    def _accept(self, decided: Mapping[str, _Step]) -> None:
        for attribute, step in decided.items():
            if step.decision is not None:
                self._auditors[attribute].accept(step.decision)
                if attribute in self._withheld:
                    self._withheld[attribute].learn(step.decision.inside)
            if step.plan is not None:
                self._rooms[attribute].accept(step.plan)
            if step.joint is not None:
                self._joint[attribute].accept(step.joint)

    # -- values ----------------------------------------------------------------------------------
    def _exact(self, query: Query, keys: pa.Table, parts: Parts) -> pa.Table:
        """Return the values of all groups, from the sums of their profiles where there are some."""
        import pyarrow as pa

        found = [self._added(measure, parts) for measure in query.measures]
        if any(column is None for column in found):
            engine = self._data.engine.name
            columns = {f"m{n}": _typed(m, engine) for n, m in enumerate(query.measures)}
            return _matched(self._data.fetch(query, columns), keys)
        named = {name: keys.column(name) for name in keys.column_names}
        return pa.table(named | {f"m{number}": column for number, column in enumerate(found)})

    def _added(self, measure: Measure, parts: Parts) -> Any:
        """Return a measure of each group as an Arrow array, or None if only the engine can."""
        import pyarrow as pa

        from discreet.queries.guards._grouping import summed

        profiles, column = self._profiles, measure.column
        counts = profiles.counts
        if column in profiles.known and measure.function != "units":
            counts = np.where(profiles.known[column], counts, 0)
        number = summed(counts, parts[0], parts[1])
        if measure.function in ("count", "units"):
            return pa.array(number)
        assert column is not None
        whole = self._data.catalog[column].kind == "integer"
        if not whole and not pa.types.is_floating(self._data.relation.schema.field(column).type):
            return None  # decimals are added up as they are

        def tree() -> exp.Expression:
            argument = exp.column(column, quoted=True)
            engine = self._data.engine.name
            total = (
                whole_sum(argument, engine) if whole else exp.Sum(this=addable(argument, engine))
            )
            known = exp.Coalesce(this=total, expressions=[exp.Literal.number(0)])
            return exp.cast(known, "bigint" if whole else "double")

        sums = profiles.sums(column, tree, parts)
        if sums is None:
            return None
        if measure.function == "avg":
            with np.errstate(divide="ignore", invalid="ignore"):
                sums = sums / number
        return pa.array(sums, mask=number == 0)

    # -- history ---------------------------------------------------------------------------------
    def replay(self, entry: Entry, query: Query, rows: pa.Table) -> None:
        if self._cells is not None and self._floor is None:
            return
        if not query.keys:
            parts = [self._profiles.inside(query)]
        else:
            keys, all_parts = self._profiles.groups(query)
            answered = {tuple(row.values()) for row in rows.select(keys.column_names).to_pylist()}
            parts = [
                part
                for key, part in zip(keys.to_pylist(), all_parts, strict=True)
                if tuple(key.values()) in answered
            ]
            # In the order in which they were decided, so that they are decided alike.
            parts.sort(key=lambda part: -self._profiles.records(part))
        for part in parts:
            for measure, attribute in self._audited(query):
                if measure.function not in _LINEAR:
                    continue
                here = self._with_value(measure, part)
                self._learn(attribute, here, own=entry.policy == self._guard.digest)

    def remember(self, facts: Sequence[Facts]) -> None:
        for fact in facts:
            if not isinstance(fact, LinearFacts):
                continue
            measure, _ = fact.quantity
            attribute = "*" if measure is None else measure
            attribute = self._family.get(attribute, attribute)
            if self._cells is not None and fact.withheld.any():
                raise _cut()
            for inside in told_sets(fact, fact.withheld, self._profiles):
                self._beside(attribute).learn(self._valued(measure, inside))
            for inside in told_sets(fact, fact.exact, self._profiles):
                if self._cells is not None:
                    self._require_union(inside)
                self._learn(attribute, self._valued(measure, inside), own=True)

    def _valued(self, measure: str | None, inside: Ids) -> Ids:
        """Return the profiles whose records have a value of a measure."""
        known = None if measure is None else self._profiles.known.get(measure)
        return inside if known is None else inside[known[inside]]

    def _beside(self, attribute: str) -> Auditor:
        """Return the auditor of what is told and what tables withhold."""
        if attribute not in self._withheld:
            self._withheld[attribute] = Auditor(self._counts(attribute), self._guard.k)
        return self._withheld[attribute]

    def _require_union(self, inside: Ids) -> None:
        """Refuse a table whose cells cut those of the partition: unions of these would tell more."""
        assert self._cells is not None
        held = np.bincount(self._cells[inside], minlength=len(self._sizes)) > 0
        outside = np.ones(len(self._cells), dtype=bool)
        outside[inside] = False
        if held[np.unique(self._cells[outside])].any():
            raise RefusedError(
                "a table that the ledger remembers cuts the fixed cells of this gateway",
                code="unjudged-table",
                hint='write mode="history"',
            )

    def _learn(self, attribute: str, here: Ids, *, own: bool) -> None:
        """Take an answer into the history, given under these settings or others.

        What was given cannot be taken back, and counts whatever it means. One of other settings
        that these would not give counts among all answers together, where the smallest k is kept.
        """
        if attribute in self._withheld:
            self._withheld[attribute].learn(here)
        if self._cells is None:
            auditor = self._auditor(attribute)
            if own or self._floor is None:
                new = auditor.learn(here)
            else:
                decision = auditor.decide(here)
                new = not decision.known
                if decision.safe:
                    auditor.accept(decision)
            if new and (room := self._room(attribute)) is not None:
                room.learn(here)
        if self._floor is not None:
            self._together(attribute).learn(here)

    def forget(self) -> None:
        self._auditors.clear()
        self._rooms.clear()
        self._joint.clear()
        self._withheld.clear()

    # -- explaining ------------------------------------------------------------------------------
    def expect(self, query: Query, user: str) -> dict[str, Any]:
        try:
            self._check(query)
        except RefusedError as error:
            return {"kind": "refused", "reason": error.message, "instead": error.hint or ""}
        if self._answered(query):
            return {"kind": "exact"}
        reason = _too_few(self._guard).message
        return {"kind": "refused", "reason": reason, "instead": self._nearby(query)}

    def _answered(self, query: Query) -> bool:
        parts = self._profiles.groups(query)[1] if query.keys else [self._profiles.inside(query)]
        return any(self._decide(query, part) is not None for part in parts)

    def _nearby(self, query: Query) -> str:
        """Return a question close by that would be answered, if one is found."""
        found = nearest_answered(query, self._profiles, self._data.hierarchies, self._answered)
        if self._cells is None:
            return found
        # The whole cells that the question touches are the nearest it can get.
        whole = covering(query, self._profiles, self._cells)
        if whole is not None and self._answered(whole):
            return whole.question
        return found

    @property
    def auditors(self) -> Mapping[str, Auditor]:
        """The auditor of each attribute asked about, for measurements."""
        return self._auditors

    def close(self) -> None:
        self._profiles.close()


def _floor(guard: Restriction, data: Protected, ledger: Ledger | None) -> int | None:
    """Return the k that all answers keep together; None if this guard sees to it alone."""
    others = [g for g in data.guards if isinstance(g, Restriction) and g != guard]
    smallest = [other.k for other in others]
    if ledger is not None:
        known = {guard.digest, *(other.digest for other in others)}
        if ledger.policies(data.name, "exact") - known:
            smallest.append(2)  # settings of an earlier time, of which nothing is known here
    if not smallest:
        return None
    floor = min(guard.k, *smallest)
    return floor if floor < guard.k or guard.mode == "partition" else None


def _require_single(data: Protected) -> None:
    unit = data.catalog.unit
    if unit is None:
        return
    distinct = exp.Count(this=exp.Distinct(expressions=[exp.column(unit, quoted=True)]))
    select = exp.select(exp.alias_(distinct, "n")).from_(from_clause(data.relation.query, "t"))
    if int(data.engine.fetch(select).column(0)[0].as_py()) < data.count:
        raise InputError(
            f"the unit {unit!r} has several records, restriction needs one",
            code="several-records",
            column=unit,
            hint="aggregate to one record per unit, or use Perturbation(contribution=…)",
        )


def _attribute(measure: Measure) -> str:
    return measure.column or "*" if measure.function in ("sum", "avg") else "*"


def _typed(measure: Measure, engine: str) -> exp.Expression:
    if measure.function == "sum" and measure.kind == "integer":
        return whole_sum(measure.total(), engine)
    if measure.function in ("sum", "avg"):
        added = exp.Sum if measure.function == "sum" else exp.Avg
        return exp.cast(added(this=addable(measure.total(), engine)), "double")
    tree = aggregate(measure)
    if measure.kind == "integer":
        return exp.cast(tree, "bigint")
    return exp.cast(tree, "double")


def _matched(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """Return the rows of groups in the order of their keys here."""
    import pyarrow as pa

    names = keys.column_names
    if not names:
        return rows
    place = {tuple(row.values()): n for n, row in enumerate(rows.select(names).to_pylist())}
    wanted = [place[tuple(row.values())] for row in keys.to_pylist()]
    return rows.take(pa.array(wanted, type=pa.int64()))


def _cut() -> RefusedError:
    return RefusedError(
        "a table that the ledger remembers cuts or withholds cells of this gateway's partition",
        code="unjudged-table",
        hint='write mode="history"',
    )


def _too_few(guard: Restriction) -> RefusedError:
    hint = f"ask about more records: at least {guard.k}, and not all but a few of an earlier set"
    if guard.mode == "partition":
        hint = "ask about whole cells of the partition; EXPLAIN says what is near"
    return RefusedError(
        "too few records would be isolated, alone or together with earlier answers",
        code="too-few-records",
        hint=hint,
    )
