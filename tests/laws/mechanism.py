"""Laws of mechanisms: noise hides a change as well as it says, and costs add up."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from discreet.dp.accountant import Accountant
from discreet.dp.mechanisms._base import Mechanism, Noise
from discreet.dp.mechanisms.gaussian import Gaussian
from discreet.dp.mechanisms.laplace import Laplace
from tests.laws.likelihood import SURE, excess
from tests.laws.parameters import examples

DRAWS = 10_000
BUDGETS = ((0.5, 1), (1.0, 1), (2.0, 3))


def losses(event: str) -> list[tuple[float, float]]:
    """Return pairs of ε and δ that an event states, each of which must hold.

    ρ-zCDP is (ε, δ)-DP with the δ of Canonne, Kamath and Steinke (2020), proposition 12. Small ε show
    most: there δ is large, and so is what too little noise gives away.
    """
    kind, value = event.split(" ")
    cost = float(value)
    if kind == "pure":
        return [(cost, 0.0)]
    assert kind == "zcdp", f"the accountant knows no event {kind!r}"
    return [(epsilon, _delta(cost, epsilon)) for epsilon in math.sqrt(2 * cost) * np.array(TIMES)]


#: The ε at which ρ-zCDP is tested, in multiples of the pure ε that would cost as much.
TIMES = (0.5, 1.0, 1.5)


def _delta(rho: float, epsilon: float) -> float:
    order = np.linspace(1.01, 50, 5_000)
    exponent = (order - 1) * (order * rho - epsilon) + order * np.log1p(-1 / order)
    return float(np.exp((exponent - np.log(order - 1)).min()))


def hides_a_change(member: type[Mechanism]) -> None:
    for mechanism in examples(member):
        for epsilon, sensitivity in BUDGETS:
            noise = mechanism.noise(epsilon=epsilon, sensitivity=sensitivity)
            here, there = (noise.draw([x] * DRAWS) for x in (10, 10 + sensitivity))
            for stated, delta in losses(noise.event):
                for one, two in ((here, there), (there, here)):
                    found = excess(one, two, stated, delta)
                    assert found < SURE, f"{mechanism} tells more than {noise.event}: {found:.0f}"


def costs_what_is_asked(member: type[Mechanism]) -> None:
    for mechanism in examples(member):
        for epsilon, sensitivity in BUDGETS:
            event = mechanism.noise(epsilon=epsilon, sensitivity=sensitivity).event
            kind, cost = event.split(" ")
            asked = epsilon if kind == "pure" else epsilon**2 / 2
            assert 0 < float(cost) <= asked * (1 + 1e-9), f"{mechanism} costs {event}"


def costs_add_up(member: type[Mechanism]) -> None:
    for mechanism in examples(member):
        events = [mechanism.noise(epsilon=e, sensitivity=s).event for e, s in BUDGETS]
        kinds = {event.split(" ")[0] for event in events}
        method = "basic" if kinds == {"pure"} else "zcdp"
        accountant = Accountant(method, 0.0 if method == "basic" else 1e-6)
        many = accountant.epsilon(dict(zip(events, (3, 2, 1), strict=True)))
        total = math.fsum(
            float(event.split(" ")[1]) * n for event, n in zip(events, (3, 2, 1), strict=True)
        )
        one = accountant.epsilon({f"{kinds.pop()} {total!r}": 1})
        assert math.isclose(many, one, rel_tol=1e-9), f"{mechanism}: costs do not add up"
        assert many >= max(accountant.epsilon({event: 1}) for event in events)


def says_how_far_it_reaches(member: type[Mechanism]) -> None:
    for mechanism in examples(member):
        for epsilon, sensitivity in BUDGETS:
            noise = mechanism.noise(epsilon=epsilon, sensitivity=sensitivity)
            drawn = np.array(noise.draw([0] * DRAWS), dtype=float)
            slack = SURE * math.sqrt(0.05 / DRAWS)
            assert np.mean(np.abs(drawn) <= noise.error_95 + 1) >= 0.95 - slack
            assert np.mean(drawn >= noise.tail(0.05)) <= 0.05 + slack
            assert abs(drawn.mean()) <= SURE * max(noise.deviation, 1e-9) / math.sqrt(DRAWS)


def states_one_cost_to_every_accountant(member: type[Mechanism]) -> None:
    """Guards share budgets by `is_concentrated`; the convolved event hides a change as well."""
    for mechanism in examples(member):
        for epsilon, sensitivity in BUDGETS:
            noise = mechanism.noise(epsilon=epsilon, sensitivity=sensitivity)
            assert noise.event.startswith("zcdp ") == member.is_concentrated, noise.event
            delta = 1e-2
            stated = Accountant("pld", delta).epsilon({noise.convolved_event: 1})
            here, there = (noise.draw([x] * DRAWS) for x in (10, 10 + sensitivity))
            for one, two in ((here, there), (there, here)):
                found = excess(one, two, stated, delta)
                assert found < SURE, f"{mechanism} tells more than {noise.convolved_event}"


LAWS = (
    hides_a_change,
    costs_what_is_asked,
    costs_add_up,
    says_how_far_it_reaches,
    states_one_cost_to_every_accountant,
)


@dataclasses.dataclass(frozen=True)
class TooQuiet(Laplace):
    """Draws half of the noise it states."""

    name: ClassVar[str] = "too-quiet"

    def noise(self, *, epsilon: float, sensitivity: int) -> Noise:
        stated = super().noise(epsilon=epsilon, sensitivity=sensitivity)
        drawn = super().noise(epsilon=2 * epsilon, sensitivity=sensitivity)
        return dataclasses.replace(stated, draw=drawn.draw)


@dataclasses.dataclass(frozen=True)
class TooNarrow(Gaussian):
    """Draws normal noise of half the deviation it states."""

    name: ClassVar[str] = "too-narrow"

    def noise(self, *, epsilon: float, sensitivity: int) -> Noise:
        stated = super().noise(epsilon=epsilon, sensitivity=sensitivity)
        drawn = super().noise(epsilon=2 * epsilon, sensitivity=sensitivity)
        return dataclasses.replace(stated, draw=drawn.draw)


@dataclasses.dataclass(frozen=True)
class Overspending(Laplace):
    """Takes twice the ε it was given."""

    name: ClassVar[str] = "overspending"

    def noise(self, *, epsilon: float, sensitivity: int) -> Noise:
        return super().noise(epsilon=2 * epsilon, sensitivity=sensitivity)


@dataclasses.dataclass(frozen=True)
class Exhausted(Laplace):
    """States a loss that no budget can carry twice."""

    name: ClassVar[str] = "exhausted"

    def noise(self, *, epsilon: float, sensitivity: int) -> Noise:
        stated = super().noise(epsilon=epsilon, sensitivity=sensitivity)
        return dataclasses.replace(stated, event="pure nan")


@dataclasses.dataclass(frozen=True)
class Modest(Laplace):
    """Says that its noise reaches less far than it does."""

    name: ClassVar[str] = "modest"

    def noise(self, *, epsilon: float, sensitivity: int) -> Noise:
        stated = super().noise(epsilon=epsilon, sensitivity=sensitivity)
        return dataclasses.replace(stated, tail=lambda chance: 1)


@dataclasses.dataclass(frozen=True)
class Understated(Laplace):
    """States a tenth of its cost to the accountant that convolves losses."""

    name: ClassVar[str] = "understated"

    def noise(self, *, epsilon: float, sensitivity: int) -> Noise:
        stated = super().noise(epsilon=epsilon, sensitivity=sensitivity)
        return dataclasses.replace(stated, convolved_event=f"pure {epsilon / 10!r}")


@dataclasses.dataclass(frozen=True)
class Confused(Gaussian):
    """Says that its concentrated cost is pure."""

    name: ClassVar[str] = "confused"
    is_concentrated: ClassVar[bool] = False


BROKEN = {
    TooQuiet: hides_a_change,
    TooNarrow: hides_a_change,
    Overspending: costs_what_is_asked,
    Exhausted: costs_add_up,
    Modest: says_how_far_it_reaches,
    Understated: states_one_cost_to_every_accountant,
    Confused: states_one_cost_to_every_accountant,
}
