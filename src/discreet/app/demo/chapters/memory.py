"""The second release: what two releases tell together, without memory and with it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from discreet.app.demo.stage import Stage
from discreet.attacks._publications import Printed, printed_table
from discreet.page import Section

TITLE = "The second release: safe alone, and together with the first"
ORDER = 60

_ROLES = {"id": "identifier", "salary": "confidential", "sector": "quasi", "region": "quasi"}
_QUESTION = "SELECT SUM(salary) AS total FROM people WHERE sector = 'Fin' AND region = 'BCN'"


def run(stage: Stage) -> None:
    """Release twice, attack both together, and show what changes with a ledger."""
    rows = [
        ("difference over time", "a newcomer's salary", *map(_over_time, (False, True))),
        ("table against answers", "one person of Fin in TGN", *map(_answers, (False, True))),
    ]
    if stage.has_noise:
        spent = map(_spending, (False, True))
        rows.append(("spending across kinds", "ε of two tables, granted 1", *spent))
    else:
        stage.say("    Spending of ε is left out; to see it: pip install 'discreet[dp]'")
    table = (("attack", "after what", "without memory", "with a ledger"), rows)
    stage.say("    Two releases about the same people: what an attacker with both concludes.")
    stage.show(table)
    stage.section(
        Section(
            "Two releases, attacked together",
            text="Each release is safe alone. Without memory their difference tells one person; "
            "with a ledger the second is judged together with the first.",
            table=table,
        )
    )


def _over_time(remember: bool) -> str:
    """Publish salaries by sector, then again after one person came."""
    import discreet as dc
    from discreet.demo.datasets import salaries

    before = salaries().frame
    newcomer = before.head(1).assign(id=99, salary=77_000)
    after = type(before)({n: [*before[n], *newcomer[n]] for n in before.columns})
    printed: list[Printed] = []
    with dc.open_ledger() as ledger:
        for frame, snapshot in ((before, "first"), (after, "second")):
            people = dc.read(frame, roles=_ROLES, unit="id", name="people")
            memory: dict[str, Any] = {"ledger": ledger, "snapshot": snapshot} if remember else {}
            table = dc.tabulate(people, by=["sector"], measure="salary")
            release = table.protect([dc.MinimumFrequency(3)], **memory)
            if remember:
                with _forgotten() as folder:
                    release.write(folder, **memory)
            register = {row["id"]: row for row in people.arrow().to_pylist()}
            cells = release.published.to_dict("records")
            printed += printed_table(cells, register, ["sector"])
    return _words(dc.DifferenceOverTime().run(printed, 99, 77_000.0))


def _answers(remember: bool) -> str:
    """Publish salaries by sector, then ask a gateway about all of a sector but one person."""
    import discreet as dc
    from discreet.demo.datasets import salaries

    people = salaries()
    register = {row["id"]: row for row in people.arrow().to_pylist()}
    with dc.open_ledger() as ledger:
        memory: dict[str, Any] = {"ledger": ledger} if remember else {}
        table = dc.tabulate(people, by=["sector"], measure="salary")
        release = table.protect([dc.MinimumFrequency(3)], **memory)
        if remember:
            with _forgotten() as folder:
                release.write(folder, **memory)
        printed = printed_table(release.published.to_dict("records"), register, ["sector"])
        with dc.Gateway(people, guard=dc.Restriction(k=2), **memory) as gate:
            answer = gate.ask(_QUESTION, user="eve")
    if not answer.refused:
        inside = {n for n, r in register.items() if (r["sector"], r["region"]) == ("Fin", "BCN")}
        printed.append(Printed(frozenset(inside), float(answer.value())))
    victim = next(n for n, r in register.items() if (r["sector"], r["region"]) == ("Fin", "TGN"))
    truth = float(register[victim]["salary"])
    return _words(dc.TableAgainstAnswers().run(printed, victim, truth))


def _spending(remember: bool) -> str:
    """Make two noisy tables with ε = 0.75 each, of which 1 is granted together."""
    import discreet as dc
    from discreet.demo.datasets import salaries

    table = dc.tabulate(salaries(), by=["sector"])
    spent = 0.0
    with dc.open_ledger() as ledger:
        ledger.set_grant("people", dc.Grant(1.0).to_dict())
        for _ in range(2):
            try:
                table.protect(
                    method=dc.DPTableNoise(epsilon=0.75), ledger=ledger if remember else None
                )
            except dc.RefusedError:
                continue
            spent += 0.75
    return f"{spent:g} spent" + ("" if spent > 1 else ", the second refused")


def _words(report: Any) -> str:
    """Return a conclusion in words. Any: a report of an attack."""
    return f"finds {report.lower:,.0f}" if report.succeeded else "finds nothing"


@contextlib.contextmanager
def _forgotten() -> Iterator[Path]:
    """Give a place for files that the chapter does not keep."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "release"
