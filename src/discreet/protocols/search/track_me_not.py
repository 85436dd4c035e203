"""Fake searches beside the real ones."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.protocols.search._base import Disguise, DisguiseRisk, Prepared, Vocabulary, entropy
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["TrackMeNot"]

_SEARCHES = 1500
#: A user cares about this many topics; terms are spread evenly over so many.
_OWN, _TOPICS = 3, 40
#: Seconds over which made searches are spread, and from a real one where they stay close to it.
_HOUR, _NEAR = 3600.0, 60.0


@dataclasses.dataclass(frozen=True)
class _Cover(Prepared):
    """Made searches that follow a real one at random times."""

    vocabulary: Vocabulary
    rate: float
    bursts: bool

    def searches(self, term: str, rng: Randomness) -> list[tuple[str, ...]]:
        """Return the real search: it goes out alone, when the reader asks."""
        return [(term,)]

    def later(self, rng: Randomness) -> list[tuple[float, tuple[str, ...]]]:
        """Return made searches over the next hour, or close to the real one."""
        many = max(1, round(self.rate))
        delays = rng.exponential(many, _NEAR) if self.bursts else rng.uniform(many, 0.0, _HOUR)
        made = self.vocabulary.draw(many, rng)
        return [
            (float(delay), (self.vocabulary.terms[place],))
            for delay, place in zip(delays, made, strict=True)
        ]


@dataclasses.dataclass(frozen=True)
class TrackMeNot(Disguise):
    """Send made-up searches at random times; measured here, it hides little.

    A classifier that looks at gaps between searches, at how often a topic returns and at how rare a
    term is tells real from made searches almost always. Shipped as a baseline, never chosen by
    itself.

    Examples
    --------
    >>> from discreet.protocols.search import Vocabulary
    >>> from discreet.randomness import Randomness
    >>> risk = TrackMeNot().evaluate(Vocabulary.zipf(2000), rng=Randomness.seeded(1))
    >>> risk.auc > 0.9
    True
    """

    name: ClassVar[str] = "track-me-not"
    reference: ClassVar[str] = (
        "Howe and Nissenbaum (2009), TrackMeNot, in Lessons from the identity trail"
    )
    caution: ClassVar[str] = (
        "It fails: made searches are told from real ones by their times, topics and words."
    )

    rate: float = parameter(3.0, help="made searches for each real one", above=0, high=100)
    bursts: bool = parameter(False, help="send made searches close to real ones")

    def prepare(self, vocabulary: Vocabulary) -> _Cover:
        """Return what sends made searches around real ones."""
        return _Cover(vocabulary, self.rate, self.bursts)

    def evaluate(self, vocabulary: Vocabulary, *, rng: Randomness) -> DisguiseRisk:
        """Train a classifier on half of a simulated history and measure it on the other half."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import roc_auc_score

        features, is_real, topics = self._history(vocabulary, rng)
        half = len(features) // 2
        model = LogisticRegression(max_iter=1000).fit(features[:half], is_real[:half])
        scores = model.predict_proba(features[half:])[:, 1]
        auc = float(roc_auc_score(is_real[half:], scores))
        guessed = (scores > 0.5) == is_real[half:]
        seen = np.bincount(topics, minlength=_TOPICS).astype(float)
        return DisguiseRisk(
            disguise=self.name,
            right=round(float(guessed.mean()), 4),
            worst=round(float(scores.max()), 4),
            entropy=round(entropy(seen), 3),
            repeated=round(float(guessed.mean()), 4),
            auc=round(auc, 4),
            overhead=self.rate + 1,
            caution=self.caution,
        )

    def _history(
        self, vocabulary: Vocabulary, rng: Randomness
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Return features, truth and topics of a history in the order of time."""
        fakes = int(_SEARCHES * self.rate)
        # Real searches come in sessions about a few topics; made ones from a feed of everything.
        sessions = np.cumsum(rng.exponential(_SEARCHES // 5, 3600.0))
        real_times = np.repeat(sessions, 5) + np.tile(np.arange(5), len(sessions)) * 40.0
        real_times += rng.exponential(len(real_times), 10.0)
        real_topics = rng.integers(0, _OWN, len(real_times))
        real_terms = np.array(vocabulary.draw(len(real_times), rng))
        if self.bursts:
            near = real_times[rng.integers(0, len(real_times), fakes)]
            fake_times = near + rng.exponential(fakes, _NEAR)
        else:
            fake_times = rng.uniform(fakes, 0.0, float(real_times.max()))
        fake_topics = rng.integers(0, _TOPICS, fakes)
        fake_terms = rng.integers(
            0, len(vocabulary.terms), fakes
        )  # headlines are full of rare words
        times = np.concatenate([real_times, fake_times])
        order = np.argsort(times)
        topics = np.concatenate([real_topics, fake_topics])[order]
        rarity = -np.log2(vocabulary.weights[np.concatenate([real_terms, fake_terms])[order]])
        gaps = np.diff(times[order], prepend=times[order][0])
        share = np.bincount(topics, minlength=_TOPICS)[topics] / len(topics)
        features = np.stack([np.log1p(gaps), share * 10, rarity], axis=1)
        is_real = (np.arange(len(times)) < len(real_times))[order]
        return features, is_real, topics
