"""Laws of disguises: they state what they do not hide, and their figures are probabilities."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from discreet.protocols.search._base import Disguise, DisguiseRisk, Vocabulary
from discreet.protocols.search.goopir import Goopir
from discreet.randomness import Randomness
from tests.laws.parameters import examples

WORDS = Vocabulary.zipf(400)


def evaluated(disguise: Disguise, seed: int = 1) -> DisguiseRisk:
    return disguise.evaluate(WORDS, rng=Randomness.seeded(seed))


def says_what_it_does_not_hide(member: type[Disguise]) -> None:
    assert len(member.caution) > 20, f"{member.name} promises without a caution"
    assert member.caution.endswith(".")
    for disguise in examples(member)[:1]:
        assert evaluated(disguise).caution == member.caution


def its_figures_are_possible(member: type[Disguise]) -> None:
    for disguise in examples(member):
        risk = evaluated(disguise)
        assert risk.disguise == member.name
        for value in (risk.right, risk.worst, risk.repeated):
            assert 0 <= value <= 1, f"{disguise}: {value} is no probability"
        assert risk.auc is None or 0 <= risk.auc <= 1
        assert risk.entropy >= 0
        assert math.isfinite(risk.overhead)
        assert risk.overhead >= 1, f"{disguise} sends less than what is asked"


def the_same_seed_gives_the_same_figures(member: type[Disguise]) -> None:
    for disguise in examples(member)[:1]:
        assert evaluated(disguise) == evaluated(disguise)


LAWS = (
    says_what_it_does_not_hide,
    its_figures_are_possible,
    the_same_seed_gives_the_same_figures,
)


@dataclasses.dataclass(frozen=True)
class Mute(Goopir):
    """Does not say what it leaves open."""

    name: ClassVar[str] = "mute"
    caution: ClassVar[str] = ""


@dataclasses.dataclass(frozen=True)
class Boast(Goopir):
    """Sends nothing and hides everything."""

    name: ClassVar[str] = "boast"

    def evaluate(self, vocabulary: Vocabulary, *, rng: Randomness) -> DisguiseRisk:
        risk = super().evaluate(vocabulary, rng=rng)
        return dataclasses.replace(risk, right=-0.1, overhead=0.0)


@dataclasses.dataclass(frozen=True)
class Moody(Goopir):
    """Measures something else every time."""

    name: ClassVar[str] = "moody"

    def evaluate(self, vocabulary: Vocabulary, *, rng: Randomness) -> DisguiseRisk:
        drawn = float(Randomness.secure().uniform(1)[0])
        return dataclasses.replace(super().evaluate(vocabulary, rng=rng), right=drawn)


BROKEN = {
    Mute: says_what_it_does_not_hide,
    Boast: its_figures_are_possible,
    Moody: the_same_seed_gives_the_same_figures,
}
