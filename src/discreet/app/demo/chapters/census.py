"""Census-style tables: noise that adds up, and reconstruction before and after."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.app.demo.stage import Stage
from discreet.attacks._tables import identity
from discreet.attacks.reconstruction import Reconstruction, segregated_people
from discreet.dp.hierarchical.basis import Basis
from discreet.dp.hierarchical.budget import allocate
from discreet.dp.hierarchical.estimation import gathered_from, whole_estimate
from discreet.dp.hierarchical.measurement import measure
from discreet.dp.hierarchical.tree import Spine
from discreet.page import Section
from discreet.randomness import Randomness
from discreet.tables.methods.top_down import TopDown
from discreet.tables.release import TableRelease
from discreet.tables.simulation import simulate
from discreet.tables.table import tabulate

TITLE = "Census tables: every place, every total, one privacy loss"
ORDER = 25
#: Kinds and groups of the people who are reconstructed.
_KINDS, _GROUPS, _PLACES = 16, 4, 200


def run(stage: Stage) -> None:
    """Publish people by region, sex and education, and try to reconstruct people from margins of small places."""
    method = TopDown(rho=0.5, spine="region")
    release = tabulate(stage.people, by=["region", "sex", "education"]).protect(
        method=method, progress=stage.progress
    )
    assert isinstance(release, TableRelease)  # it is small
    stage.say("    People by region, sex and education, whole numbers that add up at every level:")
    stage.say(f"    {release.verdict}")
    estimate, levels = release.protected.estimate, tuple(release.protected.facts["levels"])
    assert estimate is not None
    found = simulate(method, estimate, levels, repeats=1)
    if found is not None:
        rows = [
            (name, *(round(total, 1) for total, _ in errors))
            for name, errors in found.errors.items()
        ]
        table = ("mean error of totals", *(f"level {level}" for level in levels)), rows
        stage.say(
            "    The same budget spent in simpler ways (cut at zero, empty cells only ever gain people):"
        )
        stage.show(table)
        stage.section(Section(TITLE, release.verdict, table))
    folder = release.write(stage.folder / "census")
    stage.say(
        f"    The release is in {folder}; anybody can derive it again: discreet audit {folder}"
    )

    people, left_out = segregated_people(1, _PLACES)
    attack = Reconstruction()
    lines = []
    for name, publish in (
        ("exact", identity),
        ("rho = 1", _published(1)),
        ("rho = 0.1", _published(0.1)),
    ):
        report = attack.run(publish, people, left_out, rows=_KINDS)
        lines.append((name, f"{report.found:.0%}", f"{report.blind:.0%}"))
    shown = ("tables", "unique people found", "found of people left out"), lines
    stage.say("    Records solved for from two margins of small places:")
    stage.show(shown)
    stage.section(
        Section(
            "Reconstruction before and after",
            "What is found of people who are not in the records is guessing; the difference is what "
            "the tables give away.",
            shown,
        )
    )


def _published(rho: float) -> Any:
    """Return a way to publish places by kind and group. Any: counts in, counts out."""
    basis = Basis((_KINDS, _GROUPS))
    shares = [{(): 0.1, (0,): 0.05, (1,): 0.05, (0, 1): 0.3}] * 2
    spine = Spine((np.zeros(_PLACES, dtype=np.int64),))

    def publish(counts: Any) -> Any:
        measured = measure(spine, basis, counts, allocate(rho, shares))
        *_, last = whole_estimate(measured, gathered_from(measured), rng=Randomness.secure())
        return last

    return publish
