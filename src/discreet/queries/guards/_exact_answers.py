"""Restriction at work: questions decided by their query sets and the history, never by values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.audit.dependences import families
from discreet.audit.history.auditor import Auditor, answer_groups, warm
from discreet.data.facts import Facts, LinearFacts
from discreet.data.sql.query import Measure, Query
from discreet.errors import EngineError, InputError, RefusedError
from discreet.ledger.entry import Entry
from discreet.queries.guards._base import Keeper, Proposal, Protected
from discreet.queries.guards._dependences import dependences, searched
from discreet.queries.guards._exact_history import ExactHistory, Step, smallest_k
from discreet.queries.guards._exact_settings import ExactSettings
from discreet.queries.guards._exact_values import ExactValues
from discreet.queries.guards._few_values import few_values, telling
from discreet.queries.guards._followed import Followed, bent, followed
from discreet.queries.guards._margin import known_bounds
from discreet.queries.guards._missing import require_known_gaps
from discreet.queries.guards._nearby import covering, nearest_answered
from discreet.queries.guards._partition import partition
from discreet.queries.guards._profiles import Profiles
from discreet.queries.guards._tables import told_sets
from discreet.queries.guards._units import require_single
from discreet.queries.packing import packed

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.ledger.store import Ledger
    from discreet.queries.guards._grouping import Parts

__all__ = ["ExactAnswers"]

Ids = npt.NDArray[np.int64]
_LINEAR = ("count", "units", "sum", "avg")


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


class ExactAnswers(Keeper):
    """Answers of one dataset under `restriction`."""

    serial = True

    def __init__(self, guard: ExactSettings, data: Protected, ledger: Ledger | None) -> None:
        self._guard = guard
        self._data = data
        if guard.k > data.count:
            raise InputError(
                f"k = {guard.k} is more than the {data.count} records",
                code="k-too-large",
                parameter="k",
            )
        require_single(data, "restriction")
        self._profiles = Profiles.of(data)
        self._cells: Ids | None = None
        if guard.mode == "partition":
            self._cells = partition(self._profiles, guard.k)
            self._sizes = np.bincount(self._cells, weights=self._profiles.counts)
        plain, logarithms = searched(data), searched(data, "logarithm")
        found, pairs = dependences(data, guard.dependent, plain), bent(data, (plain, logarithms))
        straight = families(found)
        pairs = [(a, b) for a, b in pairs if a not in straight or straight[a] != straight.get(b)]
        self.family = families(found, pairs)
        if self.family and guard.interval is not None:
            column = found[0].column if found else pairs[0][1]
            raise InputError(
                f"{column!r} follows from other confidential columns: an interval of one "
                "would not be kept by the other",
                code="dependent-interval",
                column=column,
                hint="leave one of them out of the data, or leave out interval",
            )
        data.relation.require(*guard.categorical)
        told = followed(data, (plain, logarithms))
        few = few_values(data)
        self._few = self._categorical(few, told)
        answered = set(self._profiles.known) - (self._few if guard.tells == "refused" else set())
        require_known_gaps(
            data, answered, guard.missing, instead=", or categorical, which refuses it"
        )
        crowd = self._profiles.crowd(data.count)
        self.notices = (
            *(() if crowd is None else (crowd,)),
            *(str(one) for one in found),
            *(f"{a} and {b} follow from each other: protected together" for a, b in pairs),
            *(str(one) for one in told if one.column not in few),
            *(telling(data, column, guard.k) for column in sorted(self._few)),
        )
        bounds = {} if guard.interval is None else known_bounds(data, guard.bounds, guard.inside)
        # Users of other guards may tell what they heard: all answers together keep the smallest k.
        self._floor = smallest_k(guard, data, ledger)
        self._values = ExactValues(data, self._profiles)
        self._history = ExactHistory(guard, self._profiles, self.family, bounds, self._floor)

    def ready(self, query: Query) -> _Ready:
        """Find the groups and their values; which may be told is another matter."""
        from discreet.queries.guards._grouping import summed

        self._check(query)
        keys, groups = self._profiles.grouping(query)
        # Largest first, so that what must be withheld to protect a small group is small too.
        order = np.argsort(-summed(self._profiles.counts, groups[0], groups[1]), kind="stable")
        try:
            rows = self._values.of(query, keys, groups)
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
                f"column {undeclared[0]!r} has few values, or one for most records: exact answers "
                "would tell them where a group is all alike",
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
            found.append((measure, self.family.get(attribute, attribute)))
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
            self._is_complete(m) or (name != "*" and name not in self.family)
            for m, name in self._audited(query)
        )
        attributes = self.attributes(query)
        free = not self._history.withholds(attributes)
        if self._cells is None and self._guard.interval is None and same and free:
            return answer_groups(self._history.asked(attributes), flat, ends, ready.order)
        shown = np.zeros(ends.size, bool)
        for place in ready.order:
            inside = flat[ends[place - 1] if place else 0 : ends[place]]
            decided = self._decide(query, inside)
            if decided is not None:
                self._history.accept(decided)
                shown[place] = True
        return shown

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
                    f"{measure.column!r} has few values, one for most, or others tell them: exact "
                    "answers about it would tell whose they are",
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

    def _decide(self, query: Query, inside: Ids) -> dict[str, Step] | None:
        """Return the decision per attribute, or None where any is unsafe."""
        if self._cells is not None and not self._is_union(query, inside):
            return None
        decided: dict[str, Step] = {}
        for measure, attribute in self._audited(query):
            if attribute in decided:
                continue
            step = self._history.step(attribute, self._with_value(measure, inside))
            if step is None:
                return None
            decided[attribute] = step
        return decided

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
                self._history.learn(attribute, here, own=entry.policy == self._guard.digest)

    def remember(self, facts: Sequence[Facts]) -> None:
        for fact in facts:
            if not isinstance(fact, LinearFacts):
                continue
            measure, _ = fact.quantity
            attribute = "*" if measure is None else measure
            attribute = self.family.get(attribute, attribute)
            if self._cells is not None and fact.withheld.any():
                raise _cut()
            hidden = told_sets(fact, fact.withheld, self._profiles)
            self._history.withhold(attribute, [self._valued(measure, one) for one in hidden])
            for inside in told_sets(fact, fact.exact, self._profiles):
                if self._cells is not None:
                    self._require_union(inside)
                self._history.learn(attribute, self._valued(measure, inside), own=True)

    def _valued(self, measure: str | None, inside: Ids) -> Ids:
        """Return the profiles whose records have a value of a measure."""
        known = None if measure is None else self._profiles.known.get(measure)
        return inside if known is None else inside[known[inside]]

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

    def forget(self) -> None:
        self._history.forget()

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
        return self._history.auditors

    def close(self) -> None:
        self._profiles.close()


def _attribute(measure: Measure) -> str:
    return measure.column or "*" if measure.function in ("sum", "avg") else "*"


def _cut() -> RefusedError:
    return RefusedError(
        "a table that the ledger remembers cuts or withholds cells of this gateway's partition",
        code="unjudged-table",
        hint='write mode="history"',
    )


def _too_few(guard: ExactSettings) -> RefusedError:
    hint = f"ask about more records: at least {guard.k}, and not all but a few of an earlier set"
    if guard.mode == "partition":
        hint = "ask about whole cells of the partition; EXPLAIN says what is near"
    return RefusedError(
        "too few records would be isolated, alone or together with earlier answers",
        code="too-few-records",
        hint=hint,
    )
