"""Queries: five questions and five attacks, on the raw database and under each guard."""

from __future__ import annotations

from typing import Any

from discreet.app.demo.stage import Stage
from discreet.page import Section
from discreet.report import Rows

TITLE = "Queries: the same questions under each guard, and what an attacker gets"
ORDER = 50
#: Its kernels take long to compile, so that is begun with the first chapter.
COMPILED = "discreet.audit.history.auditor"

QUESTIONS = (
    "SELECT COUNT(*) FROM people WHERE salary > 100000",
    "SELECT SUM(salary) FROM people WHERE sector = 'HC'",
    "SELECT COUNT(*) FROM people WHERE sector = 'IT' AND region = 'TGN'",
    "SELECT COUNT(*) FROM people WHERE sector = 'Fin' AND region = 'TGN'",
    "SELECT AVG(salary) FROM people WHERE sector = 'Fin' AND region = 'TGN'",
)


def run(stage: Stage) -> None:
    """Ask, attack, and tabulate both."""
    from discreet.attacks._raw import RawDatabase
    from discreet.demo.datasets import salaries

    guards = _guards()
    if not stage.has_noise:
        del guards["perturbation"]
        stage.say("    Perturbation is left out; to see it: pip install 'discreet[dp]'")
    targets: dict[str, Any] = {"raw": RawDatabase(salaries())}
    targets |= {name: _gate(guard) for name, guard in guards.items()}
    header = ("question", *targets)
    rows = [
        (
            sql.removeprefix("SELECT "),
            *(_shown(target.ask(sql, user="ana")) for target in targets.values()),
        )
        for sql in QUESTIONS
    ]
    stage.say("    Fifteen persons, five questions; the last two are about one person.")
    stage.show((header, rows))
    stage.section(
        Section(
            "Five questions under each guard",
            text="Restriction answers exactly or not at all; camouflage answers intervals that "
            "hold the truth; perturbation adds noise of a known size.",
            table=(header, rows),
        )
    )
    attacked = _attacks(guards)
    stage.say("    Five attacks on the same person's salary: what the attacker concludes.")
    stage.show(attacked)
    stage.section(
        Section(
            "Attacks before and after",
            text="Each attack finds the salary in the raw database, and fails under each guard.",
            table=attacked,
        )
    )
    for target in targets.values():
        if hasattr(target, "close"):
            target.close()


def _guards() -> dict[str, Any]:
    from discreet.queries.guards.camouflage import Camouflage
    from discreet.queries.guards.perturbation import Perturbation
    from discreet.queries.guards.restriction import Restriction

    return {
        "restriction": Restriction(k=3),
        "camouflage": Camouflage(bound=0.3),
        "perturbation": Perturbation(epsilon=5.0, per_query=1.0, bounds={"salary": (0, 500_000)}),
    }


def _gate(guard: Any) -> Any:
    from discreet.demo.datasets import salaries
    from discreet.queries.gateway import Gateway

    return Gateway(salaries(), guard=guard)


def _attacks(guards: dict[str, Any]) -> Rows:
    from discreet.app.attacking import attack_dataset
    from discreet.attacks import attacks_on
    from discreet.attacks._base import Victim
    from discreet.demo.datasets import salaries

    victim = Victim(
        "people", "salary", "sector = 'Fin' AND region = 'TGN'", "region = 'TGN'", "sector = 'IT'"
    )
    attacks = [attack() for attack in attacks_on("gateway").values()]
    return attack_dataset(salaries(), victim, guards, attacks).rows()


def _shown(answer: Any) -> str:
    if answer.kind == "refused":
        return "refused"
    row = [column[0].as_py() for column in answer.table.columns]
    return " … ".join("–" if cell is None else f"{cell:,.0f}" for cell in row)
