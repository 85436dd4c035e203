"""Parties as processes forked from this one: killed and started again without importing anything."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal

import discreet as dc
from discreet.ledger.opening import open_ledger
from discreet.protocols.joint.party import Party
from tests.protocols.joint.here import ledgers_of, policy_in

_FORK = multiprocessing.get_context("fork")


def _listen(policy, name, place, frame, told):
    data = None if frame is None else dc.read(frame, name="stays")
    with open_ledger(place) as ledger, Party(policy, name, ledger=ledger, data=data):
        told.send("listens")
        signal.pause()


class WarmParties:
    """The processes of a joint computation, and an analyst's `joint`."""

    def __init__(self, folder, frames, **stated):
        self.policy, running = policy_in(folder, len(frames), **stated)
        self.ledgers = ledgers_of(self.policy, running)
        self._frames = dict(zip(self.policy.owners, frames, strict=True))
        self.joint = dc.Joint(self.policy)
        self.processes = {}
        for name in running:
            self.start(name)

    def start(self, name):
        """Start a party, again where it ran before; it goes on with its ledger."""
        here, there = _FORK.Pipe(duplex=False)
        words = (self.policy, name, self.ledgers[name], self._frames.get(name), there)
        process = self.processes[name] = _FORK.Process(target=_listen, args=words)
        process.start()
        assert here.poll(60), f"{name} does not start"
        here.recv()

    def close(self):
        """End all that still run."""
        for process in self.processes.values():
            process.kill()
            process.join()


@contextlib.contextmanager
def warm(folder, frames, **stated):
    """Yield parties that end with the block."""
    parties = WarmParties(folder, frames, **stated)
    try:
        yield parties
    finally:
        parties.close()
