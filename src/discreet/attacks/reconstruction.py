"""The reconstruction attack: records solved for from published margins."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from discreet.attacks._tables import Counts, Rates, TableAttack, identity
from discreet.dp.hierarchical.nonnegative import fill_margins
from discreet.dp.hierarchical.rounding import round_blocks
from discreet.randomness import Randomness

__all__ = ["Reconstructed", "Reconstruction", "segregated_people"]


@dataclasses.dataclass(frozen=True)
class Reconstructed(Rates):
    """What was reconstructed; `asked` is the number of unique people in the records."""

    #: Number of unique people left out.
    control: int = 0

    @property
    def standard_error(self) -> float:
        """Standard error of the difference between the people in the records and those left out."""
        inside = self.found * (1 - self.found) / max(self.asked, 1)
        return math.sqrt(inside + self.blind * (1 - self.blind) / max(self.control, 1))


@dataclasses.dataclass(frozen=True)
class Reconstruction(TableAttack):
    """Solve for the records behind two margins of every place: who lives there, and of which group.

    A person is found if a record like theirs is among the reconstructed ones. People left out of the
    records by lot are looked for as well: what is found of them is guessing.

    Examples
    --------
    >>> report = Reconstruction().control()
    >>> report.found > 0.5 > report.blind
    True
    """

    name: ClassVar[str] = "reconstruction"
    reference: ClassVar[str] = (
        "Garfinkel, Abowd and Martindale (2019), Understanding database reconstruction attacks"
    )

    def run(
        self, publish: Callable[[Counts], Any], people: Counts, left_out: Counts, *, rows: int
    ) -> Reconstructed:
        """Attack a way to publish counts.

        Parameters
        ----------
        publish
            What is attacked: counts (places, cells) in, published counts of that shape out, of
            which the attacker sees two margins. Any: numbers.
        people, left_out
            Counts of the records, and of people left out of them by lot: (places, cells). Those who
            are alone in their cell of both together are looked for.
        rows
            Cells are rows × groups: the first margin has the rows, the second the groups.
        """
        published = np.maximum(np.asarray(publish(people), dtype=np.float64), 0.0)
        cube = published.reshape(len(people), rows, -1)
        found = self._solved(cube.sum(axis=2), cube.sum(axis=1)).reshape(len(people), -1) >= 1
        # Both groups are alone in their cell of the population, and lot alone says who was left out.
        alone = people + left_out == 1
        inside, outside = alone & (people == 1), alone & (left_out == 1)
        share = float(found[inside].mean()) if inside.any() else 0.0
        blind = float(found[outside].mean()) if outside.any() else 0.0
        done = share - blind > (1 - blind) / 3
        asked = int(inside.sum())
        return Reconstructed(
            self.name, asked, 0, share, share, done, share, blind, int(outside.sum())
        )

    def _solved(self, first: Any, second: Any) -> Any:
        """Return whole tables with two margins, place by place. Any: arrays of numbers."""
        places, rows = first.shape
        groups = second.shape[1]
        sums, totals = np.round(first).reshape(-1), np.round(second)
        # Noisy margins of one place need not agree: the groups are scaled to the people.
        whole = np.round(first).sum(axis=1)
        share = np.where(totals.sum(axis=1) > 0, whole / np.maximum(totals.sum(axis=1), 1), 0.0)
        scaled = totals * share[:, None]
        lacking = whole - np.floor(scaled).sum(axis=1)
        totals = np.floor(scaled)
        totals[np.arange(places), scaled.argmax(axis=1)] += lacking
        starts = np.arange(places + 1) * rows
        begin = np.repeat(totals / np.maximum(whole, 1)[:, None], rows, axis=0) * sums[:, None]
        exact = fill_margins(begin, starts, totals, sums)
        lots = Randomness.secure().uniform(exact.size)
        return round_blocks(exact, starts, lots).reshape(places, rows * groups)

    def control(self) -> Reconstructed:
        """Attack exact margins of small places."""
        people, left_out = segregated_people(1)
        return self.run(identity, people, left_out, rows=16)


def segregated_people(seed: int, places: int = 400) -> tuple[Counts, Counts]:
    """Draw people in small places by 16 kinds and 4 groups, and leave out half of each place by lot.

    Were those left out drawn by themselves, they would not live in the same places: unique people
    live in places that happen to have many records, where guesses are right more often.

    >>> people, left_out = segregated_people(1)
    >>> people.shape == left_out.shape == (400, 64)
    True
    >>> bool((people.sum(axis=1) == left_out.sum(axis=1)).all())
    True
    """
    rng = np.random.default_rng(seed)
    main = rng.integers(0, 4, places)
    kinds = rng.dirichlet(np.full(16, 2.0))
    people, left_out = np.zeros((2, places, 64), dtype=np.int64)
    for place in range(places):
        half = int(rng.poisson(8))
        group = np.where(rng.random(2 * half) < 0.92, main[place], rng.integers(0, 4, 2 * half))
        cell = rng.permutation(rng.choice(16, 2 * half, p=kinds) * 4 + group)
        np.add.at(people[place], cell[:half], 1)
        np.add.at(left_out[place], cell[half:], 1)
    return people, left_out
