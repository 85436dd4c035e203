"""All parties in this process, over TLS all the same: tests need not start programs."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from pathlib import Path

import discreet as dc
from discreet.ledger.opening import open_ledger
from discreet.protocols.joint.declaration import JointPolicy
from discreet.protocols.joint.local import free_ports
from discreet.protocols.joint.party import Party
from discreet.protocols.transport import Identity
from discreet.registry import build


def policy_in(folder, owners, *, dealer=False, more=(), **stated):
    """Return a policy of so many owners whose keys lie in a folder, and the parties that listen."""
    owners = [f"owner{place + 1}" for place in range(owners)]
    nodes = [*owners, "node"][:3]
    dealers = ["dealer"] if dealer else []
    running = list(dict.fromkeys([*owners, *nodes, *dealers]))
    names = [*running, "analyst", *more]
    for name in names:
        if not Path(folder, f"{name}.key").exists():
            Identity.new(folder, name)
    entries = {
        name: {"certificate": f"{name}.crt", "address": f"127.0.0.1:{port}"}
        for name, port in zip(names, free_ports(len(names)), strict=True)
    }
    basic = {"relation": "stays", "owners": owners, "nodes": nodes, "analysts": ["analyst"],
             "parties": entries, "rules": ["minimum-frequency"], "keys": {},
             "time_limit": 60.0}  # fmt: skip
    basic |= {"dealer": "dealer"} if dealer else {}
    return dataclasses.replace(build(JointPolicy, {**basic, **stated}), folder=str(folder)), running


def ledgers_of(policy, running):
    """Return where the parties of a policy keep their ledgers."""
    return {name: Path(policy.folder) / f"{name}.db" for name in running}


@contextlib.contextmanager
def here(frames, *, ledgers=None, **stated):
    """Yield an analyst's joint whose parties run in threads; `files` are its parties' ledgers.

    With `ledgers`, a folder, they go on with what lies there. What else is stated goes to `policy_in`.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        policy, running = policy_in(ledgers or folder, len(frames), **stated)
        joint = dc.Joint(policy)
        joint.files = ledgers_of(policy, running)
        for name in running:
            ledger = stack.enter_context(open_ledger(joint.files[name]))
            data = dict(zip(policy.owners, frames, strict=True)).get(name)
            data = None if data is None else dc.read(data, name="stays")
            stack.enter_context(Party(policy, name, ledger=ledger, data=data))
        yield joint
