"""Searches that peers submit for each other."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from discreet.protocols.search._base import Disguise, DisguiseRisk, Vocabulary, entropy
from discreet.protocols.search.backends import Backend
from discreet.protocols.search.member import MemberEntry
from discreet.protocols.search.peering import PeerMember
from discreet.protocols.transport import Identity
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["Peers", "projective_plane"]

_AUTHORS, _LINKED = 300, 300


def projective_plane(order: int) -> tuple[tuple[int, ...], ...]:
    """Return the lines of the projective plane of a prime order, as points on them.

    There are order² + order + 1 points and as many lines; every line has order + 1 points, and any
    two points are on exactly one line.

    >>> projective_plane(2)[0]
    (1, 3, 5)
    """
    values = range(order)
    # Points and lines are vectors up to a factor; the first coordinate that is not zero is one.
    vectors = [(1, y, z) for y in values for z in values]
    vectors += [(0, 1, z) for z in values]
    vectors += [(0, 0, 1)]
    vectors.sort()
    return tuple(
        tuple(
            n
            for n, point in enumerate(vectors)
            if sum(a * b for a, b in zip(line, point, strict=True)) % order == 0
        )
        for line in vectors
    )


@dataclasses.dataclass(frozen=True)
class Peers(Disguise):
    """Post a search into a memory space shared with peers; the next of them to read submits it.

    Users and spaces are points and lines of a projective plane: any two users share one space, so
    everybody's searches are submitted by everybody else alike. Each user also submits an own
    search with the probability of one user, for whoever never did would be named by absence.

    Examples
    --------
    >>> peers = Peers(order=2)
    >>> peers.users, len(peers.spaces[0])
    (7, 3)
    """

    name: ClassVar[str] = "peers"
    reference: ClassVar[str] = (
        "Domingo-Ferrer, Bras-Amorós, Wu and Manjón (2009), User-private information retrieval"
    )
    caution: ClassVar[str] = (
        "Peers who read two linked searches in different spaces know the author: one space per topic. "
        "A keeper of a space and a reader of it, together, know the author."
    )

    order: int = parameter(3, help="order of the projective plane", choices=[2, 3, 5, 7])
    submits_own: bool = parameter(
        True, help="submit one's own searches as often as those of any other"
    )

    rhythm: float = parameter(
        1.0, help="seconds between two readings of a space, on average", low=0.01, high=3600
    )

    @property
    def users(self) -> int:
        """How many take part."""
        return self.order**2 + self.order + 1

    @property
    def spaces(self) -> tuple[tuple[int, ...], ...]:
        """The users of each space."""
        return projective_plane(self.order)

    def join(
        self,
        name: str,
        members: Mapping[str, MemberEntry],
        backend: Backend,
        *,
        identity: Identity,
    ) -> PeerMember:
        """Return a peer at work; the members are the points of the plane, in their order."""
        return PeerMember(
            name,
            members,
            backend,
            identity=identity,
            spaces=self.spaces,
            submits_own=1 / self.users if self.submits_own else 0.0,
            rhythm=self.rhythm,
        )

    def submitters(self, author: int, size: int, rng: Randomness) -> list[int]:
        """Return who submits each of some searches of an author."""
        mine = [space for space in self.spaces if author in space]
        chosen = rng.integers(0, len(mine), size)
        readers = rng.integers(0, self.order, size)
        own = rng.bernoulli(1 / self.users, size) if self.submits_own else np.zeros(size, bool)
        found = []
        for space, reader, is_own in zip(chosen, readers, own, strict=True):
            others = [user for user in mine[space] if user != author]
            found.append(author if is_own else others[reader])
        return found

    def named(self, author: int, linked: int, rng: Randomness) -> int:
        """Return whom the engine names for linked searches: who submitted the fewest of them."""
        counts = np.bincount(self.submitters(author, linked, rng), minlength=self.users)
        least = np.flatnonzero(counts == counts.min())
        return int(least[rng.integers(0, len(least), 1)[0]])

    def evaluate(self, vocabulary: Vocabulary, *, rng: Randomness) -> DisguiseRisk:
        """Simulate authors with linked searches and let the engine name them by absence."""
        authors = rng.integers(0, self.users, _AUTHORS).tolist()
        hits = [self.named(author, _LINKED, rng) == author for author in authors]
        submitted = np.bincount(
            list(itertools.chain.from_iterable(self.submitters(a, 20, rng) for a in [0] * 200)),
            minlength=self.users,
        ).astype(float)
        return DisguiseRisk(
            disguise=self.name,
            right=round(float(submitted.max() / submitted.sum()), 4),
            worst=round(1 / self.order, 4),  # a peer who reads knows the author up to the others
            entropy=round(entropy(submitted), 3),
            repeated=round(float(np.mean(hits)), 4),
            auc=None,
            overhead=2.0,
            caution=self.caution,
        )
