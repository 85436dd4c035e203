"""A certificate for a server that has none yet: self-signed, for loopback and trials."""

from __future__ import annotations

from pathlib import Path

__all__ = ["make_certificate"]


def make_certificate(
    folder: str | Path, *, host: str = "localhost", days: int = 365
) -> tuple[Path, Path]:
    """Write `server.crt` and `server.key`, readable by the owner alone, and return their paths."""
    from discreet.protocols.transport.identity import write_certificate

    return write_certificate(folder, stem="server", host=host, days=days)
