"""Tables: what a table gives away, how it is protected, and what that costs."""

from __future__ import annotations

from discreet.app.demo.stage import Stage
from discreet.audit.exposure import expose
from discreet.audit.rules.minimum_frequency import MinimumFrequency
from discreet.audit.rules.p_percent import PPercent
from discreet.audit.sensitivity import mark
from discreet.demo.datasets import salaries
from discreet.page import Section
from discreet.tables.comparison import compare
from discreet.tables.layout import pivot
from discreet.tables.methods.suppression import Suppression
from discreet.tables.page import release_page
from discreet.tables.protection import protect
from discreet.tables.table import tabulate

TITLE = "Tables: totals that tell too much"
ORDER = 20


def run(stage: Stage) -> None:
    """Protect a small table to look at, then one of the business register."""
    rules = [PPercent(10), MinimumFrequency(3)]
    small = tabulate(salaries(), by=["sector", "region"], measure="salary")
    stage.say("    Salaries of fifteen people by sector and region. What would each cell tell?")
    attacks = expose(mark(small, rules))
    stage.show(attacks)
    stage.section(
        Section(TITLE, "Fifteen invented people; what a naive table would tell.", attacks)
    )

    stage.say("    The same table, cells suppressed so that none of them can be computed:")
    release = protect(small, rules, Suppression())
    shown = pivot(release)
    stage.show((shown.header, shown.lines()))
    stage.say(f"    {release.verdict}")
    stage.section(Section("The same table, protected", release.verdict, shown))

    firms = tabulate(stage.businesses, by=["size", "activity"], measure="turnover")
    stage.say(
        f"    Turnover of {len(stage.businesses):,} firms by size and activity: {len(firms):,} "
        "cells. Every method side by side:"
    )
    found = compare(firms, rules, progress=stage.progress)
    stage.show(found)
    stage.section(
        Section(
            "Every method on one table",
            "Risk and loss for the curator: how many sensitive cells remain unsafe, how many "
            "cells are withheld, how far published values are from the truth.",
            found,
        )
    )
    big = protect(firms, rules, Suppression(), progress=stage.progress)
    folder = big.write(stage.folder / "table")
    drawn = release_page(big).sections[1]
    stage.section(Section("Turnover by size and activity", big.verdict, picture=drawn.picture))
    stage.say(f"    {big.verdict}")
    stage.say(f"    The release, with its evidence and a page for readers, is in {folder}.")
    stage.say(f"    Anybody can check it: discreet audit {folder / 'cells.csv'}")
