"""Words of one search that fit together."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

import numpy as np

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.registry import parameter

__all__ = ["Coherence"]


@dataclasses.dataclass(frozen=True)
class Coherence(Attack):
    """Take of each word's bucket the one that people combine most often with the others.

    Words are disguised one by one, and the decoys of one have nothing to do with those of another.

    Examples
    --------
    >>> together = {("heart", "failure"): 9.0}
    >>> search = [{"chess", "heart"}, {"failure", "lemon"}]
    >>> Coherence().run([search], together, [("heart", "failure")]).succeeded
    True
    """

    name: ClassVar[str] = "coherence"
    reference: ClassVar[str] = (
        "Balsa, Troncoso and Diaz (2012), OB-PWS: Obfuscation-based private web search, S&P"
    )
    attacks: ClassVar[Attacked] = "view"

    cap: float = parameter(0.2, help="share of searches that may be named right", above=0, below=1)

    def run(
        self,
        searches: Sequence[Sequence[Collection[str]]],
        together: Mapping[tuple[str, ...], float],
        truths: Sequence[tuple[str, ...]],
    ) -> AttackReport:
        """Conclude the words of each search.

        Parameters
        ----------
        searches
            For each search the buckets that were sent, one for each word or one of whole phrases.
        together
            How often people search for words together.
        truths
            What was searched for; only says how often the attack is right.
        """
        right = float(
            np.mean(
                [
                    self._named(buckets, together) == truth
                    for buckets, truth in zip(searches, truths, strict=True)
                ]
            )
        )
        return AttackReport(self.name, len(searches), 0, right, right, right > self.cap)

    def _named(
        self, buckets: Sequence[Collection[str]], together: Mapping[tuple[str, ...], float]
    ) -> tuple[str, ...]:
        candidates = itertools.product(*(sorted(bucket) for bucket in buckets))
        return max(candidates, key=lambda words: together.get(words, 0.0))

    def control(self) -> AttackReport:
        """Attack pairs of words whose decoys are drawn for each word by itself."""
        drawn = np.random.default_rng(1)
        pairs: dict[tuple[str, ...], float] = {
            (f"a{n}", f"b{drawn.integers(500)}"): 1.0 / (n + 1) for n in range(500)
        }
        truths = [list(pairs)[place] for place in drawn.integers(0, 500, 200)]
        searches = [
            [{word, *(f"{word[0]}{n}" for n in drawn.integers(0, 500, 7))} for word in truth]
            for truth in truths
        ]
        return self.run(searches, pairs, truths)
