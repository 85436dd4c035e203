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


@contextlib.contextmanager
def here(frames, *, dealer=False, ledgers=None, more=(), **stated):
    """Yield an analyst's joint whose parties run in threads; `files` are its parties' ledgers.

    With `ledgers`, a folder, they go on with what lies there; `more` parties have a certificate.
    """
    owners = [f"owner{place + 1}" for place in range(len(frames))]
    nodes = [*owners, "node"][:3]
    dealers = ["dealer"] if dealer else []
    running = list(dict.fromkeys([*owners, *nodes, *dealers]))
    names = [*running, "analyst", *more]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        for name in names:
            if ledgers is None or not Path(ledgers, f"{name}.key").exists():
                Identity.new(ledgers or folder, name)
        entries = {
            name: {"certificate": f"{name}.crt", "address": f"127.0.0.1:{port}"}
            for name, port in zip(names, free_ports(len(names)), strict=True)
        }
        basic = {"relation": "stays", "owners": owners, "nodes": nodes, "analysts": ["analyst"],
                 "parties": entries, "rules": ["minimum-frequency"], "keys": {},
                 "time_limit": 60.0}  # fmt: skip
        basic |= {"dealer": "dealer"} if dealer else {}
        policy = dataclasses.replace(
            build(JointPolicy, {**basic, **stated}), folder=str(ledgers or folder)
        )
        joint = dc.Joint(policy)
        joint.files = {name: Path(ledgers or folder) / f"{name}.db" for name in running}
        for name in running:
            ledger = stack.enter_context(open_ledger(joint.files[name]))
            data = dict(zip(owners, frames, strict=True)).get(name)
            data = None if data is None else dc.read(data, name="stays")
            stack.enter_context(Party(policy, name, ledger=ledger, data=data))
        yield joint
