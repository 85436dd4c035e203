"""Identities and free ports for tests of parties."""

from __future__ import annotations

from discreet.protocols.joint.local import free_ports
from discreet.protocols.transport import Identity
from discreet.protocols.transport.identity import read_certificate


def free_address():
    return f"127.0.0.1:{free_ports(1)[0]}"


def identities(folder, *names):
    return {name: Identity.new(folder, name) for name in names}


def certificates(known):
    return {name: read_certificate(one.certificate) for name, one in known.items()}
