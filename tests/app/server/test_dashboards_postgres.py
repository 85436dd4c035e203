"""The corpus on PostgreSQL itself: what is answered without a guard is what PostgreSQL answers."""

import dataclasses
import math
import re
from collections import Counter
from typing import ClassVar

import psycopg
import pytest

import discreet as dc
from discreet.app.server.desk import Rate
from discreet.app.server.gateways import Desk
from discreet.app.server.metrics import Metrics
from discreet.app.server.postgres.session_statements import Transaction, session_reply
from discreet.errors import DiscreetError
from discreet.queries.guards._base import Guard, Keeper, Proposal, aggregate
from tests.app.server.dashboards import ANA, corpus, people
from tests.servers import postgres_server

pytestmark = pytest.mark.postgres


class Exact(Keeper):
    """Answers everything exactly: only to compare what statements mean."""

    def __init__(self, data):
        self._data = data

    def answer(self, query, user, ready=None):
        columns = {f"m{n}": aggregate(m) for n, m in enumerate(query.measures)}
        return Proposal("exact", self._data.fetch(query, columns))


@dataclasses.dataclass(frozen=True)
class Unguarded(Guard):
    """No protection; in tests alone."""

    name: ClassVar[str] = "unguarded"

    def open(self, data, ledger=None):
        return Exact(data)


def plain(value):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)[:19].removesuffix(" 00:00:00")  # a date is its midnight
    return float(f"{number:.9g}") if math.isfinite(number) else str(number)


def rows(found):
    return Counter(tuple(plain(value) for value in row) for row in found)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    data = people(1_000)
    table = data.relation.engine.fetch(data.relation)
    desk = Desk(
        {"people": dc.Gateway(data, guard=Unguarded())}, rate=Rate(1e9, 10**9), metrics=Metrics()
    )
    types = {"string": "text", "large_string": "text", "int64": "bigint", "int32": "bigint", "double": "double precision", "bool": "boolean", "date32[day]": "date", "timestamp[us]": "timestamp"}  # fmt: skip
    shape = ", ".join(f'"{f.name}" {types.get(str(f.type), "text")}' for f in table.schema)
    with (
        postgres_server(tmp_path_factory.mktemp("pg")) as address,
        psycopg.connect(address, autocommit=True) as client,
    ):
        client.execute(f"CREATE TABLE people ({shape})")
        with client.cursor().copy("COPY people FROM STDIN") as copy:
            for row in zip(*(c.to_pylist() for c in table.columns), strict=True):
                copy.write_row(row)
        yield desk, client
    desk.close()


#: Which of several equal rows a limit cuts off is the engine's choice, so all rows are compared.
LIMIT = re.compile(r"\s+limit\s+\d+(\s+offset\s+\d+)?\s*;?\s*$", re.IGNORECASE)
#: Their catalogs differ, or the clock goes on.
ELSEWHERE = (
    "pg_",
    "information_schema",
    "now()",
    "current_",
    "version()",
    "show ",
    "set ",
    "explain",
)


def test_statements_mean_what_they_mean_to_postgresql(both):
    desk, client = both
    compared, other = 0, []
    for case in corpus():
        if any(word in case.sql.lower() for word in ELSEWHERE):
            continue
        if session_reply(case.sql, Transaction()) is not None:
            continue
        sql = LIMIT.sub("", case.sql)
        try:
            table = desk.ask(sql, ANA).table
        except DiscreetError:
            continue
        theirs = client.execute(sql)
        names = [column.name for column in theirs.description]
        ours = rows(zip(*(c.to_pylist() for c in table.columns), strict=True))
        compared += 1
        if ours != rows(theirs.fetchall()) or [n.lower() for n in names] != [n.lower() for n in table.column_names]:  # fmt: skip
            other.append((case.tool, case.does))
    assert compared > 150
    assert other == []
