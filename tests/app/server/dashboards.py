"""The corpus of dashboards' statements, the relation they are about, and what comes of each.

Run as a program, it prints the share that is answered and the refusals by code:
`python -m tests.app.server.dashboards`.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
from pathlib import Path

import pyarrow as pa

import discreet as dc
from discreet.app.server.desk import Rate, User
from discreet.app.server.gateways import Desk
from discreet.app.server.metrics import Metrics
from discreet.app.server.postgres.session_statements import Transaction, session_reply, split
from discreet.demo.people import population_arrow
from discreet.errors import DiscreetError

CORPUS = Path(__file__).parents[2] / "queries" / "fixtures" / "dashboards.sql"
ANA = User("ana", ("analyst",))


@dataclasses.dataclass(frozen=True)
class Case:
    tool: str
    does: str
    source: str
    sql: str


def corpus() -> list[Case]:
    """Return the statements, each with its tool, what its user does, and its source."""
    found, pending = [], None
    for line in CORPUS.read_text(encoding="utf-8").splitlines():
        if line.startswith("--"):
            pending = [part.strip() for part in line[2:].split("|")]
        elif line.strip():
            assert pending is not None
            assert len(pending) == 3, line
            found.append(Case(*pending, split(line)[0]))
    return found


def people(rows: int = 2_000) -> dc.Dataset:
    """Return the relation of the corpus."""
    table = population_arrow(rows, seed=1)
    start = datetime.datetime(2000, 1, 3, 8)  # noqa: DTZ001  # columns without a zone
    numbers = range(table.num_rows)
    hired = [start + datetime.timedelta(days=(n * 37) % 9000, hours=n % 10) for n in numbers]
    born = [datetime.date(2024, 7, 1) - datetime.timedelta(days=365 * age) for age in table["age"].to_pylist()]  # fmt: skip
    columns = {
        "hours": pa.array([20.0 + (n * 7) % 25 for n in numbers]),
        "hired": pa.array(hired, pa.timestamp("us")),
        "born": pa.array(born),
        "remote": pa.array([n % 3 == 0 for n in numbers]),
        "bonus": pa.array([(n * 7919) % 20_000 for n in numbers], pa.int64()),
    }
    for name, column in columns.items():
        table = table.append_column(name, column)
    quasi = ("region", "sector", "occupation", "age", "sex", "education", "hours", "hired", "born", "remote")  # fmt: skip
    return dc.read(
        table,
        name="people",
        roles={
            **dict.fromkeys(("person_id", "household_id", "name"), "identifier"),
            **dict.fromkeys(quasi, "quasi"),
            **dict.fromkeys(("salary", "bonus", "diagnosis"), "confidential"),
        },
        unit="person_id",
    )


GUARDS = {
    "restriction": dc.Restriction(k=5),
    "perturbation": dc.Perturbation(
        epsilon=1e6, per_query=1.0, delta=1e-6, bounds={"salary": (0, 500_000), "bonus": (0, 20_000), "age": (0, 120)}
    ),
    "camouflage": dc.Camouflage(bound=0.3),
}  # fmt: skip


def outcome(case: Case, desk: Desk) -> tuple[str, str, str]:
    """Return "answered" or the code of the refusal, its message and its hint."""
    try:
        reply = session_reply(case.sql, Transaction()) or desk.ask(case.sql, ANA)
    except DiscreetError as error:
        return error.code, error.message, error.hint or ""
    return "answered", "" if reply.table.num_rows else "no group is shown", ""


def outcomes(guard: str, cases: list[Case]) -> list[tuple[str, str, str]]:
    """Return what comes of each statement, one after another before one gateway."""
    gate = dc.Gateway(people(), guard=GUARDS[guard])
    desk = Desk({"people": gate}, rate=Rate(1e9, 10**9), metrics=Metrics())
    try:
        return [outcome(case, desk) for case in cases]
    finally:
        desk.close()


def main() -> None:
    import sys

    cases = corpus()
    for guard in sys.argv[1:] or GUARDS:
        found = outcomes(guard, cases)
        answered = sum(code == "answered" for code, _, _ in found)
        empty = sum(code == "answered" and bool(told) for code, told, _ in found)
        share = f"{answered} of {len(cases)} answered ({answered / len(cases):.0%})"
        print(f"{guard}: {share}, {empty} without a row")  # noqa: T201
        for tool in dict.fromkeys(case.tool for case in cases):
            own = [f for c, f in zip(cases, found, strict=True) if c.tool == tool]
            print(f"  {tool}: {sum(f[0] == 'answered' for f in own)} of {len(own)}")  # noqa: T201
        codes = collections.Counter(code for code, _, _ in found if code != "answered")
        print("  refused by code:", ", ".join(f"{c} {n}" for c, n in codes.most_common()))  # noqa: T201
        for case, (code, message, hint) in zip(cases, found, strict=True):
            if code != "answered":
                print(f"    {code:24} {message} | {hint} || {case.tool}: {case.does}")  # noqa: T201


if __name__ == "__main__":
    main()
