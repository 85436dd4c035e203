"""All parties of a protocol in one process, for tests and examples; nothing is hidden there."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import queue
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import DiscreetError, EngineError
from discreet.protocols.joint.protocol import Inputs, Outcome, Protocol
from discreet.protocols.joint.seat import Cast, Seat
from discreet.protocols.transport.transcript import Transcript
from discreet.randomness import Randomness

__all__ = ["Rehearsal", "rehearse_protocol"]

#: Long enough for large tables on a busy machine; a party that fails tells the others at once.
_PATIENCE = 600.0
_GONE = None


class _DiedError(Exception):
    """A party that is made to leave in the middle."""


class QueueWire:
    """Parties reached through queues; may keep what arrived, for attacks on one party's view."""

    def __init__(
        self,
        name: str,
        queues: Mapping[tuple[str, str], queue.Queue[Any]],
        dies_after: int | None,
        *,
        keep: bool = True,
    ) -> None:
        self.transcript = Transcript(name)
        self.view: list[tuple[str, str, bytes]] = []
        self._keep = keep
        self._name, self._queues, self._left = name, queues, dies_after

    def send(self, peer: str, label: str, body: bytes | memoryview = b"") -> None:
        """Queue a message."""
        if self._left is not None:
            if self._left == 0:
                raise _DiedError
            self._left -= 1
        self.transcript.sent(peer).add(label.encode(), bytes(body))
        self._queues[self._name, peer].put((label, bytes(body)))

    def receive(self, peer: str, label: str, *, size: int) -> bytes:
        """Return the next message."""
        waiting = self._queues[peer, self._name]
        found = waiting.get(timeout=_PATIENCE)
        if found is _GONE:
            waiting.put(_GONE)
            raise EngineError(f"the connection to {peer} was lost", code="party-gone")
        said, body = found
        if said != label or len(body) != size:
            raise AssertionError(
                f"{self._name} got {said!r} of {len(body)}, due {label!r} of {size}"
            )
        self.transcript.received(peer).add(label.encode(), body)
        if self._keep:
            self.view.append((peer, label, body))
        return bytes(body)

    def exchange(
        self, label: str, out: Mapping[str, bytes | memoryview], into: Mapping[str, int]
    ) -> dict[str, bytes]:
        """Send to some parties, receive from some: one round."""
        for peer, body in out.items():
            self.send(peer, label, body)
        self.transcript.rounds.append(label)
        return {peer: self.receive(peer, label, size=size) for peer, size in into.items()}


@dataclasses.dataclass(frozen=True, eq=False)
class Rehearsal:
    """What each party was left with, saw and recorded."""

    outcomes: Mapping[str, Outcome]
    views: Mapping[str, list[tuple[str, str, bytes]]]
    transcripts: Mapping[str, Transcript]
    announced: Mapping[str, list[str]]
    failed: Mapping[str, DiscreetError]

    @property
    def shown(self) -> Mapping[str, npt.NDArray[np.float64]]:
        """What the one who asked gets; every party that shows something shows the same."""
        said = [one.shown for one in self.outcomes.values() if one.shown]
        return said[0] if said else {}


def _note(announced: list[str], meaning: str, cells: int) -> None:
    del cells
    announced.append(meaning)


def rehearse_protocol(
    protocol: Protocol,
    inputs: Inputs | Mapping[str, Sequence[bytes]],
    *,
    rng: Randomness | None = None,
    dies_after: Mapping[str, int] | None = None,
) -> Rehearsal:
    """Run a protocol with the records of each owner; an owner in `dies_after` leaves in the middle.

    Bounds are taken from the records, which only a rehearsal may do.
    """
    owners = tuple(inputs)
    nodes = (*owners, "node 1", "node 2")[:3] if protocol.needs_nodes else ()
    dealer = "dealer" if protocol.needs_dealer else None
    persons = {o: tuple(v) for o, v in inputs.items()} if protocol.split == "persons" else {}
    numbers = {} if persons else {o: np.asarray(v, dtype=np.float64) for o, v in inputs.items()}
    bounds = {o: tuple(np.nanmax(np.abs(v), axis=0, initial=1e-9)) for o, v in numbers.items()}
    if protocol.split in ("horizontal", "arbitrary"):
        widest = tuple(np.max(list(bounds.values()), axis=0))
        bounds = dict.fromkeys(bounds, widest)
    cast = Cast(owners, nodes, dealer, bounds, b"rehearsal")
    everybody = cast.everybody
    queues: dict[tuple[str, str], queue.Queue[Any]] = {
        (a, b): queue.Queue() for a in everybody for b in everybody if a != b
    }
    source = rng or Randomness.secure()
    wires = {n: QueueWire(n, queues, (dies_after or {}).get(n)) for n in everybody}
    announced: dict[str, list[str]] = {name: [] for name in everybody}
    outcomes: dict[str, Outcome] = {}
    failed: dict[str, DiscreetError] = {}
    broken: list[BaseException] = []

    def work(seat: Seat) -> None:
        try:
            outcomes[seat.name] = protocol.play(seat)
        except _DiedError:
            pass
        except DiscreetError as error:
            failed[seat.name] = error
        except BaseException as error:
            broken.append(error)
        for peer in everybody:
            if peer != seat.name:
                queues[seat.name, peer].put(_GONE)

    tables = protocol.seated(numbers)
    seats = [
        Seat(
            name,
            cast,
            wires[name],
            source.spawn(),
            functools.partial(_note, announced[name]),
            lambda message: hashlib.sha256(message).digest(),
            lambda _, message, signature: hashlib.sha256(message).digest() == signature,
            records=numbers.get(name),
            persons=persons.get(name, ()),
            asked=tables.get(name),
        )
        for name in everybody
    ]
    threads = [threading.Thread(target=work, args=(seat,)) for seat in seats]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if broken:
        raise broken[0]
    if failed and not dies_after:
        raise next(iter(failed.values()))
    views = {name: wire.view for name, wire in wires.items()}
    return Rehearsal(
        outcomes, views, {name: wire.transcript for name, wire in wires.items()}, announced, failed
    )
