"""Synthetic records: copies unmasked by attacks, trees, differential privacy, honest intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.page import Section

if TYPE_CHECKING:
    from discreet.app.demo.stage import Stage
    from discreet.microdata.synthesizers._base import Synthesizer

TITLE = "Synthetic records: what they keep, and whom they give away"
ORDER = 35

#: Columns of the chapter, with what everybody may know of their values.
_KEPT = ("sector", "sex", "education", "age", "salary")
#: The attacks need a few thousand people and gain nothing from more.
_MOST = 4_000


def run(stage: Stage) -> None:
    """Synthesise by trees with small and large leaves and by AIM, and attack each of them."""
    from discreet.microdata.combining import combine
    from discreet.microdata.synthesis import synthesize
    from discreet.microdata.synthesizers.aim import AIM
    from discreet.microdata.synthesizers.cart import CART
    from discreet.microdata.synthesizers.multiple_imputation import MultipleImputation

    some = stage.people.select(_KEPT)
    if len(some) > _MOST:
        some = some.sample(_MOST)
    people = some.replace(
        domains={
            "age": {"cuts": [0, 18, 25, 35, 45, 55, 65, 75, 120]},
            "salary": {"cuts": [0, 20_000, 30_000, 40_000, 50_000, 70_000, 100_000, 9_999_999]},
        }
    )
    lines: list[tuple[object, ...]] = []
    methods: dict[str, Synthesizer] = {
        "trees with leaves of 5": CART(min_leaf=5),
        "trees with leaves of 50": CART(min_leaf=50),
    }
    if stage.has_noise:
        methods["AIM, ε = 1"] = AIM(epsilon=1, delta=1e-6)
    else:
        stage.say("    AIM is left out; to see it: pip install 'discreet[dp]'")
    for word, method in methods.items():
        made = synthesize(people, method, progress=stage.progress)
        risk = made.risk()
        if not lines:
            facts = risk.bootstrap["membership"].facts
            lines.append(("people copied (bootstrap)", facts["AUC"], "yes", None))
        leaks = "yes" if "membership" in risk.leaks else "no"
        lost = made.utility()["marginals"].value
        lines.append((word, risk["membership"].facts["AUC"], leaks, lost))
    table = (("file", "AUC of telling who is in it", "told beyond chance", "loss of pairs"), lines)
    stage.say(
        "A file of synthetic records names nobody, and may still tell who was in the original: an "
        "intruder calls those people members who lie closest to a record. People copied with "
        "replacement are unmasked, small leaves leak, larger ones less; AIM has a proof."
    )
    stage.show(table)
    several = synthesize(people, MultipleImputation(m=10), progress=stage.progress)
    honest = combine(several, "salary ~ age")["age"]
    naive = combine([several.frame], "salary ~ age", kind="simple")["age"]
    reach = (naive.high - naive.low) / 2 / 2**0.5
    intervals = (
        ("interval of the slope of salary on age", "low", "high"),
        [
            ("one file, taken as real", naive.estimate - reach, naive.estimate + reach),
            ("ten files, combined", honest.low, honest.high),
        ],
    )
    stage.say("A reader who takes a synthetic file as real gets an interval that holds too seldom.")
    stage.show(intervals)
    stage.section(
        Section(
            "Synthetic records: who is told to be in the file",
            "One half of the people made each file; the other half are the control.",
            table=table,
        )
    )
    stage.section(Section("Synthetic records: honest intervals", table=intervals))
