"""The gateway: parse, ask the guard, record in the ledger, and only then answer."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlglot import exp

from discreet.data.dataset import Dataset, to_library
from discreet.data.engines.faults import OUTSIDE
from discreet.data.engines.interruption import check
from discreet.data.facts import unpack_facts
from discreet.data.schema import Role
from discreet.data.sql import Catalog, Query, Statement, composed, finish, parse, read_statement
from discreet.data.sql.reading import explained
from discreet.errors import EngineError, InputError, RefusedError
from discreet.ledger.entry import Draft, Entry, Seen, StaleError
from discreet.ledger.opening import open_ledger
from discreet.ledger.store import Ledger
from discreet.ledger.witness import Witness
from discreet.queries.answer import Answer, Explanation, ResultColumn
from discreet.queries.composing import explained_together, together
from discreet.queries.guards._base import Guard, Keeper, Proposal, Protected
from discreet.queries.lookups import catalog_of, wide
from discreet.queries.opening import (
    opened,
    require_same_records,
    settings_digest,
    snapshot_details,
)
from discreet.queries.packing import packed, unpacked
from discreet.queries.policies import Policies, Policy
from discreet.queries.turns import Turns
from discreet.queries.watching import Watch, changed_records

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Gateway"]

Result = TypeVar("Result")

#: A decision that others overtake is made again, so many times.
RETRIES = 50


class Gateway:
    """Answers SQL about one dataset under a guard, and remembers everything it answered.

    Parameters
    ----------
    dataset
        The records, with roles; `dataset.name` is the relation in SQL.
    guard
        How questions are answered unless a policy says otherwise.
    ledger
        A file, an address `postgresql://…`, or an open ledger.
    policies
        Other guards and fewer columns for some: keys are ``user:ana``, ``role:student`` or, for
        a guard alone, ``column:salary``.
    apart
        Whether the curator vouches that users under different guards do not share answers; else
        intervals of one and exact answers of another are not given about the same column.
    columns
        What those may ask about for whom no policy names columns; all but identifiers if left out.
        Columns that nobody may ask about are not counted: name few where the table is wide.
    snapshot
        Name of this state of the data; a new one is needed when the data have changed since the
        ledger's last answer.
    head
        Where the ledger's last entry is noted, so that an older copy is noticed: a file,
        `postgresql://…`, `command:PROGRAM`, or an open witness.
    lookups, joins
        Public relations that may be joined by a declared key:
        ``joins={"regions": ("region", "code")}`` joins `regions` on people.region = regions.code.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.demo import salaries
    >>> gate = dc.Gateway(salaries(), guard=dc.Restriction(k=3))
    >>> gate.ask("SELECT SUM(salary) FROM people WHERE sector = 'HC'", user="ana").value()
    482000
    >>> print(gate.ask("SELECT AVG(salary) FROM people WHERE sector = 'Fin' AND region = 'TGN'"))
    refused: too few records would be isolated, alone or together with earlier answers; ...
    >>> gate.close()
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        guard: Guard,
        ledger: str | Path | Ledger = ":memory:",
        policies: Mapping[str, Guard | Policy] | None = None,
        apart: bool = False,
        columns: Sequence[str] | None = None,
        lookups: Mapping[str, Dataset] | None = None,
        joins: Mapping[str, tuple[str, str]] | None = None,
        snapshot: str | None = None,
        head: str | Path | Witness | None = None,
    ) -> None:
        self.dataset = dataset = _decided(dataset)
        self.guard = guard
        self._own_ledger = not isinstance(ledger, Ledger)
        self.ledger = open_ledger(ledger, head=head)
        self.catalog = catalog_of(dataset, lookups or {}, joins or {})
        self._lookups = dict(lookups or {})
        relation = wide(dataset, self.catalog, self._lookups)
        hierarchies = {column.name: column.hierarchies for column in dataset.schema.columns}
        relation.require(*(columns or ()))
        self._policies = Policies(
            guard, policies or {}, dataset.schema, apart=apart, columns=columns
        )
        guards = tuple(self._policies.guards())
        self._watch = Watch(self.dataset)
        self._population = opened(self.dataset, self.ledger, guards, snapshot, ledger)
        self._watch.compare_with(self._population.snapshot, self.ledger)
        self.data = Protected(
            dataset.name,
            relation,
            self.catalog,
            dataset.count,
            hierarchies,
            guards,
            self._askable(),
        )
        self._keepers: dict[str, Keeper] = {}
        #: How much of the ledger each keeper knows.
        self._seen: weakref.WeakKeyDictionary[Keeper, Seen] = weakref.WeakKeyDictionary()
        #: How often guards were opened anew, because the engine lost what it kept for them.
        self._reopened = 0
        self._names: dict[int, str] = {}
        #: Whether others, such as another process, record answers in the same ledger.
        self._shared = False
        self._counting = threading.Lock()
        self._lock = threading.RLock()
        self._turns = Turns()
        self._closed = False
        for chosen in guards:
            self._keeper(chosen)

    def _askable(self) -> frozenset[str] | None:
        """Return the columns that anybody may ask about, or was answered about exactly."""
        found = self._policies.askable()
        if found is None:
            return None
        for entry in self.ledger.history(self.dataset.name, kind="exact"):
            found |= _named(parse(entry.question, self.catalog))
        return found

    @property
    def notices(self) -> tuple[str, ...]:
        """What the curator should know, and nobody else: columns that tell of others, or of all."""
        said = [notice for keeper in self._keepers.values() for notice in keeper.notices]
        return tuple(dict.fromkeys([*said, *self._population.notices]))

    # -- asking ----------------------------------------------------------------------------------
    def ask(
        self,
        sql: str,
        *,
        user: str = "anonymous",
        roles: Sequence[str] = (),
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        frame: bool = True,
    ) -> Answer:
        """Answer a statement; refusals are answers too, with a reason that discloses nothing.

        Without `frame` the rows are given as an Arrow `table` only. Any: parameters are numbers,
        text, dates, booleans or None.
        """
        self._require_open()
        if (question := explained(sql)) is not None:
            told = self.explain(question, user=user, roles=roles, parameters=parameters)
            return self._explained(told)
        try:
            statement = read_statement(sql, self.catalog_for(user, roles), parameters=parameters)
        except RefusedError as error:
            self._record_unread(error, user)
            return _refused(error)
        if statement.outer is None:
            return self._answer(statement.questions[0], user, roles, frame=frame)
        return self._composed(statement, user, roles, frame=frame)

    def _answer(self, query: Query, user: str, roles: Sequence[str], *, frame: bool) -> Answer:
        """Answer one question."""
        try:
            guard = self.guard_for(query, user, roles)
        except RefusedError as error:
            self._record_refusal(error, query, user, "")
            return _refused(error)
        settings = self._name(guard)
        known = self.ledger.find(self.data.name, user, query.digest, settings)
        if known is not None:
            return self._released(query, known, guard, user, repeated=True, frame=frame)
        try:
            try:
                entry, new = self._reached(
                    guard, lambda keeper: self._decided(keeper, guard, query, user, settings)
                )
            except EngineError as error:
                raise _told(error) from error
        except RefusedError as error:
            self._record_refusal(error, query, user, settings)
            left = self._keeper(guard).left(user)
            return _refused(error, query=query, guard=guard, left=left)
        return self._released(query, entry, guard, user, repeated=not new, frame=frame)

    def _composed(
        self, statement: Statement, user: str, roles: Sequence[str], *, frame: bool
    ) -> Answer:
        """Answer the questions of a statement, and compute the rest on what was released."""
        answers: list[Answer] = []
        for query in statement.questions:
            answer = self._answer(query, user, roles, frame=False)
            if answer.refused:
                return answer
            answers.append(answer)
        try:
            table = composed(statement, [_shown(a) for a in answers])
        except RefusedError as error:
            return _refused(error)
        return together(answers, table, self.dataset.library if frame else None)

    def prepare(self) -> None:
        """Do now what the first questions would wait for; nothing is answered or spent.

        Cells that hide records are made, and sums over records that no question tells apart are taken.
        A server does so before it listens.
        """
        self._require_open()
        relation = self.catalog.relation
        measures = ["COUNT(*)"]
        for field in self.catalog.fields:
            if (
                field.is_number
                and field.role != Role.IDENTIFIER
                and field.name != self.catalog.unit
            ):
                name = exp.to_identifier(field.name, quoted=True).sql("postgres")
                measures += [f"SUM({name})", f"AVG({name})"]
        named = exp.to_identifier(relation, quoted=True).sql("postgres")
        for keeper in self._keepers.values():
            for measure in measures:
                with contextlib.suppress(RefusedError, EngineError):
                    # A name and aggregates of the catalog, read by the same parser as questions.
                    keeper.prepare(parse(f"SELECT {measure} FROM {named}", self.catalog))  # noqa: S608

    def explain(
        self,
        sql: str,
        *,
        user: str = "anonymous",
        roles: Sequence[str] = (),
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Say what an answer would be, cost and miss, without giving it or spending anything.

        Any: parameters are numbers, text, dates, booleans or None.
        """
        self._require_open()
        try:
            statement = read_statement(sql, self.catalog_for(user, roles), parameters=parameters)
            told = [self._explain(query, user, roles) for query in statement.questions]
        except RefusedError as error:
            return Explanation(self.guard.name, "refused", error.message, error.hint or "")
        return explained_together(told, self.guard.name)

    def _explain(self, query: Query, user: str, roles: Sequence[str]) -> Explanation:
        guard = self.guard_for(query, user, roles)
        known = self.ledger.find(self.data.name, user, query.digest, self._name(guard))

        def expected(keeper: Keeper) -> dict[str, Any]:
            with self._turns.alone() if keeper.serial else contextlib.nullcontext():
                self._replay(keeper)
                return {"kind": guard.answers, **keeper.expect(query, user)}

        try:
            facts = self._reached(guard, expected)
        except EngineError as error:
            raise _told(error) from error
        facts["error_95"] = _labelled(query, facts.get("error_95", {}))
        return Explanation(
            guard=guard.name, repeated=known is not None, question=query.question, **facts
        )

    def budget(self, user: str, roles: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return what is left of the budgets that hold for somebody, and how many counts they hold.

        Any: names and numbers: scope, period, budget, spent, left, questions_left.

        Examples
        --------
        >>> import discreet as dc
        >>> from discreet.demo import salaries
        >>> guard = dc.Perturbation(epsilon=1.0, per_query=0.25, bounds={"salary": (0, 500_000)})
        >>> with dc.Gateway(salaries(), guard=guard) as gate:
        ...     _ = gate.ask("SELECT COUNT(*) FROM people", user="ana")
        ...     [
        ...         (line["scope"], line["left"], line["questions_left"])
        ...         for line in gate.budget("ana")
        ...     ]
        [('user', 0.75, 3), ('dataset', 0.75, 3)]
        """
        self._require_open()
        guard = self._policies.person_guard(user, roles)
        return self._keeper(guard).budget(user)

    def catalog_for(self, user: str, roles: Sequence[str] = ()) -> Catalog:
        """Return what somebody may ask about: columns hidden from them are not in it."""
        return self._policies.visible(self.catalog, user, roles)

    def guard_for(self, query: Query, user: str, roles: Sequence[str] = ()) -> Guard:
        """Return the guard that answers this user's question."""
        return self._policies.guard_for(query, user, roles)

    # -- deciding and recording ------------------------------------------------------------------
    def _decided(
        self, keeper: Keeper, guard: Guard, query: Query, user: str, settings: str
    ) -> tuple[Entry, bool]:
        """Decide in turn, where the history matters, and wait for the ledger together.

        A decision counts those before it though their record may still be under way: it is
        recorded after them, or made again. Answers of other processes are found by the ledger.
        """
        ready = keeper.ready(query)
        names = keeper.attributes(query)
        charges, cost = keeper.charges(query, user, ready)
        if charges:
            # Before the engine runs: what it does with a statement may depend on the data.
            details = {"spent": {"epsilon": cost}}
            draft = Draft(
                self.data.name, user, "charged", query.question, query.digest, settings, details
            )
            charged, _ = self.ledger.record(draft, charges)
            if charged.kind != "charged":
                return charged, False
        for _ in range(RETRIES):
            with self._turn(keeper, names):
                check()  # whoever waited for the others may have been ended
                seen = self._seen[keeper] if keeper.serial else None
                if seen is not None and seen.lost:
                    continue
                try:
                    self._population.require_unchanged()
                    proposal = keeper.answer(query, user, ready)
                    check()  # an engine may finish what was ended: nobody waits for it
                except RefusedError:
                    raise  # nothing of it was taken into the history
                except BaseException:
                    self._lose(seen)
                    raise
                try:
                    self._watch.require_unchanged()
                    draft = self._draft(guard, proposal, query, user, settings)
                    due = () if charges else proposal.charges
                    ticket = self.ledger.submit(draft, due, after=seen)
                except BaseException:
                    self._lose(seen)  # it may count what will not be answered
                    raise
                self._count(seen, 1)
                if seen is not None and self._shared:
                    ticket.settle()  # others answer too: what waits here would often be stale
            try:
                return ticket.result()
            except StaleError:
                self._shared = True
                self._lose(seen)
            except BaseException:
                self._lose(seen)
                raise
            finally:
                self._count(seen, -1)
        raise EngineError(
            "others were answered again and again while this was decided", code="busy"
        )

    def _draft(
        self, guard: Guard, proposal: Proposal, query: Query, user: str, settings: str
    ) -> Draft:
        details = {
            "k": getattr(guard, "k", None),
            "spent": dict(proposal.spent),
            "error_95": dict(proposal.error_95),
            "withheld": proposal.withheld,
            **snapshot_details(self._population),
        }
        return Draft(
            self.data.name,
            user,
            proposal.kind,
            query.question,
            query.digest,
            settings,
            details,
            proposal.packed or packed(proposal.rows),
        )

    def _record_unread(self, error: RefusedError, user: str) -> None:
        """Record that a statement was not understood; what it said is not kept."""
        self.ledger.record(Draft(self.data.name, user, "refused", "", "", "", {"code": error.code}))

    def _record_refusal(self, error: RefusedError, query: Query, user: str, settings: str) -> None:
        details = {"code": error.code}
        self.ledger.record(
            Draft(self.data.name, user, "refused", query.question, query.digest, settings, details)
        )

    @contextlib.contextmanager
    def _turn(self, keeper: Keeper, names: Sequence[str]) -> Iterator[None]:
        """Wait for the turn to decide, with a keeper that knows what the ledger holds."""
        if not keeper.serial:
            yield
        elif self._shared:  # others' answers come all the time
            with self._turns.alone():
                self._replay(keeper)
                yield
        else:
            seen = self._seen.get(keeper)
            if seen is None or seen.lost or self._is_behind(seen):
                with self._turns.alone():
                    self._replay(keeper)
            with self._turns.on(names):
                yield

    def _is_behind(self, seen: Seen) -> bool:
        name = self.data.name
        return max(self.ledger.last(name, kind) for kind in ("exact", "release")) > seen.number

    def _replay(self, keeper: Keeper) -> None:
        """Bring a keeper up to date, while nobody decides."""
        if not keeper.serial:
            return
        seen = self._seen.setdefault(keeper, Seen())
        behind = self._is_behind(seen)
        self._shared = self._shared or (behind and seen.number > 0)
        released = self.ledger.last(self.data.name, "release") > seen.number
        if seen.lost or (behind and seen.pending) or (released and seen.number):
            # Decisions not recorded yet did not know of the others' answers: they are made again.
            # What a release withholds must be known before answers are counted.
            seen.lost = True
            keeper.forget()
            seen = self._seen[keeper] = Seen()
            released = True
        name, after = self.data.name, seen.number
        if released:
            for entry in self.ledger.history(name, kind="release"):
                facts = unpack_facts(entry.answer)
                require_same_records(entry, facts, self._population)
                keeper.remember(facts)
                seen.number = max(seen.number, entry.number)
        replayed = set()
        for entry in self.ledger.history(name, after=after, kind="exact"):
            # What one was told, another was told too, adds nothing.
            same = entry.digest, entry.policy, entry.answer_digest
            if same not in replayed:
                query = parse(entry.question, self.catalog)
                if self.data.askable is not None and not _named(query) <= self.data.askable:
                    raise RefusedError(
                        "another gateway answers about more columns of these records",
                        code="other-columns",
                        hint="ask the curator to open all gateways with the same columns",
                    )
                keeper.replay(entry, query, unpacked(entry.answer))
                replayed.add(same)
            seen.number = max(seen.number, entry.number)

    def _count(self, seen: Seen | None, step: int) -> None:
        """Count decisions that are made and not known to be recorded."""
        if seen is not None:
            with self._counting:
                seen.pending += step

    def _lose(self, seen: Seen | None) -> None:
        """Have a keeper start anew from the ledger: it counts what is not recorded."""
        if seen is not None:
            seen.lost = True

    def _name(self, guard: Guard) -> str:
        """Return the digest of a guard's settings; guards live as long as the gateway."""
        if id(guard) not in self._names:
            self._names[id(guard)] = settings_digest(guard, self._population)
        return self._names[id(guard)]

    def _keeper(self, guard: Guard) -> Keeper:
        name = self._name(guard)
        found = self._keepers.get(name)
        if found is not None:  # without waiting for whoever decides
            return found
        with self._lock:
            if name not in self._keepers:
                self._keepers[name] = guard.open(self.data, self.ledger)
            return self._keepers[name]

    def _reached(self, guard: Guard, work: Callable[[Keeper], Result]) -> Result:
        """Have a keeper do something; if what the engine kept for it is lost, open it anew first."""
        reopened = self._reopened
        try:
            return work(self._keeper(guard))
        except EngineError as error:
            if error.code != "connection-lost" or not error.facts.get("kept"):
                raise
        self._reopen(reopened)
        return work(self._keeper(guard))

    def _reopen(self, reopened: int) -> None:
        """Open all guards again, as at the start; what they answered comes from the ledger.

        Those in use elsewhere stay as they are: each knows how far it has read in the ledger.
        """
        with self._turns.alone(), self._lock:
            if self._reopened != reopened:
                return  # somebody else has done so
            self._watch.require_unchanged()
            relation = wide(self.dataset, self.catalog, self._lookups)
            self.data = dataclasses.replace(self.data, relation=relation)
            guards = {self._name(guard): guard for guard in self._policies.guards()}
            self._keepers = {
                name: guard.open(self.data, self.ledger) for name, guard in guards.items()
            }
            self._reopened += 1

    # -- answering -------------------------------------------------------------------------------
    def _released(
        self,
        query: Query,
        entry: Entry,
        guard: Guard,
        user: str,
        *,
        repeated: bool,
        frame: bool,
    ) -> Answer:
        released = unpacked(entry.answer)
        table = finish(query, _in_digits(query, released, entry.details["error_95"]))
        return Answer(
            kind=entry.kind,
            frame=to_library(table, self.dataset.library) if frame else None,
            columns=_columns(query, table, entry.kind),
            spent={} if repeated else entry.details["spent"],
            left=self._keeper(guard).left(user),
            error_95=_labelled(query, entry.details["error_95"]),
            withheld=entry.details["withheld"],
            question=query.question,
            guard=guard.name,
            number=entry.number,
            repeated=repeated,
            aggregates=0 if repeated else len(query.measures) * released.num_rows,
            table=table,
        )

    def _explained(self, told: Explanation) -> Answer:
        import pyarrow as pa

        header, body = told.rows()
        table = pa.table(
            {name: [str(row[place]) for row in body] for place, name in enumerate(header)}
        )
        return Answer(
            kind="explanation",
            frame=to_library(table, self.dataset.library),
            columns=tuple(ResultColumn(name, "text", "exact") for name in header),
            reason=told.reason,
            question=told.question,
            guard=told.guard,
            table=table,
        )

    # -- life ------------------------------------------------------------------------------------
    def _require_open(self) -> None:
        if self._closed:
            raise InputError("the gateway is closed", code="closed-gateway")

    def close(self) -> None:
        """Let go of guards and, if the gateway opened it, of the ledger; may be called twice."""
        with self._turns.alone(), self._lock:
            if self._closed:
                return
            self._closed = True
            for keeper in self._keepers.values():
                keeper.close()
            if self._own_ledger:
                self.ledger.close()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _in_digits(query: Query, rows: pa.Table, errors: Mapping[str, float]) -> pa.Table:
    """Round averages to the digits that the noise leaves: two of those of their error."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for number, measure in enumerate(query.measures):
        name = f"m{number}"
        error = errors.get(name)
        if measure.function != "avg" or not error or name not in rows.column_names:
            continue
        if not math.isfinite(error) or not pa.types.is_floating(rows.schema.field(name).type):
            continue
        digits = 1 - math.floor(math.log10(error))
        rounded = pc.round(rows.column(name), ndigits=digits)
        rows = rows.set_column(rows.column_names.index(name), name, rounded)
    return rows


def _shown(answer: Answer) -> pa.Table:
    assert answer.table is not None  # it was not refused
    return answer.table


_TYPES = {"integer": "bigint", "number": "double"}


def _columns(query: Query, table: pa.Table, kind: str) -> tuple[ResultColumn, ...]:
    found = []
    for output in query.outputs:
        reference = output.reference or ""
        part = "key" if reference.startswith("k") else kind
        for end in ("", "_lower", "_upper"):
            if (name := output.label + end) in table.column_names:
                type_ = _TYPES.get(output.kind, output.kind)
                arrow = str(table.schema.field(name).type)
                type_ = "double" if arrow == "double" else type_
                shown = "exact" if part == "interval" else part
                found.append(ResultColumn(name, type_, end.strip("_") or shown))
    return tuple(found)


def _named(query: Query) -> frozenset[str]:
    """Return the columns that a question is about."""
    named = (query.predicate_columns, *(key.columns for key in query.keys))
    return frozenset().union(*named, *(measure.columns for measure in query.measures))


def _labelled(query: Query, errors: Mapping[str, float]) -> dict[str, float]:
    return {
        output.label: errors[output.reference]
        for output in query.outputs
        if output.reference in errors
    }


#: What whoever asks is told of failures that have nothing to do with the data or the question.
_OUTSIDE = {
    "connection-lost": (
        "the connection to the records was lost",
        "ask again in a while; a question that was charged is not charged again",
    ),
    "no-right": ("the gateway may no longer read the records", "tell the curator"),
    "changed-table": ("the table of the records has changed its columns", "tell the curator"),
}


def _told(error: EngineError) -> EngineError | RefusedError:
    """Return what whoever asks may know of a failure of the engine."""
    if error.code.startswith(("ledger", "interrupted")) or error.code == "busy":
        return error
    if error.code == "data-changed":
        return changed_records()
    if error.code in OUTSIDE:
        reason, hint = _OUTSIDE.get(
            error.code, ("the engine has no room to compute this", "tell the curator")
        )
        return EngineError(reason, code=error.code, hint=hint)
    # What failed, and where, would tell something of the data: every failure is the same.
    return RefusedError(
        "the question could not be computed",
        code="not-computable",
        hint="simplify the expressions",
    )


def _refused(
    error: RefusedError,
    *,
    query: Query | None = None,
    guard: Guard | None = None,
    left: Mapping[str, float] | None = None,
) -> Answer:
    return Answer(
        kind="refused",
        frame=None,
        reason=error.message,
        hint=error.hint or "",
        code=error.code,
        left=dict(left or {}),
        question="" if query is None else query.question,
        guard="" if guard is None else guard.name,
    )


def _decided(dataset: Dataset) -> Dataset:
    """Return the dataset without the columns that nobody decided on: they are not public."""
    from discreet.data.decisions import require_decided

    if len(dataset.schema.undecided) == len(dataset.columns):
        require_decided(dataset, dataset.columns)
    return dataset.replace(schema=dataset.schema.with_undecided_hidden())
