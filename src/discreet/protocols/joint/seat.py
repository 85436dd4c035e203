"""The place of one party in a protocol: its records, its links, and what it may open."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any
from typing import Protocol as Interface

import numpy as np
import numpy.typing as npt

from discreet.errors import RefusedError
from discreet.protocols.arithmetic.comparison import unpack
from discreet.protocols.arithmetic.fixed_point import encode
from discreet.protocols.arithmetic.node import Node
from discreet.protocols.arithmetic.shares import BitShares, Shares, Words, split
from discreet.protocols.transport.transcript import Transcript
from discreet.randomness import Randomness

__all__ = ["Cast", "Ring", "Seat", "Wire", "fraction_bits"]

#: Numbers in a matrix that another party announces; more is not believed.
_MOST = 1 << 28


class Wire(Interface):
    """How a party reaches the others: the mesh of a session, or queues in a rehearsal."""

    transcript: Transcript

    def send(self, peer: str, label: str, body: bytes | memoryview = b"") -> None:
        """Queue a message."""

    def receive(self, peer: str, label: str, *, size: int) -> bytes | bytearray:
        """Return the body of the next message, of this label and size."""

    def exchange(
        self, label: str, out: Mapping[str, bytes | memoryview], into: Mapping[str, int]
    ) -> Mapping[str, bytes | bytearray]:
        """Send to some parties, receive from some: one round."""


class Ring:
    """The two neighbours of a node, reached through its wire."""

    def __init__(self, wire: Wire, nodes: tuple[str, ...], name: str) -> None:
        place = nodes.index(name)
        self._wire = wire
        self._before, self._after = nodes[place - 1], nodes[(place + 1) % len(nodes)]

    def back(self, label: str, body: bytes) -> bytes | bytearray:
        """Send to the node before, receive from the node after."""
        found = self._wire.exchange(label, {self._before: body}, {self._after: len(body)})
        return found[self._after]

    def forward(self, label: str, body: bytes) -> bytes | bytearray:
        """Send to the node after, receive from the node before."""
        found = self._wire.exchange(label, {self._after: body}, {self._before: len(body)})
        return found[self._before]


@dataclasses.dataclass(frozen=True)
class Cast:
    """Who takes part, and in which role."""

    owners: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    dealer: str | None = None
    #: How large each owner's columns can be; known to all.
    bounds: Mapping[str, tuple[float, ...]] = dataclasses.field(default_factory=dict)
    #: What the session is bound to: keys and hashes are made for it alone.
    session: bytes = b""

    @property
    def everybody(self) -> tuple[str, ...]:
        """All parties, each once."""
        dealer = () if self.dealer is None else (self.dealer,)
        return tuple(dict.fromkeys((*self.owners, *self.nodes, *dealer)))


@dataclasses.dataclass(frozen=True, eq=False)
class Seat:
    """One party at work.

    `records` are an owner's own numbers, or its persons as bytes; `asked`
    is the joint table that a party is asked for; `announce` records what is about
    to be opened, before it is; `sign` and `verify` use the keys behind the pinned certificates.
    """

    name: str
    cast: Cast
    wire: Wire
    rng: Randomness
    announce: Callable[[str, int], None]
    sign: Callable[[bytes], bytes]
    verify: Callable[[str, bytes, bytes], bool]
    records: npt.NDArray[np.float64] | None = None
    persons: tuple[bytes, ...] = ()
    asked: Any = None  # Any: agreements stand above seats; the protocol that is asked knows it
    _node: list[Node] = dataclasses.field(default_factory=list)

    @property
    def is_owner(self) -> bool:
        """Whether this party holds records."""
        return self.name in self.cast.owners

    @property
    def is_node(self) -> bool:
        """Whether this party computes on shares."""
        return self.name in self.cast.nodes

    @property
    def node(self) -> Node:
        """The node that this party is; made with the first use, all three at the same time."""
        if not self._node:
            # Not a cached property: in Python 3.11 those of one class lock each other out.
            ring = Ring(self.wire, self.cast.nodes, self.name)
            self._node.append(Node(self.cast.nodes.index(self.name), ring, rng=self.rng))
        return self._node[0]

    def whole(self, bits: int) -> npt.NDArray[np.int64]:
        """Return the records in units of their bounds, as whole numbers with so many binary digits."""
        assert self.records is not None  # owners have them
        scaled = self.records / np.array(self.cast.bounds[self.name])
        return encode(scaled, scale=1 << bits, bound=1.0, name="records")

    # -- whole numbers, in matrices whose size is told first -----------------------------------------
    def send_words(self, peer: str, label: str, values: Words) -> None:
        """Send a matrix of words."""
        shape = np.array(values.shape, dtype="<u8")
        self.wire.send(peer, f"{label} size", shape.tobytes())
        self.wire.send(peer, label, np.ascontiguousarray(values, dtype="<u8").tobytes())

    def receive_words(self, peer: str, label: str, *, columns: int) -> Words:
        """Return a matrix of words with so many columns."""
        size = self.wire.receive(peer, f"{label} size", size=16)
        rows, found = np.frombuffer(size, dtype="<u8").tolist()
        if found != columns or rows * columns > _MOST:
            raise RefusedError("a matrix of another size was due", code="message-unexpected")
        body = self.wire.receive(peer, label, size=8 * rows * columns)
        return np.frombuffer(body, dtype="<u8").reshape(rows, columns).astype(np.uint64)

    # -- shares -------------------------------------------------------------------------------------
    def share(self, values: npt.ArrayLike, label: str = "inputs") -> Shares | None:
        """Share numbers among the nodes; return this party's part where it is one of them."""
        mine = None
        for name, part in zip(self.cast.nodes, split(values, rng=self.rng), strict=True):
            if name == self.name:
                mine = part
            else:
                both = np.stack([part.own, part.next]).astype("<u8")
                self.wire.send(name, label, both.tobytes())
        return mine

    def shared(self, owner: str, shape: tuple[int, ...], label: str = "inputs") -> Shares:
        """Return a node's part of numbers that another party shared."""
        size = 16 * int(np.prod(shape))
        body = self.wire.receive(owner, label, size=size)
        parts = np.frombuffer(body, dtype="<u8").reshape(2, *shape).astype(np.uint64)
        return Shares(parts[0], parts[1])

    def gather(
        self, values: npt.ArrayLike | None, shape: tuple[int, ...], label: str = "inputs"
    ) -> list[Shares]:
        """Share an owner's numbers and, at a node, return the parts of all owners in order."""
        mine = None if values is None else self.share(values, label)
        if not self.is_node:
            return []
        return [
            mine if owner == self.name and mine is not None else self.shared(owner, shape, label)
            for owner in self.cast.owners
        ]

    def open(self, x: Shares, meaning: str) -> npt.NDArray[np.int64]:
        """Record what is opened, open it to the nodes, and note it in the transcript."""
        self.announce(meaning, x.own.size)
        found = self.node.open(x, "opened")
        self.wire.transcript.open(meaning, found.tobytes(), cells=int(found.size))
        return found

    def open_bits(self, bits: BitShares, meaning: str) -> Words:
        """Do the same with bits; return numbers 0 and 1."""
        self.announce(meaning, bits.size)
        found = unpack(self.node.open_bits(bits, "opened"), bits.size)
        self.wire.transcript.open(meaning, found.tobytes(), cells=int(found.size))
        return found

    def tell(self, values: npt.NDArray[np.int64] | None, shape: tuple[int, ...], label: str
             ) -> npt.NDArray[np.int64]:  # fmt: skip
        """Pass what the nodes opened on to owners that are none; all nodes must say the same."""
        others = [one for one in self.cast.owners if one not in self.cast.nodes]
        if values is not None:
            for other in others:
                self.wire.send(other, label, values.astype("<i8").tobytes())
            return values
        size = 8 * int(np.prod(shape))
        said = {bytes(self.wire.receive(node, label, size=size)) for node in self.cast.nodes}
        if len(said) > 1:
            raise RefusedError("the nodes state different results", code="nodes-disagree")
        return np.frombuffer(said.pop(), dtype="<i8").reshape(shape).astype(np.int64)


def fraction_bits(terms: int, *, spare: int = 2) -> int:
    """Return how many binary digits after the point a sum of so many products of ±1 has room for.

    >>> fraction_bits(1000), fraction_bits(100_000)
    (25, 21)
    """
    return (62 - spare - max(terms, 1).bit_length()) // 2
