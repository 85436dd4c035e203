"""Query restriction: exact answers, or a refusal that tells nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.sql.query import Measure, Query
from discreet.errors import InputError, RefusedError
from discreet.ledger.entry import Entry
from discreet.queries.guards._base import Guard, Keeper, Proposal, Protected, aggregate
from discreet.queries.guards._bounds import Knowledge
from discreet.queries.guards._partition import partition
from discreet.queries.guards._profiles import Profiles
from discreet.queries.history.auditor import Auditor, Decision
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.queries.guards._grouping import Parts

__all__ = ["Restriction"]

Ids = npt.NDArray[np.int64]
_LINEAR = ("count", "units", "sum", "avg")


@dataclasses.dataclass(frozen=True)
class Restriction(Guard):
    """Answer exactly, and refuse what would isolate fewer than k records with all earlier answers.

    The decision looks at query sets and at the history of everybody's answers, never at the value
    asked for, so a refusal tells nothing (Kenthapadi, Mishra and Nissim). With `mode="partition"`
    the records are put into cells of at least k by their public columns once, and exactly the
    unions of cells are answered. With `interval`, an answer is also refused if it would let
    somebody who knows `bounds` narrow a record's value below that width; that last check must look
    at the answer, so its refusals are not free of information.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.interval is not None and not self.bounds:
            raise InputError(
                "restriction: interval needs bounds",
                code="missing-parameter",
                parameter="bounds",
                hint="say what everybody knows, such as bounds={'salary': (0, 500_000)}",
            )

    def open(self, data: Protected, ledger: Any = None) -> Keeper:
        """Return the guard at work: an auditor per attribute, on profiles of the records."""
        return _Keeper(self, data)


class _Keeper(Keeper):
    serial = True

    def __init__(self, guard: Restriction, data: Protected) -> None:
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
        self._knowledge: dict[str, Knowledge] = {}

    # -- deciding --------------------------------------------------------------------------------
    def answer(self, query: Query, user: str) -> Proposal:
        self.changed = False
        self._check(query)
        keys, groups = self._profiles.grouping(query)
        flat, ends, _ = groups
        starts = np.concatenate([np.zeros(1, np.int64), ends])[:-1]
        parts = [flat[a:b] for a, b in zip(starts, ends, strict=True)]
        shown = self._shown(query, parts)
        if parts and not shown.any():
            raise _too_few(self._guard)
        rows = self._exact(query, keys, groups).filter(shown)
        kept = [part for place, part in enumerate(parts) if shown[place]]
        self._require_wide(query, kept, rows)
        return Proposal("exact", rows, withheld=int((~shown).sum()))

    def prepare(self, query: Query) -> None:
        self._check(query)
        self._exact(query, *self._profiles.grouping(query))

    def _shown(self, query: Query, parts: list[Ids]) -> npt.NDArray[np.bool_]:
        """Decide on each group and take what is answered into the history."""
        sizes = np.array([self._profiles.records(part) for part in parts])
        shown = np.zeros(len(parts), bool)
        # Largest first, so that what must be withheld to protect a small group is small too.
        for place in np.argsort(-sizes, kind="stable"):
            decided = self._decide(query, parts[place])
            if decided is not None:
                self._accept(decided)
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

    def _decide(self, query: Query, inside: Ids) -> dict[str, Decision] | None:
        """Return the decision per attribute, or None where any is unsafe."""
        if self._cells is not None:
            held = np.bincount(
                self._cells[inside],
                weights=self._profiles.counts[inside],
                minlength=self._sizes.size,
            )
            whole = ((held == 0) | (held == self._sizes)).all() and held.any()
            usable = all(self._is_complete(m) for m in query.measures)
            return {} if whole and usable else None
        decided: dict[str, Decision] = {}
        for measure in query.measures:
            attribute = _attribute(measure)
            if attribute in decided:
                continue
            auditor = self._auditor(attribute)
            decision = auditor.decide(self._with_value(measure, inside))
            if not decision.safe:
                return None
            decided[attribute] = decision
        return decided

    def _is_complete(self, measure: Measure) -> bool:
        # A cell with missing values may hold fewer than k of a column.
        return measure.column is None or measure.column not in self._profiles.known

    def _with_value(self, measure: Measure, inside: Ids) -> Ids:
        if measure.column is None or measure.column not in self._profiles.known:
            return inside
        return inside[self._profiles.known[measure.column][inside]]

    def _auditor(self, attribute: str) -> Auditor:
        if attribute not in self._auditors:
            counts = self._profiles.counts
            if attribute in self._profiles.known:
                counts = np.where(self._profiles.known[attribute], counts, 0)
            self._auditors[attribute] = Auditor(counts, self._guard.k)
        return self._auditors[attribute]

    def _accept(self, decided: Mapping[str, Decision]) -> None:
        self.changed = True
        for attribute, decision in decided.items():
            self._auditors[attribute].accept(decision)

    # -- values ----------------------------------------------------------------------------------
    def _exact(self, query: Query, keys: pa.Table, parts: Parts) -> pa.Table:
        """Return the values of all groups, from the sums of their profiles where there are some."""
        import pyarrow as pa

        found = [self._added(measure, parts) for measure in query.measures]
        if any(column is None for column in found):
            columns = {f"m{n}": _typed(m) for n, m in enumerate(query.measures)}
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
        total = exp.Sum(this=exp.column(column, quoted=True))
        tree = exp.Coalesce(this=total, expressions=[exp.Literal.number(0)])
        sums = profiles.sums(column, exp.cast(tree, "bigint" if whole else "double"), parts)
        if sums is None:
            return None
        if measure.function == "avg":
            with np.errstate(divide="ignore", invalid="ignore"):
                sums = sums / number
        return pa.array(sums, mask=number == 0)

    def _require_wide(self, query: Query, parts: list[Ids], rows: pa.Table) -> None:
        """Refuse an answer that would narrow some record's value too much."""
        if self._guard.interval is None:
            return
        proposed: dict[str, Knowledge] = {}
        for number, measure in enumerate(query.measures):
            column = measure.column
            if measure.function not in ("sum", "avg") or column not in self._guard.bounds:
                continue
            knowledge = proposed.get(column) or self._known(column).copy()
            values = rows.column(f"m{number}").to_pylist()
            for part, value in zip(parts, values, strict=True):
                here = self._with_value(measure, part)
                size = self._profiles.records(here)
                if size and value is not None:
                    knowledge.add(here, float(value) * (size if measure.function == "avg" else 1))
            if knowledge.narrowest() < self._guard.interval:
                raise _too_few(self._guard)
            proposed[column] = knowledge
        self._knowledge |= proposed

    def _known(self, column: str) -> Knowledge:
        if column not in self._knowledge:
            counts = self._profiles.counts
            if column in self._profiles.known:
                counts = np.where(self._profiles.known[column], counts, 0)
            self._knowledge[column] = Knowledge(counts, *self._guard.bounds[column])
        return self._knowledge[column]

    # -- history ---------------------------------------------------------------------------------
    def replay(self, entry: Entry, query: Query, rows: pa.Table) -> None:
        if self._cells is not None:
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
        for part in parts:
            for measure in query.measures:
                if measure.function not in _LINEAR:
                    continue
                auditor = self._auditor(_attribute(measure))
                decision = auditor.decide(self._with_value(measure, part))
                if decision.safe:
                    auditor.accept(decision)
                # An answer given under a smaller k cannot be taken back; what it isolates stays
                # refused here.
        if self._guard.interval is not None:
            self._learn(query, parts, rows)

    def _learn(self, query: Query, parts: list[Ids], rows: pa.Table) -> None:
        for number, measure in enumerate(query.measures):
            if measure.function in ("sum", "avg") and measure.column in self._guard.bounds:
                values = rows.column(f"m{number}").to_pylist()
                for part, value in zip(parts, values, strict=False):
                    here = self._with_value(measure, part)
                    size = self._profiles.records(here)
                    if value is not None:
                        scale = size if measure.function == "avg" else 1
                        self._known(measure.column).add(here, float(value) * scale)

    def forget(self) -> None:
        self._auditors.clear()
        self._knowledge.clear()

    # -- explaining ------------------------------------------------------------------------------
    def expect(self, query: Query, user: str) -> dict[str, Any]:
        try:
            self._check(query)
        except RefusedError as error:
            return {"kind": "refused", "reason": error.message, "instead": error.hint or ""}
        parts = self._profiles.groups(query)[1] if query.keys else [self._profiles.inside(query)]
        if any(self._decide(query, part) is not None for part in parts):
            return {"kind": "exact"}
        reason = _too_few(self._guard).message
        return {"kind": "refused", "reason": reason, "instead": self._nearby(query)}

    def _nearby(self, query: Query) -> str:
        """Return a question with one condition less that would be answered, if there is one."""
        if query.predicate is None:
            return ""
        conditions = list(query.predicate.flatten()) if isinstance(query.predicate, exp.And) else []
        for left_out in range(len(conditions)):
            kept = [c.copy() for n, c in enumerate(conditions) if n != left_out]
            joined: Any = exp.and_(*kept) if kept else None  # Any: sqlglot's own base class
            wider = dataclasses.replace(query, predicate=joined)
            parts = (
                self._profiles.groups(wider)[1] if query.keys else [self._profiles.inside(wider)]
            )
            if any(self._decide(wider, part) is not None for part in parts):
                return wider.question
        return ""

    @property
    def auditors(self) -> Mapping[str, Auditor]:
        """The auditor of each attribute asked about, for measurements."""
        return self._auditors

    def close(self) -> None:
        self._profiles.close()


def _require_single(data: Protected) -> None:
    unit = data.catalog.unit
    if unit is None:
        return
    distinct = exp.Count(this=exp.Distinct(expressions=[exp.column(unit, quoted=True)]))
    from discreet.data.sql.query import from_clause

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


def _typed(measure: Measure) -> exp.Expression:
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


def _too_few(guard: Restriction) -> RefusedError:
    hint = f"ask about more records: at least {guard.k}, and not all but a few of an earlier set"
    if guard.mode == "partition":
        hint = "ask about whole cells of the partition; EXPLAIN says what is near"
    return RefusedError(
        "too few records would be isolated, alone or together with earlier answers",
        code="too-few-records",
        hint=hint,
    )
