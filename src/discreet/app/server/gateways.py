"""The desk over real gateways: catalog questions, rate limits, answers and what they are."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import itertools
import logging
import re
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from discreet.app.server.desk import Rate, Reply, User
from discreet.app.server.metrics import Metrics
from discreet.app.server.postgres.catalog import Catalog
from discreet.data.schema import Role
from discreet.data.sql import Query, parse
from discreet.data.sql.reading import read_statements
from discreet.errors import DiscreetError, InputError, RefusedError, nearest
from discreet.queries.answer import Answer
from discreet.queries.gateway import Gateway

__all__ = ["Desk"]

log = logging.getLogger("discreet.server")

_EXPLAIN = re.compile(r"\s*explain\b", re.IGNORECASE)
_GUESSES = (0, "", datetime.date(2000, 1, 1), True)
_MOST_GUESSES = 64


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
        self._given = Given()

    def close(self) -> None:
        """Close the gateways; their ledgers are complete at any moment."""
        self._catalog.close()
        for gate in self._gateways.values():
            gate.close()

    def relations(self, user: User) -> dict[str, dict[str, str]]:
        """Return what may be asked about."""
        user.require("analyst")
        return {
            name: {field.name: str(field.type) for field in schema}
            for name, schema in self._shown.items()
        }

    def ask(self, sql: str, user: User, parameters: Sequence[Any] = ()) -> Reply:
        """Answer one statement; the log says who, what came of it and how long, never a value."""
        return self._logged(user, lambda: self._answer(sql, user, parameters))

    def recall(self, sql: str, user: User, parameters: Sequence[Any] = ()) -> Reply | None:
        """Return the answer to a statement this user was answered in this process already.

        The ledger holds it, and it costs nothing: it needs neither the gateway nor a thread.
        """
        reply = self._given.get(_key(sql, user, parameters))
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

    def describe(self, sql: str, user: User, parameters: int = 0) -> pa.Schema | None:
        """Return the columns an answer would have, without asking; None if there are none."""
        user.require("analyst")
        told = self._catalog.answer(sql, (None,) * parameters, user=user.name)
        if told is not None:
            return told.schema
        gate = self._gateway(sql)
        if explained(sql):
            return pa.schema([("fact", pa.string()), ("value", pa.string())])
        # What a parameter is compared with says its type; its value does not matter here.
        guesses = itertools.islice(itertools.product(_GUESSES, repeat=parameters), _MOST_GUESSES)
        first: DiscreetError | None = None
        for guess in guesses:
            try:
                query = parse(sql, gate.catalog, parameters=guess)
            except DiscreetError as error:
                first = first or error
                continue
            answers = gate.guard_for(query, user.name, user.roles).answers
            ranged = _ranged(query, gate.data.confidential) if answers == "interval" else set()
            return _result_schema(query, ranged)
        assert first is not None  # there is at least one guess
        raise first

    def _answer(self, sql: str, user: User, parameters: Sequence[Any]) -> Reply:
        told = self._catalog.answer(sql, parameters, user=user.name)
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
        if answer.number is not None:  # recorded, so that it may be told again
            again = dataclasses.replace(answer, spent={}, left={}, repeated=True)
            self._given.put(
                _key(sql, user, parameters),
                Reply(answer.table, answer.kind, _notices(again), facts=_facts(again)),
            )
        return Reply(answer.table, answer.kind, _notices(answer), facts=_facts(answer))

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


def _ranged(query: Query, confidential: frozenset[str]) -> set[str]:
    """Return the measures that guards with intervals answer by one: those that could tell."""
    chosen = bool(query.predicate_columns & confidential)
    return {
        f"m{number}"
        for number, measure in enumerate(query.measures)
        if chosen or (measure.columns & confidential and measure.function != "count")
    }


def _result_schema(query: Query, ranged: set[str]) -> pa.Schema:
    types = {"integer": pa.int64(), "number": pa.float64(), "date": pa.date32()}
    types |= {"boolean": pa.bool_(), "timestamp": pa.timestamp("us")}
    fields = []
    for output in query.outputs:
        used = {column.name for column in output.expression.find_all(exp.Column)}
        if output.reference in ranged or (output.reference is None and used & ranged):
            fields += [(f"{output.label}_{end}", pa.float64()) for end in ("lower", "upper")]
        elif output.reference is None:
            fields.append((output.label, pa.float64()))
        else:
            fields.append((output.label, types.get(output.kind, pa.string())))
    return pa.schema(fields)


def _tables(sql: str) -> list[str]:
    try:
        trees = read_statements(_EXPLAIN.sub("", sql, count=1))
    except RefusedError:
        return []  # the gateway says what is wrong with it
    return [table.name for tree in trees for table in tree.find_all(exp.Table)]


def explained(sql: str) -> bool:
    """Whether a statement asks what an answer would be, not for the answer."""
    return _EXPLAIN.match(sql) is not None


def _key(sql: str, user: User, parameters: Sequence[Any]) -> Hashable:
    # 1, 1.0 and True are equal in Python and differ in SQL.
    return user.name, user.roles, sql, tuple((type(value), value) for value in parameters)


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
