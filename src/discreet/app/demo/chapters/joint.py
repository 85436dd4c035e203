"""Joint tables: three owners who may not show each other their records."""

from __future__ import annotations

import numpy as np

from discreet.app.demo.stage import Stage
from discreet.page import Section

TITLE = "Joint tables: three owners compute together, and see only what was agreed"
ORDER = 60
_ROWS = 6_000


def run(stage: Stage) -> None:
    """Start three owner processes, ask one question, compare their ledgers."""
    from discreet.protocols.joint.analyst import Joint
    from discreet.protocols.joint.pictures import draw_against_central, run_sections
    from discreet.protocols.joint.verification import verify_ledgers

    people = stage.people.select(["education", "sex", "salary"]).frame.iloc[:_ROWS]
    owners = [people.iloc[place::3] for place in range(3)]
    stage.say("    Three processes, each with a third of the persons; links are TLS 1.3, pinned.")
    with Joint.local(
        owners, name="people", keys=["education", "sex"], measures=["salary"]
    ) as joint:
        table = joint.table(["education", "sex"], "salary", margins=True)
        found = verify_ledgers(list(joint.ledgers))
    totals = table.frame[table.frame["sex"] == "Total"]
    header = tuple(map(str, totals.columns))
    shown = totals.astype(object).where(totals.notna(), "")  # a withheld total is empty
    rows = list(shown.itertuples(index=False, name=None))
    stage.show((header, rows[:6]))
    stage.say(
        f"    {table.withheld} of {len(table.frame)} cells and totals withheld: the rules hold for "
        "the total and for what remains when an owner subtracts its own part, and further cells are "
        "withheld so that the margins tell no sensitive one."
    )
    stage.say(f"    {found.verdict}.")
    stage.section(
        Section(
            "A joint table of three owners",
            text="Totals by education over the records of three owners. Nobody saw a cell before the "
            "rules were judged, on numbers that no party can read.",
            table=(header, rows),
        )
    )
    for section in run_sections(table.transcript, table.leakage):
        stage.section(section)
    cells = people.groupby(["education", "sex"], observed=True).salary.sum()
    opened = table.frame[(table.frame.status == "safe") & (table.frame.sex != "Total")]
    opened = opened[opened.education != "Total"]
    central = [cells.get((row.education, row.sex), 0.0) for row in opened.itertuples()]
    stage.section(
        Section(
            "Joint against central",
            text="Every opened sum over the one that a curator with all records computes.",
            picture=draw_against_central(opened["sum"], central, what="sum of salaries"),
        )
    )
    _regression(stage)
    _noise(stage)


def _noise(stage: Stage) -> None:
    """Draw the noise that five owners add in parts beside central noise of the same epsilon."""
    from discreet.dp.mechanisms.gaussian import Gaussian
    from discreet.protocols.joint.noise import NoisePlan
    from discreet.protocols.joint.pictures import draw_noise

    plan, draws = NoisePlan.of(0.2, [1], shares=5), 2_000
    parts = Gaussian().noise(epsilon=1 / plan.deviations[0], sensitivity=1)
    shared = sum(np.array(parts.draw([0] * draws)) for _ in range(5))
    central = np.array(Gaussian().noise(epsilon=0.2, sensitivity=1).draw([0] * draws))
    stage.section(
        Section(
            "Noise in shares against central noise",
            text="Each of five owners adds a fifth of the variance; together it is the noise that one "
            "curator would add for the same epsilon, 0.2.",
            picture=draw_noise(shared, central),
        )
    )


def _regression(stage: Stage) -> None:
    """Let two owners who hold columns of the same persons fit a regression together."""
    from discreet.protocols.joint.methods.joint_regression import JointRegression
    from discreet.protocols.joint.rehearsal import rehearse_protocol

    people = stage.people.select(["age", "sex", "salary"]).frame.iloc[:_ROWS]
    people = people[people.salary > 0].assign(woman=lambda rows: rows.sex == "female")
    parts = {
        "clinic": people[["age", "woman"]].to_numpy(dtype=float),
        # One salary that decides the fit would be refused, since the fit would tell it.
        "bank": people[["salary"]].clip(upper=people.salary.quantile(0.99)).to_numpy(dtype=float),
    }
    protocol = JointRegression()
    joint = rehearse_protocol(protocol, parts).shown["coefficients"]
    central = protocol.plain(parts)["coefficients"]
    lines = [
        (name, f"{a:,.2f}", f"{b:,.2f}")
        for name, a, b in zip(("constant", "age", "woman"), joint, central, strict=True)
    ]
    header = ("salary on", "on shares", "one curator")
    stage.say("    One owner has age and sex, another the salary: only coefficients are opened.")
    stage.show((header, lines))
    stage.section(
        Section(
            "A regression over columns of two owners",
            text="Solved on numbers that no party can read; beside it what one curator with all "
            "columns would get.",
            table=(header, lines),
        )
    )
    stage.section(
        Section(
            "What each party learned from the regression",
            text="Rehearsed here in one process; `discreet joint run` does it between parties.",
            table=protocol.leakage().rows(),
        )
    )
