"""The desk over real gateways: catalog questions, rate limits, answers and what they are."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.app.server.desk import Rate, Reply, User
from discreet.app.server.metrics import Metrics
from discreet.app.server.postgres.catalog import Catalog
from discreet.data.schema import Role
from discreet.data.sql import Query, parse
from discreet.errors import DiscreetError, InputError, RefusedError, nearest
from discreet.queries.answer import Answer
from discreet.queries.gateway import Gateway

__all__ = ["Desk"]

log = logging.getLogger("discreet.server")


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
        started = time.perf_counter()
        outcome = "failed"
        try:
            user.require("analyst")
            self._rate.take(user.name)
            reply = self._answer(sql, user, parameters)
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

    def describe(self, sql: str, user: User, parameters: Sequence[Any] = ()) -> pa.Schema | None:
        """Return the columns an answer would have, without asking; None if that cannot be told."""
        user.require("analyst")
        try:
            gate = self._gateway(sql)
        except DiscreetError:
            return None
        # What a parameter is compared with says its type; its value does not matter here.
        for guess in (0, "", "2000-01-01", True):
            try:
                query = parse(sql, gate.catalog, parameters=[guess] * len(parameters))
            except DiscreetError:
                continue
            return _result_schema(query, gate.guard.answers)
        return None

    def _answer(self, sql: str, user: User, parameters: Sequence[Any]) -> Reply:
        told = self._catalog.answer(sql, parameters)
        if told is not None:
            return Reply(told, "session")
        gate = self._gateway(sql)
        answer = gate.ask(sql, user=user.name, roles=user.roles, parameters=tuple(parameters))
        if answer.refused or answer.table is None:
            raise RefusedError(
                answer.reason, code=answer.code or "refused", hint=answer.hint or None
            )
        return Reply(answer.table, answer.kind, _notices(answer), facts=_facts(answer))

    def _gateway(self, sql: str) -> Gateway:
        if len(self._gateways) == 1:
            return next(iter(self._gateways.values()))
        for name in _tables(sql):
            if name in self._gateways:
                return self._gateways[name]
        named = next(iter(_tables(sql)), "")
        guess = nearest(named, self._gateways)
        raise InputError(
            f"there is no relation {named!r}",
            code="unknown-relation",
            hint=f"write {guess!r}" if guess else "ask about " + ", ".join(self._gateways),
        )


def _result_schema(query: Query, answers: str) -> pa.Schema:
    types = {"integer": pa.int64(), "number": pa.float64(), "date": pa.date32()}
    types |= {"boolean": pa.bool_(), "timestamp": pa.timestamp("us")}
    fields = []
    for output in query.outputs:
        is_key = (output.reference or "").startswith("k")
        if answers == "interval" and not is_key:
            fields += [(f"{output.label}_{end}", pa.float64()) for end in ("lower", "upper")]
        else:
            fields.append((output.label, types.get(output.kind, pa.string())))
    return pa.schema(fields)


def _tables(sql: str) -> list[str]:
    text = sql.lstrip()
    if text[:7].lower() == "explain":
        text = text[7:]
    try:
        return [
            table.name for table in sqlglot.parse_one(text, read="postgres").find_all(exp.Table)
        ]
    except (SqlglotError, RecursionError):
        return []


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
