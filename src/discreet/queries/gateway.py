"""The gateway: parse, ask the guard, record in the ledger, and only then answer."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.data.dataset import Dataset, to_library
from discreet.data.sql import Catalog, Join, Query, finish, parse
from discreet.data.sql.query import fields_of, from_clause
from discreet.errors import DiscreetError, EngineError, InputError, RefusedError
from discreet.ledger.entry import Draft, Entry, StaleError
from discreet.ledger.store import Ledger, open_ledger
from discreet.queries.answer import Answer, Explanation, ResultColumn
from discreet.queries.guards._base import Guard, Keeper, Proposal, Protected

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Gateway", "Policy"]

_EXPLAIN = re.compile(r"\s*explain\s+(?=[(]*\s*(select|with)\b)", re.IGNORECASE)
#: A decision that others overtake is made again, so many times.
RETRIES = 50


@dataclasses.dataclass(frozen=True)
class Policy:
    """What holds for one user or role: a guard, and the columns they may use."""

    guard: Guard | None = None
    #: Columns that may be named at all; None means all but identifiers.
    columns: tuple[str, ...] | None = None


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
        Other guards and fewer columns for some: keys are ``user:ana`` or ``role:student``.
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
        lookups: Mapping[str, Dataset] | None = None,
        joins: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self.dataset = dataset
        self.guard = guard
        self._own_ledger = not isinstance(ledger, Ledger)
        self.ledger = open_ledger(ledger)
        self.catalog = _catalog(dataset, lookups or {}, joins or {})
        relation = _wide(dataset, self.catalog, lookups or {})
        hierarchies = {column.name: column.hierarchies for column in dataset.schema.columns}
        chosen_guards = [p.guard if isinstance(p, Policy) else p for p in (policies or {}).values()]
        guards = (guard, *(g for g in chosen_guards if g is not None))
        self.data = Protected(
            dataset.name, relation, self.catalog, dataset.count, hierarchies, guards
        )
        self._policies = {
            name: policy if isinstance(policy, Policy) else Policy(policy)
            for name, policy in (policies or {}).items()
        }
        _check_policies(self._policies)
        self._keepers: dict[str, Keeper] = {}
        self._seen: dict[str, int] = {}
        self._lock = threading.RLock()
        self._closed = False
        for chosen in (guard, *(p.guard for p in self._policies.values() if p.guard)):
            self._keeper(chosen)

    # -- asking ----------------------------------------------------------------------------------
    def ask(
        self,
        sql: str,
        *,
        user: str = "anonymous",
        roles: Sequence[str] = (),
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
    ) -> Answer:
        """Answer a statement; refusals are answers too, with a reason that discloses nothing.

        Any: parameters are numbers, text, dates, booleans or None.
        """
        self._require_open()
        if (match := _EXPLAIN.match(sql)) is not None:
            told = self.explain(sql[match.end() :], user=user, roles=roles, parameters=parameters)
            return self._explained(told)
        try:
            policy = self._policy(user, roles)
            query = self._parse(sql, policy, parameters)
        except RefusedError as error:
            return _refused(error)
        guard = policy.guard or self.guard
        settings = _digest(guard)
        known = self.ledger.find(self.data.name, user, query.digest, settings)
        if known is not None:
            return self._released(query, known, guard, user, repeated=True)
        keeper = self._keeper(guard)
        try:
            entry, new = self._decided(keeper, guard, query, user, settings)
        except EngineError as error:
            if error.code.startswith("ledger"):
                raise
            # A failure that depends on the data would tell something of it.
            return _refused(_failed(), query=query, guard=guard)
        except RefusedError as error:
            self._record_refusal(error, query, user, settings)
            return _refused(error, query=query, guard=guard, left=keeper.left(user))
        return self._released(query, entry, guard, user, repeated=not new)

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
        guard = self.guard
        try:
            policy = self._policy(user, roles)
            guard = policy.guard or self.guard
            query = self._parse(sql, policy, parameters)
        except RefusedError as error:
            return Explanation(guard.name, "refused", error.message, error.hint or "")
        known = self.ledger.find(self.data.name, user, query.digest, _digest(guard))
        keeper = self._keeper(guard)
        with self._lock if keeper.serial else contextlib.nullcontext():
            self._catch_up(keeper, guard)
            facts = {"kind": guard.answers, **keeper.expect(query, user)}
        facts["error_95"] = _labelled(query, facts.get("error_95", {}))
        return Explanation(
            guard=guard.name, repeated=known is not None, question=query.question, **facts
        )

    def _parse(
        self, sql: str, policy: Policy, parameters: Sequence[Any] | Mapping[str, Any] | None
    ) -> Query:
        query = parse(sql, self.catalog, parameters=parameters)
        if policy.columns is not None:
            used = query.predicate_columns.union(
                *(key.columns for key in query.keys), *(m.columns for m in query.measures)
            )
            if hidden := sorted(used - set(policy.columns)):
                raise RefusedError(
                    f"column {hidden[0]!r} is not available to you",
                    code="column-denied",
                    hint="use " + ", ".join(policy.columns),
                )
        return query

    def guard_for(self, user: str, roles: Sequence[str] = ()) -> Guard:
        """Return the guard that answers this user."""
        return self._policy(user, roles).guard or self.guard

    def _policy(self, user: str, roles: Sequence[str]) -> Policy:
        names = [f"user:{user}", *(f"role:{role}" for role in roles)]
        return next((self._policies[n] for n in names if n in self._policies), Policy())

    # -- deciding and recording ------------------------------------------------------------------
    def _decided(
        self, keeper: Keeper, guard: Guard, query: Query, user: str, settings: str
    ) -> tuple[Entry, bool]:
        for _ in range(RETRIES):
            with self._lock if keeper.serial else contextlib.nullcontext():
                self._catch_up(keeper, guard)
                after = self._seen.get(_digest(guard)) if keeper.serial else None
                proposal = keeper.answer(query, user)
                draft = self._draft(proposal, query, user, settings)
                try:
                    entry, new = self.ledger.record(draft, proposal.charges, after=after)
                except StaleError:
                    self._forget(keeper, guard)
                    continue
                except DiscreetError:
                    self._forget(keeper, guard)
                    raise
                if keeper.serial and new:
                    self._seen[_digest(guard)] = entry.number
                return entry, new
        raise EngineError(
            "others were answered again and again while this was decided", code="busy"
        )

    def _draft(self, proposal: Proposal, query: Query, user: str, settings: str) -> Draft:
        details = {
            "spent": dict(proposal.spent),
            "error_95": dict(proposal.error_95),
            "withheld": proposal.withheld,
        }
        return Draft(
            self.data.name,
            user,
            proposal.kind,
            query.question,
            query.digest,
            settings,
            details,
            _packed(proposal.rows),
        )

    def _record_refusal(self, error: RefusedError, query: Query, user: str, settings: str) -> None:
        details = {"code": error.code}
        self.ledger.record(
            Draft(self.data.name, user, "refused", query.question, query.digest, settings, details)
        )

    def _catch_up(self, keeper: Keeper, guard: Guard) -> None:
        """Replay what the ledger holds and the keeper does not know."""
        if not keeper.serial:
            return
        name = _digest(guard)
        seen = self._seen.get(name, 0)
        if self.ledger.last(self.data.name) <= seen:
            return
        for entry in self.ledger.history(self.data.name, after=seen):
            if entry.kind == "exact":
                keeper.replay(entry, parse(entry.question, self.catalog), _unpacked(entry.answer))
            seen = entry.number
        self._seen[name] = seen

    def _forget(self, keeper: Keeper, guard: Guard) -> None:
        if keeper.serial:
            keeper.forget()
            self._seen[_digest(guard)] = 0

    def _keeper(self, guard: Guard) -> Keeper:
        name = _digest(guard)
        with self._lock:
            if name not in self._keepers:
                self._keepers[name] = guard.open(self.data, self.ledger)
            return self._keepers[name]

    # -- answering -------------------------------------------------------------------------------
    def _released(
        self, query: Query, entry: Entry, guard: Guard, user: str, *, repeated: bool
    ) -> Answer:
        released = _unpacked(entry.answer)
        table = finish(query, released)
        return Answer(
            kind=entry.kind,
            frame=to_library(table, self.dataset.library),
            columns=_columns(query, table, entry.kind),
            spent={} if repeated else entry.details["spent"],
            left=self._keeper(guard).left(user),
            error_95=_labelled(query, entry.details["error_95"]),
            withheld=entry.details["withheld"],
            question=query.question,
            guard=guard.name,
            number=entry.number,
            repeated=repeated,
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
        with self._lock:
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


def _digest(guard: Guard) -> str:
    return guard.digest


def _check_policies(policies: Mapping[str, Policy]) -> None:
    for name in policies:
        if not name.startswith(("user:", "role:")):
            raise InputError(
                f"the policy {name!r} is for nobody",
                code="malformed-policy",
                hint=f"write 'user:{name}' or 'role:{name}'",
            )


def _catalog(
    dataset: Dataset, lookups: Mapping[str, Dataset], joins: Mapping[str, tuple[str, str]]
) -> Catalog:
    for name in joins:
        if name not in lookups:
            raise InputError(
                f"the join names a lookup {name!r} that is not given",
                code="unknown-lookup",
                hint=f"pass lookups={{{name!r}: …}}",
            )
    return Catalog.of(
        dataset.name,
        dataset.schema,
        dataset.relation.schema,
        lookups={n: fields_of(d.schema, d.relation.schema) for n, d in lookups.items()},
        joins=[Join(name, on, key) for name, (on, key) in joins.items()],
    )


def _wide(dataset: Dataset, catalog: Catalog, lookups: Mapping[str, Dataset]) -> Any:
    """Return the rows with the columns of declared lookups beside their own."""
    if not catalog.joins:
        return dataset.relation
    named: list[Any] = [
        exp.column(name, table=catalog.relation, quoted=True) for name in dataset.columns
    ]
    select = exp.select()
    for join in catalog.joins:
        lookup = lookups[join.lookup]
        keys = lookup.frequencies([join.key])
        if any(count != 1 for count in keys.column("count").to_pylist()):
            raise InputError(
                f"the key {join.key!r} of lookup {join.lookup!r} is not unique",
                code="ambiguous-join",
                column=join.key,
                hint="a join must meet at most one row",
            )
        held = dataset.engine.load(lookup.arrow())
        named += [
            exp.alias_(
                exp.column(f.name, table=join.lookup, quoted=True),
                f"{join.lookup}.{f.name}",
                quoted=True,
            )
            for f in catalog.lookups[join.lookup]
        ]
        on = exp.EQ(
            this=exp.column(join.on, table=catalog.relation, quoted=True),
            expression=exp.column(join.key, table=join.lookup, quoted=True),
        )
        select = select.join(from_clause(held.query, join.lookup), on=on, join_type="left")
    select = select.from_(from_clause(dataset.relation.query, catalog.relation)).select(*named)
    return dataset.engine.relation(select)


def _packed(rows: pa.Table) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def _unpacked(data: bytes) -> pa.Table:
    import pyarrow as pa

    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


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


def _labelled(query: Query, errors: Mapping[str, float]) -> dict[str, float]:
    return {
        output.label: errors[output.reference]
        for output in query.outputs
        if output.reference in errors
    }


def _failed() -> RefusedError:
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
