"""Junction trees: cliques joined so that each attribute's cliques hang together."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterable

from discreet.dp.graphical.domain import Clique, Sizes, clique

__all__ = ["JunctionTree", "junction_tree"]


@dataclasses.dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which each comes after its parent.

    Separate parts of the model hang together by empty separators.
    """

    sizes: Sizes
    cliques: tuple[Clique, ...]
    #: The parent of each clique, by place; −1 for the first.
    parents: tuple[int, ...]

    @functools.cached_property
    def separators(self) -> tuple[Clique, ...]:
        """What each clique shares with its parent."""
        return tuple(
            () if parent < 0 else clique(set(own) & set(self.cliques[parent]))
            for own, parent in zip(self.cliques, self.parents, strict=True)
        )

    @property
    def cells(self) -> int:
        """Number of cells of all cliques together: what a model costs in memory and time."""
        return sum(self.sizes.cells(own) for own in self.cliques)

    @functools.cached_property
    def _hosts(self) -> dict[Clique, int | None]:
        return {}

    def host(self, attributes: Clique) -> int | None:
        """Return the place of the smallest clique that holds all of some attributes."""
        if attributes not in self._hosts:
            wanted = set(attributes)
            found = [n for n, own in enumerate(self.cliques) if wanted <= set(own)]
            smallest = min(found, key=lambda n: self.sizes.cells(self.cliques[n]), default=None)
            self._hosts[attributes] = smallest
        return self._hosts[attributes]


def junction_tree(sizes: Sizes, cliques: Iterable[Clique]) -> JunctionTree:
    """Return the junction tree of cliques: filled in greedily (min-fill), joined greedily.

    >>> tree = junction_tree(Sizes((2, 2, 2, 2)), [(0, 1), (1, 2), (2, 3), (0, 3)])
    >>> sorted(map(len, tree.cliques)), tree.cells
    ([3, 3], 16)
    """
    return _tree(sizes, frozenset(cliques))


@functools.lru_cache(maxsize=8192)
def _tree(sizes: Sizes, cliques: Collection[Clique]) -> JunctionTree:
    around: dict[int, set[int]] = {attribute: set() for attribute in range(len(sizes))}
    for own in cliques:
        for attribute in own:
            around[attribute] |= set(own) - {attribute}
    maximal = _joined(_eliminated(sizes, around))
    order, parents = [maximal[0]], [-1]
    left = maximal[1:]
    while left:
        # The largest overlap first (Prim): that makes the running intersections hold.
        best = max(
            ((len(set(one) & set(two)), -n, -p) for n, one in enumerate(left)
             for p, two in enumerate(order)),
        )  # fmt: skip
        _, place, parent = best
        order.append(left.pop(-place))
        parents.append(-parent)
    return JunctionTree(sizes, tuple(order), tuple(parents))


def _eliminated(sizes: Sizes, around: dict[int, set[int]]) -> list[Clique]:
    """Return the cliques that arise as attributes are taken out, fewest new edges first."""
    found = []
    left = {attribute: set(near) for attribute, near in around.items()}
    while left:
        chosen = min(
            left,
            key=lambda a: (_fill(left, a), sizes.cells(clique({a, *left[a]})), a),
        )
        near = left.pop(chosen)
        found.append(clique({chosen, *near}))
        for one in near:
            left[one] |= near - {one}
            left[one].discard(chosen)
    return found


def _fill(left: dict[int, set[int]], attribute: int) -> int:
    near = left[attribute]
    return sum(len(near - left[one]) - 1 for one in near) // 2


def _joined(cliques: list[Clique]) -> list[Clique]:
    """Return the cliques that lie within no other, largest first."""
    found: list[Clique] = []
    for own in sorted(set(cliques), key=lambda c: (-len(c), c)):
        if not any(set(own) <= set(other) for other in found):
            found.append(own)
    return found
