"""The data: an embedded population, described as an intruder would see it."""

from __future__ import annotations

from discreet.app.demo.stage import Stage
from discreet.data.describe import describe
from discreet.page import Section

TITLE = "The data: who could be recognised?"
ORDER = 10


def run(stage: Stage) -> None:
    """Describe the population and say how many records are unique."""
    people = stage.people
    stage.say(f"    A population of {people.count:,} persons in households, generated here.")
    report = describe(people)
    stage.show(report)
    stage.section(
        Section(
            TITLE,
            text="Names are removed easily; what is left still points at people. "
            "Quasi-identifiers are the columns an intruder may know from elsewhere.",
            table=report,
        )
    )
