"""Searches that wander through a crowd."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from discreet.errors import InputError
from discreet.protocols.search._base import Disguise, DisguiseRisk, Vocabulary, entropy
from discreet.protocols.search.backends import Backend
from discreet.protocols.search.crowd import CrowdMember
from discreet.protocols.search.member import MemberEntry
from discreet.protocols.transport import Identity
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["Crowds"]

_PATHS = 6_000


@dataclasses.dataclass(frozen=True)
class Crowds(Disguise):
    """Forward a search to random members of a crowd, who forward it with a probability, or send it.

    The engine sees a random member. A member who works for the attacker sees whoever forwarded the
    search to it, who is the author with probability 1 − pf·(n − c − 1)/n. Probable innocence holds
    where n ≥ pf/(pf − ½)·(c + 1).

    Examples
    --------
    >>> crowd = Crowds(members=20, colluding=3)
    >>> crowd.posterior, crowd.is_probably_innocent
    (0.4, True)
    """

    name: ClassVar[str] = "crowds"
    reference: ClassVar[str] = "Reiter and Rubin (1998), Crowds, ACM TISSEC 1"
    caution: ClassVar[str] = (
        "Paths that are formed again for the same author name the author: keep one path per session."
    )

    pf: float = parameter(0.75, help="probability of forwarding once more", low=0.5, below=1)
    members: int = parameter(20, help="members of the crowd", low=3)
    colluding: int = parameter(3, help="members that work for the attacker", low=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.colluding > self.members - 2:
            raise InputError(
                f"{self.colluding} of {self.members} members collude: no two honest ones are left",
                code="crowd-too-small",
                hint="at least two members must be honest",
            )

    @property
    def posterior(self) -> float:
        """Probability that the first colluding member on a path got it from the author."""
        return round(1 - self.pf * (self.members - self.colluding - 1) / self.members, 12)

    @property
    def is_probably_innocent(self) -> bool:
        """Whether whoever forwards is more likely not the author than the author."""
        return self.posterior <= 0.5

    def path(self, author: int, rng: Randomness) -> list[int]:
        """Return the members that a search passes, the author first; the last one sends it."""
        path = [author, int(rng.integers(0, self.members, 1)[0])]
        while rng.bernoulli(self.pf, 1)[0]:
            path.append(int(rng.integers(0, self.members, 1)[0]))
        return path

    def seen(self, path: Sequence[int]) -> int | None:
        """Return who forwarded to the first colluding member of a path; the last numbers collude."""
        first = self.members - self.colluding
        for before, member in itertools.pairwise(path):
            if member >= first:
                return before
        return None

    def join(
        self,
        name: str,
        members: Mapping[str, MemberEntry],
        backend: Backend,
        *,
        identity: Identity,
    ) -> CrowdMember:
        """Return a member of the crowd at work."""
        return CrowdMember(name, members, backend, identity=identity, pf=self.pf)

    def evaluate(self, vocabulary: Vocabulary, *, rng: Randomness) -> DisguiseRisk:
        """Simulate paths of one author and count how often the predecessor is the author."""
        paths = [self.path(0, rng) for _ in range(_PATHS)]
        found = [one for one in map(self.seen, paths) if one is not None]
        counts = np.bincount(found, minlength=self.members).astype(float)
        right = counts[0] / max(len(found), 1)
        # Paths formed again: the member seen most often in a hundred of them.
        groups = [found[n : n + 100] for n in range(0, len(found) - 99, 100)]
        again = [int(np.bincount(group).argmax() == 0) for group in groups]
        return DisguiseRisk(
            disguise=self.name,
            right=round(float(right), 4),
            worst=self.posterior if self.colluding else round(1 / self.members, 4),
            entropy=round(entropy(counts) if found else float(np.log2(self.members)), 3),
            repeated=round(float(np.mean(again)) if again else 0.0, 4),
            auc=None,
            overhead=round(sum(map(len, paths)) / len(paths), 2),
            caution=self.caution,
        )
