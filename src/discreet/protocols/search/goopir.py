"""Searching for a fixed bucket of terms."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.protocols.search._base import Disguise, DisguiseRisk, Prepared, Vocabulary, entropy
from discreet.protocols.search.backends import any_of
from discreet.protocols.search.kept_buckets import KeptBuckets
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["Buckets", "Goopir"]


@dataclasses.dataclass(frozen=True)
class Buckets(Prepared):
    """A fixed partition of a vocabulary; a term is always searched for with the same others."""

    vocabulary: Vocabulary
    #: For each place of the vocabulary the number of its bucket.
    numbers: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]

    def disguise(self, term: str) -> tuple[str, ...]:
        """Return the terms to search for in place of one, in alphabetical order."""
        place = self.vocabulary.place_of(term)
        if place is None:
            raise InputError(
                "the term is not in the vocabulary, and alone it would stand out",
                code="term-unknown",
                hint="add it to the vocabulary with a count, or do not search for it this way",
            )
        return tuple(sorted(self.vocabulary.terms[n] for n in self.members[self.numbers[place]]))

    def inside(self, number: int) -> npt.NDArray[np.float64]:
        """Return the probabilities of what an engine can tell apart in a bucket."""
        places = list(self.members[number])
        summed = np.bincount(self.vocabulary.forms[places], self.vocabulary.weights[places])
        return summed[summed > 0].astype(np.float64)

    def searches(self, term: str, rng: Randomness) -> list[tuple[str, ...]]:
        """Return the one search to send: the whole bucket."""
        del rng  # fixed: fresh decoys would be singled out by repeating
        return [self.disguise(term)]

    def query(self, term: str) -> str:
        """Return the search as text: quoted terms joined by OR."""
        return any_of(self.disguise(term))


@dataclasses.dataclass(frozen=True)
class Goopir(Disguise):
    """Search for a whole bucket of similarly frequent terms, always the same, and filter at home.

    Buckets are grown until nobody who knows how often terms are searched for can name the term with
    a probability above the cap. They are fixed: fresh decoys would be singled out by repeating.

    Examples
    --------
    >>> from discreet.protocols.search import Vocabulary
    >>> words = Vocabulary.of({"flu": 9, "gout": 9, "lupus": 5, "cough": 5, "mumps": 1, "acne": 1})
    >>> Goopir(cap=0.5, k=2).prepare(words).query("gout")
    '"flu" OR "gout"'
    """

    name: ClassVar[str] = "goopir"
    reference: ClassVar[str] = (
        "Domingo-Ferrer, Solanas and Castellà-Roca (2009), h(k)-private information retrieval"
    )
    caution: ClassVar[str] = (
        "Several words of one search fit together better than their decoys do: disguise phrases whole."
    )

    cap: float = parameter(
        0.2, help="highest probability with which the term may be named", above=0, below=1
    )

    k: int = parameter(8, help="terms of a bucket at least", low=2)

    def prepare(self, vocabulary: Vocabulary, kept: Sequence[Sequence[str]] = ()) -> Buckets:
        """Return the partition of a vocabulary, which holds buckets that are `kept` whole."""
        # Spellings that an engine cannot tell apart hide nothing from it: they count as one.
        weights = np.bincount(vocabulary.forms, vocabulary.weights).astype(np.float64)
        order = np.argsort(-weights, kind="stable").tolist()
        most = float(weights[order[0]])
        if most > self.cap:
            raise InputError(
                f"the most frequent term is searched for in {most:.0%} of all searches, more "
                f"than the cap of {self.cap:.0%}: no bucket hides it",
                code="cap-too-low",
                hint="raise the cap, or give a larger vocabulary",
            )
        before = [
            sorted({int(vocabulary.forms[vocabulary.places[term]]) for term in bucket})
            for bucket in kept
        ]
        placed = {form for bucket in before for form in bucket}
        members: list[list[int]] = []
        current: list[int] = []
        total = 0.0
        for form in order:
            if form in placed:
                continue
            current.append(form)
            total += weights[form]
            # The first term of a bucket is its most frequent one.
            if self._hides(len(current), weights[current[0]], total):
                members.append(current)
                current, total = [], 0.0
        members = self._grown([*before, *members], current, weights)
        if not members:
            raise InputError(
                f"{len(weights)} terms that an engine can tell apart are too few for one bucket",
                code="cap-too-low",
                hint="raise the cap, lower k, or give a larger vocabulary",
            )
        spellings: list[list[int]] = [[] for _ in order]
        for place, form in enumerate(vocabulary.forms.tolist()):
            spellings[form].append(place)
        numbers = np.empty(len(vocabulary.terms), np.int64)
        places = [[place for form in bucket for place in spellings[form]] for bucket in members]
        for number, bucket in enumerate(places):
            numbers[bucket] = number
        return Buckets(vocabulary, tuple(numbers.tolist()), tuple(map(tuple, places)))

    def resume(self, vocabulary: Vocabulary, file: str | Path) -> Buckets:
        """Return the partition of a vocabulary; buckets that the file keeps may only grow."""
        kept = KeptBuckets(Path(file))
        words = kept.completed(vocabulary)
        made = self.prepare(words, kept.read())
        kept.write([sorted(words.terms[place] for place in bucket) for bucket in made.members])
        return made

    def _hides(self, size: int, most: float, total: float) -> bool:
        """Whether a bucket with so frequent a term hides it."""
        return size >= self.k and most <= self.cap * total * (1 + 1e-12)

    def _grown(
        self, buckets: list[list[int]], left: list[int], weights: npt.NDArray[np.float64]
    ) -> list[list[int]]:
        """Return buckets that all hide their terms: those that do not are joined with the next.

        Terms that are `left` join a bucket with a more frequent one. Buckets may grow: what two
        searches for a term have in common is then the smaller one, which hid it.
        """
        by_weight = sorted(buckets, key=lambda one: -float(weights[one].max()))
        if left:
            above = sum(float(weights[one].max()) >= weights[left[0]] for one in by_weight)
            if above:
                by_weight[above - 1] = [*by_weight[above - 1], *left]
            else:
                by_weight.insert(0, left)
        found: list[list[int]] = []
        current: list[int] = []
        for bucket in by_weight:
            current = [*current, *bucket]
            inside = weights[current]
            if self._hides(len(current), float(inside.max()), float(inside.sum())):
                found.append(current)
                current = []
        if current and found:
            found[-1] = [*found[-1], *current]
        return found

    def evaluate(self, vocabulary: Vocabulary, *, rng: Randomness) -> DisguiseRisk:
        """Return the exact posterior under the vocabulary's own frequencies."""
        buckets = self.prepare(vocabulary)
        inside = [buckets.inside(number) for number in range(len(buckets.members))]
        sizes = [len(bucket) for bucket in buckets.members]
        right = float(sum(bucket.max() for bucket in inside))
        return DisguiseRisk(
            disguise=self.name,
            right=round(right, 4),
            worst=round(max(float(bucket.max() / bucket.sum()) for bucket in inside), 4),
            entropy=round(float(sum(bucket.sum() * entropy(bucket) for bucket in inside)), 3),
            repeated=round(right, 4),  # the same bucket every time: nothing to intersect
            auc=None,
            overhead=round(
                float(sum(bucket.sum() * n for bucket, n in zip(inside, sizes, strict=True))), 1
            ),
            caution=self.caution,
        )
