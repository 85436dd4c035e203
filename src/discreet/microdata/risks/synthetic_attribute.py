"""Attribute inference: whether synthetic records tell a secret of the people in the file."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.microdata.columns import Numbers
from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding
from discreet.microdata.risks._holdout import HoldoutRisk, Sides, interval
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["SyntheticAttribute"]


@dataclasses.dataclass(frozen=True)
class SyntheticAttribute(HoldoutRisk):
    """Take a secret from the nearest released record, for people in the file and people who are not.

    The intruder knows every other column. Numbers are guessed to a tenth of their distribution. The
    value is the accuracy on people in the file minus that on others, at least 0; beside it stands
    what the nearest of the others' own records would have told.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"a": range(0, 80, 2), "ill": ["flu", "gout"] * 20})
    >>> others = pd.DataFrame({"a": range(1, 81, 2), "ill": ["gout", "gout", "flu", "flu"] * 10})
    >>> pair = Pair.of(people, people, holdout=others, paired=False)
    >>> SyntheticAttribute("ill").measure(pair, rng=Randomness.seeded(1)).value > 0.4
    True
    """

    name: ClassVar[str] = "synthetic-attribute"
    reference: ClassVar[str] = "Stadler, Oprisanu and Troncoso, USENIX Security 2022"
    scenario: ClassVar[str] = "knows all columns but one of a person, and wants to know that one"
    noise: ClassVar[float] = 0.1

    secret: str | None = parameter(
        None, help="the column guessed; by default the first confidential, or else the last one"
    )

    def applies(self, pair: Pair) -> bool:
        """Needs a column to guess and others to guess it from."""
        return super().applies(pair) and len(pair.shared) > 1

    def _secret(self, pair: Pair) -> str:
        if self.secret is not None:
            pair.schema[self.secret]
            return self.secret
        return pair.confidential[0] if pair.confidential else pair.shared[-1]

    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        """Return how much better secrets of people in the file are guessed."""
        name = self._secret(pair)
        sides, (inside, outside, synthetic) = Sides.of(pair).without(name)
        one, two = sides.chosen(self.targets, rng)
        synthetic = np.where(synthetic < 0, synthetic.max(initial=0) + 1, synthetic)
        here, there = sides.inside.take(one), sides.outside.take(two)
        right = (
            (here.guesses(sides.synthetic, synthetic) == inside[one]).astype(float),
            (there.guesses(sides.synthetic, synthetic) == outside[two]).astype(float),
        )
        known = np.where(outside < 0, outside.max(initial=0) + 1, outside)
        best = float((here.guesses(sides.outside, known) == inside[one]).mean())
        low, high = interval(_gain, *right, rng=rng)
        gain = _gain(*right)
        facts = {
            "secret": name,
            "in the file": float(right[0].mean()),
            "not in the file": float(right[1].mean()),
            "from other people": best,
            "low": low,
            "high": high,
        }
        words = (
            f"{name} of people in the file is guessed right for {facts['in the file']:.1%}, of "
            f"others for {facts['not in the file']:.1%}: {gain:+.1%} [{low:+.1%}, {high:+.1%}]"
        )
        return self.finding(max(0.0, gain), words, facts)


def _gain(inside: Numbers, outside: Numbers) -> float:
    return float(inside.mean() - outside.mean())
