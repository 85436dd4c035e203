"""The protocol of a joint table as one party runs it: inputs, rules on shares, openings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from discreet.protocols.arithmetic.comparison import unpack
from discreet.protocols.arithmetic.node import Node
from discreet.protocols.arithmetic.shares import Shares, split
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.joint.demand import Demand
from discreet.protocols.joint.judging import judge
from discreet.protocols.transport import Mesh
from discreet.randomness import Randomness

__all__ = ["Opened", "compute", "send_inputs"]

Words = npt.NDArray[np.uint64]


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


class MeshRing:
    """The two neighbours of a node, reached through its session."""

    def __init__(self, mesh: Mesh, nodes: tuple[str, ...], name: str) -> None:
        place = nodes.index(name)
        self._mesh = mesh
        self._before, self._after = nodes[place - 1], nodes[(place + 1) % len(nodes)]

    def back(self, label: str, body: bytes) -> bytearray:
        """Send to the node before, receive from the node after."""
        found = self._mesh.exchange(label, {self._before: body}, {self._after: len(body)})
        return found[self._after]

    def forward(self, label: str, body: bytes) -> bytearray:
        """Send to the node after, receive from the node before."""
        found = self._mesh.exchange(label, {self._after: body}, {self._before: len(body)})
        return found[self._before]


def send_inputs(
    mesh: Mesh, policy: JointPolicy, name: str, inputs: npt.NDArray[np.int64], *, rng: Randomness
) -> Shares | None:
    """Share an owner's summary among the nodes; return its own part where it is one of them."""
    own = None
    for node, part in zip(policy.nodes, split(inputs, rng=rng), strict=True):
        if node == name:
            own = part
        else:
            mesh.send(node, "inputs", np.stack([part.own, part.next]).astype("<u8").tobytes())
    return own


def compute(
    mesh: Mesh,
    policy: JointPolicy,
    demand: Demand,
    name: str,
    own: Shares | None,
    *,
    rng: Randomness,
    before_opening: Callable[[str, int], None],
) -> Opened:
    """Run a node's part of the table; `before_opening` records what is about to be opened."""
    rows, cells = demand.rows(policy), policy.require_cells(demand.keys)
    inputs: dict[str, Shares] = {} if own is None else {name: own}
    for owner in policy.owners:
        if owner != name:
            body = mesh.receive(owner, "inputs", size=16 * len(rows) * cells)
            parts = np.frombuffer(body, dtype="<u8").reshape(2, len(rows), cells)
            inputs[owner] = Shares(parts[0], parts[1])
    node = Node(policy.nodes.index(name), MeshRing(mesh, policy.nodes, name), rng=rng)

    def of(what: str, measure: str = "") -> list[Shares]:
        place = rows.index((what, measure))
        return [inputs[owner][place] for owner in policy.owners]

    def lists(*names: tuple[str, str]) -> list[Shares]:
        places = [rows.index(one) for one in names]
        return [inputs[owner][places] for owner in policy.owners]

    tops: Mapping[str, list[Shares]] = {
        measure: lists(*((f"top {place}", measure) for place in range(policy.largest)))
        for measure in demand.measures
    }
    asked = {
        measure: lists(("asked", measure)) if policy.request is not None else []
        for measure in demand.measures
    }
    flags = judge(
        node,
        policy.rules,
        of("contributors"),
        {measure: of("sum", measure) for measure in demand.measures},
        tops,
        asked,
        collusion=policy.collusion,
    )
    before_opening("which cells are withheld", cells)
    withheld = unpack(node.open_bits(flags, "flags"), cells).astype(np.bool_)
    mesh.transcript.open("which cells are withheld", withheld.tobytes(), cells=cells)
    totals = [sum(of(*one)[1:], of(*one)[0]) for one in demand.opened()]
    safe = np.flatnonzero(~withheld)
    meaning = "of safe cells: " + ", ".join(" of ".join(filter(None, o)) for o in demand.opened())
    before_opening(meaning, len(safe))
    found = Shares(
        np.stack([one.own[safe] for one in totals]), np.stack([one.next[safe] for one in totals])
    )
    values = node.open(found, "values")
    mesh.transcript.open(meaning, values.tobytes(), cells=len(safe))
    return Opened(withheld, values)
