"""Identities and free ports for tests of parties."""

from __future__ import annotations

import socket

from discreet.protocols.transport import Identity
from discreet.protocols.transport.identity import read_certificate


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def free_address():
    return f"127.0.0.1:{free_ports(1)[0]}"


def identities(folder, *names):
    return {name: Identity.new(folder, name) for name in names}


def certificates(known):
    return {name: read_certificate(one.certificate) for name, one in known.items()}
