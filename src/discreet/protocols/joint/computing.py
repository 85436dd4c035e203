"""The protocol of a joint table as one party runs it: inputs, rules on shares, openings."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from discreet.errors import RefusedError
from discreet.protocols.arithmetic.comparison import unpack
from discreet.protocols.arithmetic.node import Node
from discreet.protocols.arithmetic.shares import BitShares, Shares, split
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.joint.demand import Demand
from discreet.protocols.joint.hypercubes import Lattice
from discreet.protocols.joint.judging import Views, judge, see
from discreet.protocols.joint.seat import Ring, Wire
from discreet.protocols.joint.secondary import Suppressor
from discreet.randomness import Randomness

__all__ = ["Opened", "TableRun"]

Words = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False)
class Opened:
    """What the nodes opened: which cells are withheld, and the values of the others."""

    withheld: npt.NDArray[np.bool_]
    values: npt.NDArray[np.int64]

    def to_bytes(self) -> bytes:
        """Return it as one body: a byte per cell, then the values."""
        return self.withheld.astype(np.uint8).tobytes() + self.values.astype("<i8").tobytes()

    @classmethod
    def from_bytes(cls, body: bytes, *, cells: int, rows: int) -> Opened:
        """Return what a body says; ValueError where it does not say that."""
        flags = np.frombuffer(body[:cells], dtype=np.uint8)
        if len(flags) != cells or (flags > 1).any():
            raise ValueError("flags")
        safe = int((flags == 0).sum())
        values = np.frombuffer(body[cells:], dtype="<i8").reshape(rows, safe)
        return cls(flags.astype(np.bool_), values)


class TableRun:
    """One run of a joint table at one party: an owner, a node, or both.

    Parameters
    ----------
    mesh
        Its links to the others.
    policy, demand, name
        What was agreed, what is asked, and which party this is.
    inputs
        An owner's summary of its cells.
    withheld
        Returns an owner's summary of withheld cells, for the totals of a level.
    before_opening
        Records what is about to be opened, and of how many cells.
    """

    def __init__(
        self,
        mesh: Wire,
        policy: JointPolicy,
        demand: Demand,
        name: str,
        *,
        inputs: Numbers | None,
        withheld: Callable[[int, Sequence[tuple[str, ...]]], Numbers],
        rng: Randomness,
        before_opening: Callable[[str, int], None],
    ) -> None:
        self._mesh, self._policy, self._demand, self._name = mesh, policy, demand, name
        self._inputs, self._withheld, self._rng = inputs, withheld, rng
        self._before_opening = before_opening
        self._is_node = name in policy.nodes
        self._rows = demand.rows(policy)
        self._others = [one for one in policy.owners if one not in policy.nodes]
        self._node: Node | None = None
        self._seen: Views | None = None

    def run(self) -> Opened | None:
        """Return what was opened, at a node; an owner that is none learns the pattern of totals."""
        policy, demand = self._policy, self._demand
        cells = demand.cells(policy)
        flags, parts = self._judged(self._inputs, len(cells), "cells")
        if flags is None:
            return None
        if demand.margins:
            flags = self._suppressed(flags)
        found = [(flags, self._opened(flags, parts, "cells"))]
        unresolved = {cells[place] for place in np.flatnonzero(flags)}
        for level in demand.levels:
            groups = demand.groups(policy, level)
            what = f"totals by {', '.join(demand.keys[:level])}" if level else "totals over all"
            own = None
            if self._inputs is not None:
                own = self._withheld(level, sorted(unresolved))
            inside = collections.Counter(cell[:level] for cell in unresolved)
            hidden = np.array([inside[group] for group in groups], dtype=np.int64)
            flags, _ = self._judged(own, len(groups), what, hidden)
            assert flags is not None  # as for the cells
            opened = {group for group, flag in zip(groups, flags, strict=True) if not flag}
            unresolved = {cell for cell in unresolved if cell[:level] not in opened}
            if parts is None:
                continue
            totals = [Shares(*(_added(x, len(groups)) for x in (p.own, p.next))) for p in parts]
            found.append((flags, self._opened(flags, totals, what)))
        if not self._is_node:
            return None
        return Opened(
            np.concatenate([flags for flags, _ in found]),
            np.concatenate([values for _, values in found], axis=1),
        )

    def _judged(
        self, own: Numbers | None, columns: int, what: str, hidden: Numbers | None = None
    ) -> tuple[Flags | None, list[Shares] | None]:
        """Share, judge and open the flags; return them and the parts of the owners."""
        policy, mesh = self._policy, self._mesh
        mine = None if own is None else self._send(own)
        if not self._is_node:
            return (self._told(columns) if self._demand.totals else None), None
        parts = [mine if owner == self._name else None for owner in policy.owners]
        found = [
            part if part is not None else self._received(owner, columns)
            for owner, part in zip(policy.owners, parts, strict=True)
        ]
        if self._node is None:
            ring = Ring(mesh, policy.nodes, self._name)
            self._node = Node(policy.nodes.index(self._name), ring, rng=self._rng)
        self._seen = self._views(self._node, found)
        bits = judge(self._node, policy.rules, self._seen, hidden=hidden)
        sensitive = "sensitive" if self._demand.margins else "withheld"
        flags = self._open_bits(f"which {what} are {sensitive}", bits, columns).astype(np.bool_)
        for other in self._others if self._demand.totals else ():
            mesh.send(other, "pattern", flags.tobytes())
        return flags, found

    def _send(self, own: Numbers) -> Shares | None:
        """Share an owner's summary among the nodes; return its part where it is one of them."""
        mine = None
        for node, part in zip(self._policy.nodes, split(own, rng=self._rng), strict=True):
            if node == self._name:
                mine = part
            else:
                body = np.stack([part.own, part.next]).astype("<u8").tobytes()
                self._mesh.send(node, "inputs", body)
        return mine

    def _received(self, owner: str, columns: int) -> Shares:
        size = 16 * len(self._rows) * columns
        body = self._mesh.receive(owner, "inputs", size=size)
        parts = np.frombuffer(body, dtype="<u8").reshape(2, len(self._rows), columns)
        return Shares(parts[0], parts[1])

    def _told(self, columns: int) -> Flags:
        """Return the pattern that all nodes state; an owner acts on nothing that one alone says."""
        said = [
            bytes(self._mesh.receive(node, "pattern", size=columns)) for node in self._policy.nodes
        ]
        flags = np.frombuffer(said[0], dtype=np.uint8)
        if len(set(said)) > 1 or (flags > 1).any():
            raise RefusedError("the nodes state different patterns", code="nodes-disagree")
        return flags.astype(np.bool_)

    def _open_bits(self, meaning: str, bits: BitShares, cells: int) -> Words:
        """Open bits that all may see, after recording it."""
        assert self._node is not None
        self._before_opening(meaning, cells)
        found = unpack(self._node.open_bits(bits, "flags"), bits.size)
        self._mesh.transcript.open(meaning, found.astype(np.uint8).tobytes(), cells=cells)
        return found

    def _suppressed(self, primary: Flags) -> Flags:
        """Withhold further cells, so that all margins of the others can be opened."""
        policy, demand = self._policy, self._demand
        assert self._node is not None
        assert self._seen is not None
        return Suppressor(
            self._node,
            Lattice(tuple(policy.tree(key) for key in demand.keys)),
            self._seen,
            policy.level_bound,
            {name: policy.measure(name).scale for name in demand.judged},
            self._open_bits,
        ).pattern(primary)

    def _views(self, node: Node, parts: Sequence[Shares]) -> Views:
        policy, measures = self._policy, self._demand.judged

        def rows(*wanted: tuple[str, str]) -> list[Shares]:
            places = [self._rows.index(one) for one in wanted]
            return [part[places] for part in parts]

        tops = range(self._demand.largest(policy))
        return see(
            node,
            [part[0] for part in rows(("contributors", ""))],
            {name: [part[0] for part in rows(("sum", name))] for name in measures},
            {name: rows(*((f"top {place}", name) for place in tops)) for name in measures},
            {name: rows(("asked", name)) if policy.request else [] for name in measures},
            collusion=policy.collusion,
        )

    def _opened(self, flags: Flags, parts: Sequence[Shares] | None, what: str) -> Numbers:
        """Open what the answer shows of everything that is not withheld."""
        wanted = self._demand.opened()
        if parts is None:
            return np.zeros((len(wanted), 0), dtype=np.int64)
        assert self._node is not None
        safe = np.flatnonzero(~flags)
        places = [self._rows.index(one) for one in wanted]
        total = sum(parts[1:], parts[0])
        shown = ", ".join(" of ".join(filter(None, one)) for one in wanted)
        meaning = f"of safe {what}: {shown}"
        self._before_opening(meaning, len(safe))
        values = self._node.open(total[np.ix_(np.array(places), safe)], "values")
        self._mesh.transcript.open(meaning, values.tobytes(), cells=len(safe))
        return values


def _added(values: Words, groups: int) -> Words:
    """Return sums over the cells of each total: cells are numbered with the last key fastest."""
    return np.asarray(values.reshape(len(values), groups, -1).sum(axis=-1, dtype=np.uint64))
