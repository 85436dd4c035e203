"""Microdata: the linkage attack on the raw file, the release, and the attack again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.page import Section

if TYPE_CHECKING:
    from discreet.app.demo.stage import Stage

TITLE = "Microdata: records released, and looked for"
ORDER = 30


def run(stage: Stage) -> None:
    """Link people to the raw file, release it anonymised, and link again."""
    from discreet.microdata.anonymization import anonymize
    from discreet.microdata.assessment import risk
    from discreet.microdata.exploration import frontier
    from discreet.microdata.masking.global_recoding import GlobalRecoding
    from discreet.microdata.masking.microaggregation import Microaggregation
    from discreet.microdata.masking.pram import PRAM
    from discreet.microdata.masking.rank_swapping import RankSwapping
    from discreet.microdata.methods.generalization import Generalization
    from discreet.microdata.models.k_anonymity import KAnonymity
    from discreet.microdata.models.l_diversity import LDiversity
    from discreet.microdata.risks.record_linkage import RecordLinkage

    intruders = [RecordLinkage("exact"), RecordLinkage("distance")]
    people = stage.people
    raw = risk(people, measures=intruders)
    stage.say(
        "An intruder knows region, sector, occupation, age, sex and education of people, with their "
        f"names, and looks for them in the file without names: {raw.value:.0%} are found."
    )
    release = anonymize(
        people,
        [KAnonymity(5), LDiversity("diagnosis", 2)],
        method=Generalization(suppression=0.05),
        progress=stage.progress,
    )
    after = risk(people, release, measures=intruders)
    stage.say(
        "The release is anonymised: like at least four others, with at least two diagnoses among "
        "them, at the least loss there is. The same intruder, who is told how values were "
        f"generalised, looks again: {after.value:.1%} are found."
    )
    table = (
        ("intruder", "raw file", "release"),
        [
            (before.measure, before.value, now.value)
            for before, now in zip(raw.findings, after.findings, strict=True)
        ],
    )
    stage.show(table)
    folder = release.write(stage.folder / "microdata")
    stage.say(f"{release.verdict}. The release is in {folder}.")
    stage.section(
        Section(
            "Microdata: people linked to their records",
            f"{release.verdict}.",
            table=table,
        )
    )
    keys = people.schema.quasi
    found = frontier(
        people,
        [
            *(RankSwapping(("age", "salary"), p=p) for p in (2.0, 20.0)),
            *(GlobalRecoding(keys[:3], level=level) for level in (1, 2)),
            PRAM(("region", "sector", "education"), retention=0.7),
            Microaggregation(keys, k=3),
            (Microaggregation(keys, k=5), RankSwapping(("salary",), p=5)),
        ],
        progress=stage.progress,
    )
    stage.show(found)
    stage.section(
        Section(
            "Microdata: risk–utility map",
            "Down is safer, left is more useful.",
            table=found,
            picture=found.picture(),
        )
    )
