"""Owners and a dealer as processes of their own, over TLS, some of which are killed (kill −9).

Processes are forked, so that starting one costs nothing; each plays the shipped protocol.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import numpy as np

import discreet as dc
from discreet.errors import DiscreetError
from discreet.protocols.joint.local import free_ports
from discreet.protocols.joint.seat import Cast, Seat
from discreet.protocols.transport import Agreement, Mesh, Server, Transcript, connect
from discreet.protocols.transport.mesh import Waiting
from discreet.randomness import Randomness
from tests.protocols.transport.parties import certificates, identities

OWNERS = tuple(f"o{place}" for place in range(5))
#: What an owner sends: keys, pieces, its masked part, the pieces asked for.
STAGES = 5


def known_parties(folder):
    """Return keys and certificates, which several runs may share."""
    return identities(folder, *OWNERS, "dealer")


class Dying:
    """A mesh whose party is killed instead of sending a certain message."""

    def __init__(self, mesh, stage):
        self._mesh, self._stage, self.transcript = mesh, stage, mesh.transcript

    def send(self, *message):
        if self._stage == 0:
            time.sleep(0.05)  # what was queued before leaves first
            os.kill(os.getpid(), signal.SIGKILL)
        self._stage -= 1
        self._mesh.send(*message)

    def receive(self, *message, **options):
        return self._mesh.receive(*message, **options)


def _party(name, known, addresses, cast, protocol, records, stage, limit, told):
    star, waiting = protocol.survives, Waiting()
    peers = (cast.dealer,) if star and name != cast.dealer else cast.everybody
    peers = tuple(peer for peer in peers if peer != name)
    agreed = Agreement("p", cast.everybody)

    def handle(link):
        session, _ = agreed.meet(link)
        waiting.offer(session, link, time_limit=limit)

    def call(peer):
        link = connect(
            addresses[peer], pin=known[peer].pin, identity=known[name], peer=peer, patience=limit,
            time_limit=limit,
        )  # fmt: skip
        agreed.call(link, session="s", purpose="stream")
        return link

    allowed = certificates({peer: known[peer] for peer in peers})
    with Server(addresses[name], identity=known[name], clients=allowed, handle=handle,
                time_limit=limit):  # fmt: skip
        transcript = Transcript(name)
        with Mesh(
            transcript, {peer: (lambda peer=peer: call(peer)) for peer in peers}, list(peers),
            waiting=waiting, session="s", time_limit=limit,
            may_leave=cast.owners if star and name == cast.dealer else (),
        ) as mesh:  # fmt: skip
            wire = mesh if stage is None else Dying(mesh, stage)
            seat = Seat(
                name, cast, wire, Randomness.secure(), lambda *_: None,
                lambda message: message[:32], lambda *_: True, records=records,
            )  # fmt: skip
            wall, cpu = time.perf_counter(), time.process_time()
            try:
                shown = dict(protocol.play(seat).shown)
            except DiscreetError as error:
                shown = {"error": error.code}
            shown["seconds"] = time.perf_counter() - wall, time.process_time() - cpu
            shown["opened"] = len(transcript.opened)
            if told is not None:
                told.send(shown)
        if stage is not None:
            os.kill(os.getpid(), signal.SIGKILL)  # it sent everything, and is killed then


def run_between(protocol, cast, known, records, dies=None, *, teller="dealer", limit=10.0):
    """Return what one party shows, where some are killed before a message of theirs."""
    names = cast.everybody
    addresses = {
        name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(len(names)), strict=True)
    }
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    processes = {
        name: context.Process(
            target=_party,
            args=(name, known, addresses, cast, protocol, records.get(name),
                  (dies or {}).get(name), limit, there if name == teller else None),
        )
        for name in names
    }  # fmt: skip
    for process in processes.values():
        process.start()
    try:
        assert here.poll(6 * limit), "the protocol hangs"
        found = here.recv()
    finally:
        for process in processes.values():
            process.join(limit)
            if process.is_alive():
                process.kill()
    killed = [n for n, p in processes.items() if p.exitcode == -signal.SIGKILL]
    assert sorted(killed) == sorted(dies or {}), killed
    return found


def run_sum(known, parts, dies=None):
    """Return what the aggregator shows of a sum, where some owners are killed."""
    bounds = tuple(np.max([one.max(axis=0) for one in parts.values()], axis=0).tolist())
    cast = Cast(OWNERS, (), "dealer", dict.fromkeys(OWNERS, bounds), b"session")
    return run_between(dc.SecureSum(by="aggregator"), cast, known, parts, dies)


def run_product(known, x, y):
    """Return what the first owner shows of a product."""
    bounds = {name: tuple(np.abs(one).max(axis=0).tolist()) for name, one in (("o0", x), ("o1", y))}
    cast = Cast(("o0", "o1"), (), "dealer", bounds, b"session")
    return run_between(dc.ScalarProduct(), cast, known, {"o0": x, "o1": y}, teller="o0")
