"""t-closeness with three distances between values."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from discreet.errors import InputError
from discreet.microdata.classes import Domain, Integers, Numbers
from discreet.microdata.models._base import Group, most_within
from discreet.microdata.models._confidential import DistributionModel
from discreet.registry import parameter


@dataclasses.dataclass(frozen=True)
class TCloseness(DistributionModel):
    """In every class the confidential column is distributed as in the whole file, up to t.

    The earth mover's distance between the class and the file before suppression. *equal*: all
    values are equally far apart (½ Σ|p−q|); *ordered*: as far as their ranks (numbers by size,
    others in the order of their hierarchy's leaves, else of the alphabet); *hierarchical*: as far
    as the height of their lowest common ancestor. A missing value is a value of its own, the last
    one in the order.

    Examples
    --------
    >>> model = TCloseness("illness", 0.2)
    >>> domain = Domain("illness", ("asthma", "flu"), np.array([0.4, 0.6]))
    >>> model.gap(np.array([[0.5, 0.5], [0.0, 1.0]]), domain)
    array([0.1, 0.4])
    """

    name: ClassVar[str] = "t-closeness"
    reference: ClassVar[str] = (
        "Li, Li and Venkatasubramanian: t-closeness: privacy beyond k-anonymity and l-diversity, "
        "ICDE 2007"
    )

    t: float = parameter(0.2, help="largest distance from the file", low=0, high=1)
    distance: str = parameter(
        "equal", help="distance between values", choices=("equal", "ordered", "hierarchical")
    )

    @property
    def limit(self) -> float:
        """The largest distance allowed."""
        return self.t

    @property
    def promise(self) -> str:
        """The promise in words."""
        return (
            f"in every class {self.column} is within {self.t:g} of the file "
            f"({self.distance} distance)"
        )

    def check_domain(self, domain: Domain) -> None:
        """Raise an InputError if the hierarchical distance has no hierarchy."""
        if self.distance == "hierarchical":
            if domain.hierarchy is None:
                raise InputError(
                    f"column {self.column!r} has no hierarchy, which the hierarchical distance needs",
                    code="missing-hierarchy",
                    hint="read the data with hierarchies={…} or choose another distance",
                    column=self.column,
                )
            leaves = set(domain.hierarchy.leaves)
            domain.hierarchy.require_covers(
                [value for value in domain.values if value not in leaves], column=self.column
            )

    def gap(self, shares: Numbers, domain: Domain) -> Numbers:
        """Return the earth mover's distance of each row from the file."""
        difference = shares - domain.shares
        if self.distance == "equal" or len(domain) < 2:
            return np.asarray(np.abs(difference).sum(axis=1) / 2)
        if self.distance == "ordered":
            ordered = difference[:, _order(domain)]
            moved = np.abs(np.cumsum(ordered, axis=1)[:, :-1]).sum(axis=1)
            return np.asarray(moved / (len(domain) - 1))
        return _hierarchical(difference, domain)

    def defined(self, group: Group) -> bool:
        """Add up the mass that crosses each edge of the line or tree, times its length."""
        surplus = [q - p for q, p in group.shares()]
        if self.distance == "equal":
            return math.fsum(map(abs, surplus)) / 2 <= self.t + 1e-9
        if self.distance == "ordered":
            crossing = [math.fsum(surplus[: place + 1]) for place in range(len(surplus) - 1)]
            return math.fsum(map(abs, crossing)) <= (self.t + 1e-9) * max(1, len(crossing))
        assert group.tree is not None
        levels = group.tree.levels[[group.tree.leaves.index(value) for value in group.order]]
        height = levels.shape[1] - 1
        cost = 0.0
        for level in range(
            height
        ):  # two leaves are twice as many edges apart as their ancestor is high
            for node in set(levels[:, level]):
                below = [x for x, own in zip(surplus, levels[:, level], strict=True) if own == node]
                cost += abs(math.fsum(below)) / (2 * height)
        return cost <= self.t + 1e-9

    def most(self, counts: Numbers, domain: Domain) -> Numbers:
        """Return how many records of each class can stay, at most."""
        if self.distance == "equal":
            return most_within(counts, domain.shares, 1 - self.t - 1e-12)
        size = counts.sum(axis=1)
        reached = self.gap(counts / size[:, None], domain)
        # The distance is convex: what stays is within t, what goes within the farthest value.
        farthest = float(self.gap(np.eye(len(domain)), domain).max())
        if farthest <= self.t:
            return np.asarray(size, dtype=np.float64)
        gone = np.maximum(0.0, (reached - self.t - 1e-12) / (farthest - self.t))
        return np.asarray(size * (1 - gone))


def _order(domain: Domain) -> Integers:
    """Return the values in their order: that of the hierarchy's leaves, where it has them all."""
    places = np.arange(len(domain))
    if domain.hierarchy is None:
        return places
    rows = domain.hierarchy.leaf_rows
    if not all(value in rows for value in domain.values):
        return places
    return np.argsort([rows[value] for value in domain.values])


def _hierarchical(difference: Numbers, domain: Domain) -> Numbers:
    """Return the cost of moving mass in the tree: height/2H of each node's surplus, on both sides.

    Below a node of height h everything that can be matched inside is matched inside; what
    crosses between its children pays h/H.
    """
    tree = domain.hierarchy
    assert tree is not None
    levels = tree.levels
    rows = {leaf: place for place, leaf in enumerate(tree.leaves)}
    order = np.array([rows[value] for value in domain.values])
    height = levels.shape[1] - 1
    cost = np.zeros(len(difference))
    below = difference
    for level in range(1, height + 1):
        parent = levels[order, level]
        groups, place = np.unique(parent, return_inverse=True)
        gain = np.zeros((len(difference), len(groups)))
        lack = np.zeros_like(gain)
        for value in range(below.shape[1]):
            gain[:, place[value]] += np.maximum(below[:, value], 0)
            lack[:, place[value]] += np.maximum(-below[:, value], 0)
        cost += np.minimum(gain, lack).sum(axis=1) * level / height
        below, first = gain - lack, np.unique(parent, return_index=True)[1]
        order = order[first]
    return cost
