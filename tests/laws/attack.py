"""Laws of attacks: each declares what it attacks, succeeds where nothing protects, and is honest."""

from __future__ import annotations

import dataclasses
import typing
from types import SimpleNamespace
from typing import ClassVar

from discreet.attacks import AttackReport, RawDatabase
from discreet.attacks._base import Attack, Attacked, GatewayAttack, Interrogation, Victim
from tests.laws import victims
from tests.laws.parameters import examples


class Silent:
    """Refuses everything."""

    def ask(self, sql: str, *, user: str) -> SimpleNamespace:
        return SimpleNamespace(kind="refused", table=None)


def declares_what_it_attacks(member: type[Attack]) -> None:
    attacked = getattr(member, "attacks", None)
    assert attacked in typing.get_args(Attacked), f"{member.name} does not say what it attacks"
    assert (attacked == "gateway") == issubclass(member, GatewayAttack)


def succeeds_where_nothing_protects(member: type[Attack]) -> None:
    for attack in examples(member):
        report = attack.control()
        assert isinstance(report, AttackReport)
        assert report.succeeded, f"{attack} fails against its own naive control"


def succeeds_on_generated_victims(member: type[Attack]) -> None:
    if member.attacks != "gateway":  # what else is attacked generates its own victims
        return
    for attack in examples(member):
        for seed in range(3):
            case = victims.case(seed)
            report = attack.run(RawDatabase(case.dataset), case.victim, case.truth)
            assert report.succeeded, f"{attack} fails on raw data, seed {seed}"


def concludes_nothing_from_silence(member: type[Attack]) -> None:
    if member.attacks != "gateway":
        return
    for attack in examples(member):
        case = victims.case(1)
        report = attack.run(Silent(), case.victim, case.truth)
        assert not report.succeeded, f"{attack} claims to know what nobody told"
        assert report.asked == report.refused > 0


LAWS = (
    declares_what_it_attacks,
    succeeds_where_nothing_protects,
    succeeds_on_generated_victims,
    concludes_nothing_from_silence,
)


@dataclasses.dataclass(frozen=True)
class Undeclared(Attack):
    """Does not say what it attacks."""

    name: ClassVar[str] = "undeclared"

    def control(self) -> AttackReport:
        return AttackReport(self.name, 0, 0, None, None, succeeded=True)


@dataclasses.dataclass(frozen=True)
class Careless(GatewayAttack):
    """Takes the sum of the group for the victim's value."""

    name: ClassVar[str] = "careless"

    def conclude(self, interrogation: Interrogation, victim: Victim) -> tuple[float, float] | None:
        return interrogation.value(
            f"SELECT SUM({victim.column}) FROM {victim.relation} WHERE {victim.group}"
        )


@dataclasses.dataclass(frozen=True)
class Memorised(GatewayAttack):
    """Knows the answer of its control by heart."""

    name: ClassVar[str] = "memorised"

    def conclude(self, interrogation: Interrogation, victim: Victim) -> tuple[float, float] | None:
        return 150_000.0, 150_000.0


@dataclasses.dataclass(frozen=True)
class Boastful(GatewayAttack):
    """Reports success whatever it heard."""

    name: ClassVar[str] = "boastful"

    def conclude(self, interrogation: Interrogation, victim: Victim) -> tuple[float, float] | None:
        return interrogation.value(
            f"SELECT SUM({victim.column}) FROM {victim.relation} WHERE {victim.condition}"
        )

    def run(self, target, victim, truth, *, tolerance=0.01):
        report = super().run(target, victim, truth, tolerance=tolerance)
        return dataclasses.replace(report, succeeded=True)


BROKEN = {
    Undeclared: declares_what_it_attacks,
    Careless: succeeds_where_nothing_protects,
    Memorised: succeeds_on_generated_victims,
    Boastful: concludes_nothing_from_silence,
}
