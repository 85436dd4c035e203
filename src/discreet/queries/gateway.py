"""The gateway: parse, ask the guard, record in the ledger, and only then answer."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.data.dataset import Dataset
from discreet.data.schema import Role
from discreet.data.sql import Catalog, Query, Statement, composed, parse, read_statement
from discreet.data.sql.reading import explained as explained_question
from discreet.data.sql.splitting import LISTED
from discreet.errors import EngineError, InputError, RefusedError
from discreet.ledger.entry import Draft, Entry
from discreet.ledger.opening import open_ledger
from discreet.ledger.store import Ledger
from discreet.ledger.witness import Witness
from discreet.queries.answer import Answer, Explanation
from discreet.queries.composing import beside_spent, explained_together, refused_together, together
from discreet.queries.deciding import Deciding, columns_of
from discreet.queries.describing import schema_of
from discreet.queries.earlier import require_no_other_answers
from discreet.queries.failures import tellable
from discreet.queries.guards._base import Guard, Keeper, Protected
from discreet.queries.keepers import Keepers
from discreet.queries.lookups import catalog_of, wide
from discreet.queries.opening import opened, snapshot_details
from discreet.queries.policies import Policies, Policy
from discreet.queries.rendering import explained, labelled, refused, released
from discreet.queries.watching import Watch

if TYPE_CHECKING:
    from discreet.data.engines.base import Relation

__all__ = ["Gateway"]


class Gateway:
    """Answers SQL about one dataset under a guard, and remembers everything it answered.

    Parameters
    ----------
    dataset
        The records, with roles; `dataset.name` is the relation in SQL.
    guard
        How questions are answered unless a policy says otherwise.
    ledger
        A file, an address `postgresql://…`, or an open ledger; in memory if left out.
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
        ledger: str | Path | Ledger | None = None,
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
        ledger = ":memory:" if ledger is None else ledger
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
        data = Protected(
            dataset.name,
            relation,
            self.catalog,
            dataset.count,
            hierarchies,
            guards,
            self._askable(),
            snapshot_details(self._population).get("snapshot", ""),
        )
        self._keepers = Keepers(data, self.ledger, self._population, self._reloaded)
        #: Settings and confidential columns of which nobody was told in another way.
        self._agreed: set[tuple[str, str]] = set()
        self._require_together()
        self._deciding = Deciding(
            self._keepers, self.ledger, self.catalog, self._population, self._watch
        )
        self._closed = False

    def _require_together(self) -> None:
        """Refuse guards, of now and before, whose sure answers would narrow each other."""
        kin = [keeper.family for keeper in self._keepers]
        self._policies.require_families(kin)
        if applying := self._policies.applying(self.data.confidential):
            require_no_other_answers(self.data, self.ledger, applying, kin)

    def _require_sole(
        self, guard: Guard, query: Query, settings: str, *, recorded: bool = True
    ) -> None:
        """Refuse an answer beside those of a gateway that opened meanwhile.

        Asked again when the answer is recorded and has not left: of two gateways that begin together,
        at least one sees the other's.
        """
        asked = {(settings, column) for column in columns_of(query) & self.data.confidential}
        if guard.answers != "noisy" and not asked <= self._agreed:
            self._require_together()
            if recorded:
                self._agreed |= asked

    @property
    def data(self) -> Protected:
        """The records as the guards see them."""
        return self._keepers.data

    def _reloaded(self) -> Relation:
        """Return the records again, after the engine was lost, if they are still the same."""
        self._watch.require_unchanged()
        return wide(self.dataset, self.catalog, self._lookups)

    def _keeper(self, guard: Guard) -> Keeper:
        return self._keepers.of(guard)

    def _askable(self) -> frozenset[str] | None:
        """Return the columns that anybody may ask about, or was answered about exactly."""
        found = self._policies.askable()
        if found is None:
            return None
        for entry in self.ledger.history(self.dataset.name, kind="exact"):
            found |= columns_of(parse(entry.question, self.catalog))
        return found

    @property
    def notices(self) -> tuple[str, ...]:
        """What the curator should know, and nobody else: columns that tell of others, or of all."""
        said = [notice for keeper in self._keepers for notice in keeper.notices]
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
        if (question := explained_question(sql)) is not None:
            told = self.explain(question, user=user, roles=roles, parameters=parameters)
            return explained(told, self.dataset.library)
        try:
            statement = read_statement(sql, self.catalog_for(user, roles), parameters=parameters)
        except RefusedError as error:
            self._record_unread(error, user)
            return refused(error)
        if statement.outer is None:
            return self._answer(statement.questions[0], user, roles, frame=frame)
        return self._composed(statement, user, roles, frame=frame)

    def _answer(self, query: Query, user: str, roles: Sequence[str], *, frame: bool) -> Answer:
        """Answer one question."""
        try:
            guard = self.guard_for(query, user, roles)
        except RefusedError as error:
            self._record_refusal(error, query, user, "")
            return refused(error)
        settings = self._keepers.name(guard)
        known = self.ledger.find(self.data.name, user, query.digest, settings)
        try:
            if known is not None:
                self._require_sole(guard, query, settings)
                return self._released(query, known, guard, user, repeated=True, frame=frame)
            self._require_sole(guard, query, settings, recorded=False)
            try:
                entry, new = self._keepers.reached(
                    guard,
                    lambda keeper: self._deciding.decided(keeper, guard, query, user, settings),
                )
            except EngineError as error:
                raise tellable(error) from error
            self._require_sole(guard, query, settings)
        except RefusedError as error:
            self._record_refusal(error, query, user, settings)
            left = self._keeper(guard).left(user)
            return refused(error, query=query, guard=guard, left=left)
        return self._released(query, entry, guard, user, repeated=not new, frame=frame)

    def _composed(
        self, statement: Statement, user: str, roles: Sequence[str], *, frame: bool
    ) -> Answer:
        """Answer the questions of a statement, and compute the rest on what was released."""
        answers: list[Answer] = []
        try:
            self._require_outer(statement, user, roles)
        except RefusedError as error:
            self._record_unread(error, user)
            return refused(error)
        for query in statement.questions:
            answer = self._answer(query, user, roles, frame=False)
            if answer.refused:
                return beside_spent(answer, answers)
            answers.append(answer)
        try:
            table = composed(statement, [a.table for a in answers if a.table is not None])
        except RefusedError as error:  # by the released values: their questions have been charged
            return refused_together(error, answers)
        return together(answers, table, self.dataset.library if frame else None)

    def _require_outer(self, statement: Statement, user: str, roles: Sequence[str]) -> None:
        """Refuse an outer query that fails over any answers, before its questions cost something."""
        kinds = [self.guard_for(query, user, roles).answers for query in statement.questions]
        for query, kind in zip(statement.questions, kinds, strict=True):
            listed = any(output.label == LISTED for output in query.outputs)
            if kind == "interval" and listed and query.predicate_columns & self.data.confidential:
                raise RefusedError(
                    "which values of a public column occur under a condition on a confidential one "
                    "is not known for sure",
                    code="uncertain-groups",
                    hint="group by the column and ask for COUNT(*), which tells between what "
                    "each number lies",
                )
        schemas = [
            schema_of(query, kind, self.data.confidential)
            for query, kind in zip(statement.questions, kinds, strict=True)
        ]
        composed(statement, [schema.empty_table() for schema in schemas])

    def _released(
        self, query: Query, entry: Entry, guard: Guard, user: str, *, repeated: bool, frame: bool
    ) -> Answer:
        left = self._keeper(guard).left(user)
        library = self.dataset.library if frame else None
        return released(query, entry, guard, left, repeated=repeated, library=library)

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
        for keeper in self._keepers:
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
            if statement.outer is not None:
                self._require_outer(statement, user, roles)
            told = [self._explain(query, user, roles) for query in statement.questions]
        except RefusedError as error:
            return Explanation(self.guard.name, "refused", error.message, error.hint or "")
        return explained_together(told, self.guard.name)

    def _explain(self, query: Query, user: str, roles: Sequence[str]) -> Explanation:
        guard = self.guard_for(query, user, roles)
        known = self.ledger.find(self.data.name, user, query.digest, self._keepers.name(guard))

        def expected(keeper: Keeper) -> dict[str, Any]:
            with self._keepers.turns.alone() if keeper.serial else contextlib.nullcontext():
                self._deciding.replay(keeper)
                return {"kind": guard.answers, **keeper.expect(query, user)}

        try:
            facts = self._keepers.reached(guard, expected)
        except EngineError as error:
            raise tellable(error) from error
        facts["error_95"] = labelled(query, facts.get("error_95", {}))
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

    def _record_unread(self, error: RefusedError, user: str) -> None:
        """Record that a statement was not understood; what it said is not kept."""
        self.ledger.record(Draft(self.data.name, user, "refused", "", "", "", {"code": error.code}))

    def _record_refusal(self, error: RefusedError, query: Query, user: str, settings: str) -> None:
        details = {"code": error.code}
        self.ledger.record(
            Draft(self.data.name, user, "refused", query.question, query.digest, settings, details)
        )

    # -- life ------------------------------------------------------------------------------------
    def _require_open(self) -> None:
        if self._closed:
            raise InputError("the gateway is closed", code="closed-gateway")

    def close(self) -> None:
        """Let go of guards and, if the gateway opened it, of the ledger; may be called twice."""
        with self._keepers.turns.alone():
            if self._closed:
                return
            self._closed = True
            self._keepers.close()
            if self._own_ledger:
                self.ledger.close()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _decided(dataset: Dataset) -> Dataset:
    """Return the dataset without the columns that nobody decided on: they are not public."""
    from discreet.data.decisions import require_decided

    if len(dataset.schema.undecided) == len(dataset.columns):
        require_decided(dataset, dataset.columns)
    return dataset.replace(schema=dataset.schema.with_undecided_hidden())
