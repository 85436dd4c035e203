"""The desk over real gateways: catalog questions, rate limits, answers and what they are."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import itertools
import logging
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from discreet.app.server.desk import Rate, Reply, User
from discreet.app.server.metrics import Metrics
from discreet.app.server.postgres.catalog import Catalog
from discreet.app.server.postgres.session_statements import BUDGET
from discreet.data.schema import Role
from discreet.data.sql import Query, Statement, composed, read_statement
from discreet.data.sql.parameters import SAMPLES, parameter_kinds
from discreet.data.sql.reading import explained, read_statements
from discreet.errors import DiscreetError, InputError, RefusedError, nearest
from discreet.queries.answer import Answer
from discreet.queries.describing import schema_of
from discreet.queries.gateway import Gateway

__all__ = ["Desk"]

log = logging.getLogger("discreet.server")

_GUESSES = (0, "", datetime.date(2000, 1, 1), True)
_MOST_GUESSES = 64


#: So many values of an answer, aggregates by groups, cost as much as one statement more.
_VALUES = 50


class Desk:
    """Answers statements about any of several gateways; one per protected relation."""

    def __init__(self, gateways: Mapping[str, Gateway], *, rate: Rate, metrics: Metrics) -> None:
        self._gateways = dict(gateways)
        self._rate, self._metrics = rate, metrics
        # Identifiers never leave, so that not even their names are told.
        self._shown = {
            name: pa.schema(
                [
                    gate.dataset.relation.schema.field(column.name)
                    for column in gate.dataset.schema.columns
                    if column.role != Role.IDENTIFIER
                ]
            )
            for name, gate in gateways.items()
        }
        self._catalog = Catalog(self._shown)
        #: Catalogs of those from whom columns are hidden, by what they may see.
        self._narrower: dict[tuple[tuple[str, tuple[str, ...]], ...], Catalog] = {}
        self._making = threading.Lock()
        self._given = Given()

    def close(self) -> None:
        """Close the gateways; their ledgers are complete at any moment."""
        for catalog in (self._catalog, *self._narrower.values()):
            catalog.close()
        for gate in self._gateways.values():
            gate.close()

    def relations(self, user: User) -> dict[str, dict[str, str]]:
        """Return what may be asked about."""
        user.require("analyst")
        return {
            name: {field.name: str(field.type) for field in schema}
            for name, schema in self._visible(user).items()
        }

    def _visible(self, user: User) -> dict[str, pa.Schema]:
        """Return the relations without the columns that are hidden from somebody."""
        found = {}
        for name, schema in self._shown.items():
            catalog = self._gateways[name].catalog_for(user.name, user.roles)
            names = {field.name for field in catalog.fields}
            found[name] = pa.schema([field for field in schema if field.name in names])
        return found

    def _told(self, sql: str, user: User, parameters: Sequence[Any]) -> pa.Table | None:
        """Return what the catalog says, to those from whom columns are hidden one of their own."""
        visible = self._visible(user)
        if visible == self._shown:
            return self._catalog.answer(sql, parameters, user=user.name)
        name = tuple((relation, tuple(schema.names)) for relation, schema in visible.items())
        with self._making:
            if name not in self._narrower:
                self._narrower[name] = Catalog(visible)
        return self._narrower[name].answer(sql, parameters, user=user.name)

    def ask(
        self, sql: str, user: User, parameters: Sequence[Any] = (), *, errors: bool = False
    ) -> Reply:
        """Answer one statement; the log says who, what came of it and how long, never a value."""
        return self._logged(user, lambda: self._answer(sql, user, parameters, errors))

    def recall(
        self, sql: str, user: User, parameters: Sequence[Any] = (), *, errors: bool = False
    ) -> Reply | None:
        """Return the answer to a statement this user was answered in this process already.

        The ledger holds it, and it costs nothing: it needs neither the gateway nor a thread.
        """
        reply = self._given.get(_key(sql, user, parameters, errors))
        return None if reply is None else self._logged(user, lambda: reply)

    def _logged(self, user: User, work: Callable[[], Reply]) -> Reply:
        started = time.perf_counter()
        outcome = "failed"
        try:
            user.require("analyst")
            self._rate.take(user.name)
            reply = work()
            outcome = reply.kind
            return reply
        except RefusedError:
            outcome = "refused"
            raise
        except InputError:
            outcome = "mistake"
            raise
        finally:
            seconds = time.perf_counter() - started
            self._metrics.record(outcome, seconds)
            log.info(
                "statement",
                extra={"user": user.name, "outcome": outcome, "seconds": round(seconds, 6)},
            )

    def describe(
        self, sql: str, user: User, parameters: int = 0, *, errors: bool = False
    ) -> pa.Schema | None:
        """Return the columns an answer would have, without asking; None if there are none."""
        user.require("analyst")
        told = self._told(sql, user, (None,) * parameters)
        if told is not None:
            return told.schema
        gate = self._gateway(sql)
        if explained(sql) is not None:
            return pa.schema([("fact", pa.string()), ("value", pa.string())])
        # What a parameter is compared with says its type; its value does not matter here.
        catalog = gate.catalog_for(user.name, user.roles)
        kinds = parameter_kinds(sql, catalog, parameters)
        first = tuple(_sample(kind) for kind in kinds)
        guesses = itertools.islice(itertools.product(_GUESSES, repeat=parameters), _MOST_GUESSES)
        wrong: DiscreetError | None = None
        for guess in itertools.chain([first], guesses if parameters else ()):
            try:
                statement = read_statement(sql, catalog, parameters=guess)
            except DiscreetError as error:
                wrong = wrong or error
                continue
            return self._described(statement, gate, user, errors)
        assert wrong is not None  # there is at least one guess
        raise wrong

    def _described(
        self, statement: Statement, gate: Gateway, user: User, errors: bool
    ) -> pa.Schema:
        schemas = []
        for query in statement.questions:
            answers = gate.guard_for(query, user.name, user.roles).answers
            schemas.append(schema_of(query, answers, gate.data.confidential))
        if statement.outer is not None:
            return composed(statement, [schema.empty_table() for schema in schemas]).schema
        if errors:
            keys = _keys(statement.questions[0])
            return with_errors(schemas[0].empty_table(), keys, {}).schema
        return schemas[0]

    def parameter_kinds(self, sql: str, user: User, count: int) -> tuple[str, ...]:
        """Return what each parameter has to be."""
        user.require("analyst")
        if not count or self._told(sql, user, (None,) * count) is not None:
            return ("text",) * count
        return parameter_kinds(sql, self._gateway(sql).catalog_for(user.name, user.roles), count)

    def budget(self, user: User) -> pa.Table:
        """Return what is left of the user's budgets, by relation."""
        user.require("analyst")
        rows = [
            {"relation": name, **line}
            for name, gate in self._gateways.items()
            for line in gate.budget(user.name, user.roles)
        ]
        return pa.Table.from_pylist(rows, schema=BUDGET)

    def _answer(self, sql: str, user: User, parameters: Sequence[Any], errors: bool) -> Reply:
        told = self._told(sql, user, parameters)
        if told is not None:
            return Reply(told, "session")
        gate = self._gateway(sql)
        answer = gate.ask(
            sql, user=user.name, roles=user.roles, parameters=tuple(parameters), frame=False
        )
        if answer.refused or answer.table is None:
            raise RefusedError(
                answer.reason, code=answer.code or "refused", hint=answer.hint or None
            )
        self._rate.spend(user.name, answer.aggregates / _VALUES)
        table = answer.table
        if errors and answer.kind != "explanation" and not answer.composed:
            keys = {column.name for column in answer.columns if column.part == "key"}
            table = with_errors(table, keys, answer.error_95)
        if answer.number is not None:  # recorded, so that it may be told again
            again = dataclasses.replace(answer, spent={}, left={}, repeated=True)
            self._given.put(
                _key(sql, user, parameters, errors),
                Reply(table, answer.kind, _notices(again), facts=_facts(again)),
            )
        return Reply(table, answer.kind, _notices(answer), facts=_facts(answer))

    def _gateway(self, sql: str) -> Gateway:
        if len(self._gateways) == 1:
            return next(iter(self._gateways.values()))
        by_name = {name.lower(): gate for name, gate in self._gateways.items()}
        for name in _tables(sql):
            if name.lower() in by_name:
                return by_name[name.lower()]
        named = next(iter(_tables(sql)), "")
        guess = nearest(named, self._gateways)
        raise InputError(
            f"there is no relation {named!r}",
            code="unknown-relation",
            hint=f"write {guess!r}" if guess else "ask about " + ", ".join(self._gateways),
        )


def _tables(sql: str) -> list[str]:
    try:
        trees = read_statements(explained(sql) or sql)
    except RefusedError:
        return []  # the gateway says what is wrong with it
    return [table.name for tree in trees for table in tree.find_all(exp.Table)]


def _key(sql: str, user: User, parameters: Sequence[Any], errors: bool) -> Hashable:
    # 1, 1.0 and True are equal in Python and differ in SQL.
    given = tuple((type(v), tuple(v) if isinstance(v, list) else v) for v in parameters)
    return user.name, user.roles, sql, given, errors


def _sample(kind: str) -> object:
    plain = SAMPLES.get(kind.removesuffix("[]"), "a")
    return (plain,) if kind.endswith("[]") else plain


def _keys(query: Query) -> set[str]:
    return {o.label for o in query.outputs if (o.reference or "").startswith("k")}


def with_errors(table: pa.Table, keys: Collection[str], known: Mapping[str, float]) -> pa.Table:
    """Return an answer with the 95 % error of each number beside it; null where it is unknown.

    >>> with_errors(pa.table({"sex": ["f"], "n": [7]}), {"sex"}, {"n": 2.5}).to_pylist()
    [{'sex': 'f', 'n': 7, 'n_error_95': 2.5}]
    """
    columns: dict[str, Any] = {}
    for field in table.schema:
        columns[field.name] = table.column(field.name)
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        if field.name in keys or not number or field.name.endswith(("_lower", "_upper")):
            continue
        error = known.get(field.name)
        error = None if error is None else float(f"{error:.3g}")
        columns[f"{field.name}_error_95"] = pa.array([error] * table.num_rows, pa.float64())
    return pa.table(columns)


class Given:
    """Answers given in this process, at hand until newer ones need their place."""

    def __init__(self, most: int = 4096, largest: int = 64 << 10) -> None:
        self._most, self._largest = most, largest
        self._replies: collections.OrderedDict[Hashable, Reply] = collections.OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Reply | None:
        """Return the answer, if it is still at hand."""
        with self._lock:
            reply = self._replies.get(key)
            if reply is not None:
                self._replies.move_to_end(key)
            return reply

    def put(self, key: Hashable, reply: Reply) -> None:
        """Keep an answer that is not too large."""
        if reply.table.nbytes > self._largest:
            return
        with self._lock:
            self._replies[key] = reply
            while len(self._replies) > self._most:
                self._replies.popitem(last=False)


def _notices(answer: Answer) -> tuple[str, ...]:
    """Say what the answer is, in one line."""
    facts = [answer.kind]
    facts += [f"{name} ± {value:,.4g} (95 %)" for name, value in answer.error_95.items()]
    facts += [f"{answer.withheld} groups withheld"] if answer.withheld else []
    facts += [f"spent {name} {value:.4g}" for name, value in answer.spent.items()]
    facts += [f"left {name} {value:.4g}" for name, value in answer.left.items()]
    facts += ["recorded answer, no cost"] if answer.repeated else []
    return ("; ".join(facts),)


def _facts(answer: Answer) -> dict[str, Any]:
    return {
        "spent": answer.spent,
        "left": answer.left,
        "error_95": answer.error_95,
        "withheld": answer.withheld,
        "repeated": answer.repeated,
        "guard": answer.guard,
    }
