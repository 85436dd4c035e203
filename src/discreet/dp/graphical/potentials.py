"""Potentials on cliques, and the marginals that follow from them by belief propagation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from discreet.dp.graphical.domain import Clique, Numbers, spread, summed
from discreet.dp.graphical.junction_tree import JunctionTree

__all__ = ["Beliefs", "propagated"]

#: A share of the records below this counts as none: its inverse would overflow in a product.
_NOTHING = 1e-60


@dataclasses.dataclass(frozen=True, eq=False)
class Beliefs:
    """Marginals of every clique of a tree, each summing to the same total."""

    tree: JunctionTree
    total: float
    tables: tuple[Numbers, ...]

    def marginal(self, attributes: Clique) -> Numbers:
        """Return the table over any attributes; by elimination where no clique holds them all."""
        host = self.tree.host(attributes)
        if host is not None:
            return summed(self.tables[host], self.tree.cliques[host], attributes)
        return self._eliminated(attributes)

    def _eliminated(self, attributes: Clique) -> Numbers:
        """Return a marginal of attributes in several cliques: those are met from the leaves in."""
        cliques, parents = self.tree.cliques, self.tree.parents
        waiting: list[list[tuple[Numbers, Clique]]] = [[] for _ in cliques]
        for place in reversed(range(len(cliques))):
            own, separator = cliques[place], self.tree.separators[place]
            inside = {*own} - {*separator}
            if place > 0 and not waiting[place] and not inside & {*attributes}:
                continue  # sums to one, whatever is shared
            parts = [(self.tables[place], own), *waiting[place]]
            if place > 0:
                shared = summed(self.tables[place], own, separator)
                # A conditional on what is shared with the parent; where nothing lies, nothing comes.
                lies = shared > _NOTHING * self.total
                inverse = np.divide(1.0, shared, out=np.zeros_like(shared), where=lies)
                parts.append((inverse, separator))
            wanted = {*separator, *attributes} if place else {*attributes}
            found = _product(parts, wanted)
            if place == 0:
                return found[0].reshape(self.tree.sizes.shape(attributes))
            waiting[parents[place]].append(found)
        raise AssertionError("a tree has a first clique")


def _product(parts: list[tuple[Numbers, Clique]], wanted: set[int]) -> tuple[Numbers, Clique]:
    """Return the product of tables, summed over all attributes that are not wanted."""
    every = sorted({attribute for _, own in parts for attribute in own})
    kept = tuple(attribute for attribute in every if attribute in wanted)
    letter = {attribute: place for place, attribute in enumerate(every)}
    operands: list[object] = []
    for table, own in parts:
        operands += [table, [letter[attribute] for attribute in own]]
    joined = np.einsum(*operands, [letter[attribute] for attribute in kept], optimize="greedy")  # type: ignore[call-overload]  # operands and axes in turn
    return np.asarray(joined), kept


def propagated(tree: JunctionTree, potentials: Mapping[Clique, Numbers], total: float) -> Beliefs:
    """Return the marginals of the model whose log-density is the sum of potentials.

    Each potential lies on some attributes that a clique of the tree holds, whatever the tree: they
    survive another triangulation.
    """
    logs = [np.zeros(tree.sizes.shape(own)) for own in tree.cliques]
    for own, table in potentials.items():
        host = tree.host(own)
        assert host is not None, "a potential on attributes that no clique holds"
        logs[host] = logs[host] + spread(table, own, tree.cliques[host])
    upward: list[Numbers] = [np.zeros(())] * len(logs)
    for place in reversed(range(1, len(logs))):
        own, separator, parent = tree.cliques[place], tree.separators[place], tree.parents[place]
        upward[place] = _log_summed(logs[place], own, separator)
        logs[parent] = logs[parent] + spread(upward[place], separator, tree.cliques[parent])
    for place in range(1, len(logs)):
        own, separator, parent = tree.cliques[place], tree.separators[place], tree.parents[place]
        down = _log_summed(logs[parent], tree.cliques[parent], separator) - upward[place]
        logs[place] = logs[place] + spread(down, separator, own)
    tables = []
    for log in logs:
        shares = np.exp(log - log.max())
        tables.append(shares * (total / shares.sum()))
    return Beliefs(tree, total, tuple(tables))


def _log_summed(logs: Numbers, over: Clique, kept: Clique) -> Numbers:
    axes = tuple(place for place, attribute in enumerate(over) if attribute not in kept)
    if not axes:
        return logs
    top = logs.max(axis=axes, keepdims=True)
    return np.asarray(np.log(np.exp(logs - top).sum(axis=axes)) + top.squeeze(axes))
