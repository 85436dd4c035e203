"""What a disguise is: it changes what a search engine sees, and says what the engine still learns."""

from __future__ import annotations

import abc
import dataclasses
import functools
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.protocols.search.backends import Backend
from discreet.protocols.search.member import MemberEntry, SearchMember
from discreet.protocols.search.terms import require_text
from discreet.protocols.transport import Identity
from discreet.randomness import Randomness
from discreet.registry import Member, members
from discreet.report import Report, Rows

__all__ = [
    "Disguise",
    "DisguiseRisk",
    "Prepared",
    "SearchRisk",
    "Vocabulary",
    "entropy",
    "folded",
    "search_risk",
]


def folded(term: str) -> str:
    """Return a term as search engines see it: without case, accents and punctuation.

    >>> folded("Crème-brûlée"), folded("  HIV  test")
    ('creme brulee', 'hiv test')
    """
    bare = [
        c for c in unicodedata.normalize("NFKD", term.casefold()) if not unicodedata.combining(c)
    ]
    words = "".join(c if c.isalnum() else " " for c in bare).split()
    return " ".join(words) or term


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Terms and how often people search for them, most frequent first: what an attacker knows too.

    Examples
    --------
    >>> words = Vocabulary.of({"flu": 60, "gout": 30, "lupus": 10})
    >>> words.terms[0], float(words.weights[0])
    ('flu', 0.6)
    >>> Vocabulary.zipf(3).terms
    ('term0', 'term1', 'term2')
    """

    terms: tuple[str, ...]
    weights: npt.NDArray[np.float64]

    @classmethod
    def of(cls, counts: Mapping[str, float]) -> Vocabulary:
        """Return a vocabulary from counts."""
        if not counts or any(not 0 < count < np.inf for count in counts.values()):
            raise InputError(
                "a vocabulary needs terms, each with a count above zero",
                code="vocabulary-counts",
                hint="leave out terms that nobody searches for",
            )
        for term in counts:
            require_text(term)
        order = sorted(counts, key=lambda term: (-counts[term], term))
        weights = np.array([counts[term] for term in order], float)
        return cls(tuple(order), weights / weights.sum())

    @classmethod
    def zipf(cls, size: int) -> Vocabulary:
        """Return a vocabulary in which the n-th term is searched for 1/n as often as the first."""
        weights = 1.0 / np.arange(1, size + 1)
        return cls(tuple(f"term{n}" for n in range(size)), weights / weights.sum())

    @functools.cached_property
    def places(self) -> dict[str, int]:
        """Where each term stands."""
        return {term: place for place, term in enumerate(self.terms)}

    @functools.cached_property
    def forms(self) -> npt.NDArray[np.int64]:
        """For each term a number that it shares with those an engine cannot tell from it."""
        found: dict[str, int] = {}
        return np.array([found.setdefault(folded(term), len(found)) for term in self.terms])

    def place_of(self, term: str) -> int | None:
        """Return where a term stands, or one that an engine cannot tell from it.

        >>> Vocabulary.of({"flu": 2, "gout": 1}).place_of(" Gout")
        1
        """
        if term in self.places:
            return self.places[term]
        return self._folded_places.get(folded(term))

    @functools.cached_property
    def _folded_places(self) -> dict[str, int]:
        return {folded(term): place for place, term in reversed(list(enumerate(self.terms)))}

    def draw(self, size: int, rng: Randomness) -> list[int]:
        """Return places of terms as people would search for them."""
        ends = np.cumsum(self.weights)
        drawn = np.searchsorted(ends, rng.uniform(size) * ends[-1])
        return np.minimum(drawn, len(self.terms) - 1).tolist()  # type: ignore[no-any-return]  # integers


@dataclasses.dataclass(frozen=True)
class DisguiseRisk(Report):
    """What somebody who sees the disguised searches concludes."""

    disguise: str
    #: How often the attacker is right about the term or the author, and without any disguise.
    right: float
    worst: float
    #: Bits that are left open, on average.
    entropy: float
    #: How often the attacker is right after the same search was repeated.
    repeated: float
    #: How well real searches are told from made ones; 0.5 is chance.
    auc: float | None
    #: Terms or messages sent for each real search.
    overhead: float
    caution: str


@dataclasses.dataclass(frozen=True)
class SearchRisk(Report):
    """Disguises side by side."""

    disguises: tuple[DisguiseRisk, ...]

    def rows(self) -> Rows:
        """Return one line for each disguise."""
        names = ["disguise", "right", "worst", "entropy", "repeated", "auc", "overhead", "caution"]
        return names, [[getattr(one, name) for name in names] for one in self.disguises]


class Prepared(Protocol):
    """A disguise for one vocabulary."""

    def searches(self, term: str, rng: Randomness) -> list[tuple[str, ...]]:
        """Return what to send in place of one term: searches for any of some terms, in order."""

    def later(self, rng: Randomness) -> list[tuple[float, tuple[str, ...]]]:
        """Return searches that follow one by themselves: each after how many seconds, and what."""
        return []


@dataclasses.dataclass(frozen=True)
class Disguise(Member):
    """Make searches look like those of others, or look like others' searches."""

    #: What it does not hide, in one sentence.
    caution: ClassVar[str] = ""

    def prepare(self, vocabulary: Vocabulary) -> Prepared:
        """Return what disguises single searches; only where no others have to take part."""
        raise InputError(
            f"{self.name} hides whose a search is among members, not what is searched for",
            code="needs-members",
            hint="use goopir before a search engine",
        )

    def resume(self, vocabulary: Vocabulary, file: str | Path) -> Prepared:
        """Return the same, as it was before the vocabulary changed, if the disguise keeps it in a file."""
        del file
        return self.prepare(vocabulary)

    def join(
        self,
        name: str,
        members: Mapping[str, MemberEntry],
        backend: Backend,
        *,
        identity: Identity,
    ) -> SearchMember:
        """Return a member at work; only where others have to take part."""
        raise InputError(
            f"{self.name} hides what is searched for, and needs no members",
            code="needs-no-members",
            hint="write `disguise: crowds` or `disguise: peers`, or run: discreet search proxy",
        )

    @abc.abstractmethod
    def evaluate(self, vocabulary: Vocabulary, *, rng: Randomness) -> DisguiseRisk:
        """Measure what an attacker who knows the vocabulary learns."""


def search_risk(
    vocabulary: Vocabulary | None = None, *, rng: Randomness | None = None
) -> SearchRisk:
    """Measure every disguise with its usual parameters.

    Examples
    --------
    >>> from discreet.randomness import Randomness
    >>> report = search_risk(Vocabulary.zipf(500), rng=Randomness.seeded(1))
    >>> [one.disguise for one in report.disguises]
    ['crowds', 'goopir', 'peers', 'track-me-not']
    """
    words = vocabulary or Vocabulary.zipf(20_000)
    source = rng or Randomness.secure()
    found: Sequence[type[Disguise]] = list(members("disguise").values())  # type: ignore[arg-type]  # of that family
    return SearchRisk(tuple(disguise().evaluate(words, rng=source) for disguise in found))


def entropy(weights: npt.NDArray[np.float64]) -> float:
    """Return the entropy in bits of weights that need not add up to one.

    >>> entropy(np.array([1.0, 1.0, 0.0]))
    1.0
    """
    shares = weights[weights > 0] / weights.sum()
    return float(-(shares * np.log2(shares)).sum())
