"""How often people search for a term."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

import numpy as np

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.registry import parameter

__all__ = ["Prior"]


@dataclasses.dataclass(frozen=True)
class Prior(Attack):
    """Name in every disguised search the term that people search for most often.

    Decoys drawn evenly from a dictionary are rare words, so the real term stands out.

    Examples
    --------
    >>> Prior().run([{"flu", "gout"}, {"flu", "acne"}], {"flu": 9.0}, ["flu", "flu"]).succeeded
    True
    """

    name: ClassVar[str] = "prior"
    reference: ClassVar[str] = (
        "Domingo-Ferrer, Solanas and Castellà-Roca (2009), h(k)-private information retrieval"
    )
    attacks: ClassVar[Attacked] = "view"

    cap: float = parameter(0.2, help="share of searches that may be named right", above=0, below=1)

    def run(
        self,
        searches: Sequence[Collection[str]],
        frequencies: Mapping[str, float],
        truths: Sequence[str],
    ) -> AttackReport:
        """Conclude the term of each search; it succeeds if more than the cap are right."""
        # In alphabetical order, so that ties are decided by nothing that the user did.
        named = [
            max(sorted(terms), key=lambda term: frequencies.get(term, 0)) for terms in searches
        ]
        right = float(np.mean([one == truth for one, truth in zip(named, truths, strict=True)]))
        return AttackReport(self.name, len(searches), 0, right, right, right > self.cap)

    def control(self) -> AttackReport:
        """Attack seven decoys drawn evenly from a vocabulary whose terms differ in frequency."""
        drawn = np.random.default_rng(1)
        weights = 1.0 / np.arange(1, 20_001)
        terms = drawn.choice(20_000, 300, p=weights / weights.sum())
        searches = [{str(one), *map(str, drawn.integers(0, 20_000, 7))} for one in terms]
        known = {str(place): float(weight) for place, weight in enumerate(weights)}
        return self.run(searches, known, [str(one) for one in terms])
