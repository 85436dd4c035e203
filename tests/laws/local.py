"""Laws of local mechanisms: one report tells no more of an answer than ε, and many tell the shares.

Statistical tests at moderate ε: where e^ε is beyond the number of draws a test sees nothing.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from typing import Any, ClassVar

import numpy as np

from discreet.dp.local._base import Array, LocalMechanism
from discreet.dp.local.randomized_response import RandomizedResponse
from discreet.randomness import Randomness
from tests.laws import parameters
from tests.laws.likelihood import SURE, excess

DRAWS = 20_000
DOMAIN = ("a", "b", "c")


def tried(member: type[LocalMechanism]) -> list[Any]:
    found = parameters.tried(member, np.random.default_rng(1), 2, domain=DOMAIN, maximum=100.0)
    return [one for one in found if one.privacy <= 5]


def endless(member: type[LocalMechanism]) -> bool:
    """Return whether every example states that some reports are certain."""
    made = parameters.examples(member, domain=DOMAIN, maximum=100.0)
    return all(math.isinf(one.privacy) and one.caution for one in made)


def answers(mechanism: Any) -> tuple[Any, ...]:
    """Return answers that differ as much as answers can: of the domain, of the range, or yes and no."""
    if hasattr(mechanism, "domain"):
        return tuple(mechanism.domain)
    return (0.0, mechanism.maximum) if hasattr(mechanism, "maximum") else ("no", "yes")


def reports(mechanism: Any, answer: Any, rng: Randomness, many: int = DRAWS) -> list[bytes]:
    rows = np.asarray(mechanism.encode([answer] * many, rng=rng))
    return [row.tobytes() for row in rows.reshape(len(rows), -1)]


def a_report_tells_no_more_than_epsilon(member: type[LocalMechanism]) -> None:
    rng = Randomness.seeded(5)
    found = tried(member)
    assert found or endless(member), f"{member.name} has no example with a moderate epsilon"
    for mechanism in found:
        drawn = [reports(mechanism, answer, rng) for answer in answers(mechanism)]
        for one, two in itertools.permutations(drawn, 2):
            told = excess(one, two, mechanism.privacy)
            assert told < SURE, f"{mechanism} tells more than it states: {told:.0f} errors"


def its_epsilon_is_not_idle(member: type[LocalMechanism]) -> None:
    """Some report must be about e^ε times likelier: an ε far too large misleads whoever budgets."""
    rng = Randomness.seeded(6)
    for mechanism in parameters.examples(member, domain=DOMAIN, maximum=100.0):
        first, *rest = (reports(mechanism, answer, rng) for answer in answers(mechanism))
        if math.isinf(mechanism.privacy):
            assert any(set(first) ^ set(other) for other in rest), f"{mechanism} tells nothing"
            continue
        told = max(
            excess(one, two, mechanism.privacy / 3)
            for other in rest
            for one, two in ((first, other), (other, first))
        )
        assert told > SURE, f"{mechanism} tells far less than it states"


def the_same_seed_gives_the_same_reports(member: type[LocalMechanism]) -> None:
    for mechanism in parameters.examples(member, domain=DOMAIN, maximum=100.0):
        said = list(itertools.islice(itertools.cycle(answers(mechanism)), 50))
        one, two, other = (
            mechanism.encode(said, rng=Randomness.seeded(seed)) for seed in (1, 1, 2)
        )
        assert np.array_equal(one, two)
        assert not np.array_equal(one, other), f"{mechanism} does not draw from what it is given"
        assert len(one) == len(said)


def many_reports_tell_the_shares(member: type[LocalMechanism]) -> None:
    rng = np.random.default_rng(7)
    for mechanism in parameters.examples(member, domain=DOMAIN, maximum=100.0):
        possible = answers(mechanism)
        said = rng.choice(np.array(possible, dtype=object), 20_000).tolist()
        found = mechanism.estimate(mechanism.encode(said, rng=Randomness.seeded(8)))
        share = Counter(map(str, said))
        for label, estimate, error in zip(
            found.labels, found.estimate, found.standard_error, strict=True
        ):
            truth = float(np.mean(said)) if label == "mean" else share[label] / len(said)
            assert abs(estimate - truth) <= SURE * error, f"{mechanism}: {label}"
        assert found.epsilon == mechanism.privacy


LAWS = (
    a_report_tells_no_more_than_epsilon,
    its_epsilon_is_not_idle,
    the_same_seed_gives_the_same_reports,
    many_reports_tell_the_shares,
)


@dataclasses.dataclass(frozen=True)
class Understated(RandomizedResponse):
    """States half of the ε it has."""

    name: ClassVar[str] = "understated"

    @property
    def privacy(self) -> float:
        return super().privacy / 2


@dataclasses.dataclass(frozen=True)
class Overstated(RandomizedResponse):
    """States five times the ε it has."""

    name: ClassVar[str] = "overstated"

    @property
    def privacy(self) -> float:
        return super().privacy * 5


@dataclasses.dataclass(frozen=True)
class OwnCoins(RandomizedResponse):
    """Draws from a source of its own."""

    name: ClassVar[str] = "own-coins"

    def encode(self, answers: Any, *, rng: Randomness) -> Array:
        return super().encode(answers, rng=Randomness.secure())


@dataclasses.dataclass(frozen=True)
class Biased(RandomizedResponse):
    """Takes the reports for the answers."""

    name: ClassVar[str] = "biased"

    def estimate(self, reports: Array) -> Any:
        found = super().estimate(reports)
        return dataclasses.replace(found, estimate=(float(np.mean(reports)) + 0.1,))


BROKEN = {
    Understated: a_report_tells_no_more_than_epsilon,
    Overstated: its_epsilon_is_not_idle,
    OwnCoins: the_same_seed_gives_the_same_reports,
    Biased: many_reports_tell_the_shares,
}
