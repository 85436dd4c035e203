"""Whom users trust where they say nothing else: the files that `discreet retrieve` writes."""

from __future__ import annotations

from pathlib import Path

from discreet.data.keys import write_key_file
from discreet.errors import InputError
from discreet.protocols.retrieval.signing import Publisher
from discreet.protocols.transport.identity import certificate_pin, read_certificate

__all__ = [
    "CERTIFICATES",
    "KEY",
    "PUBLIC",
    "PUBLISHED",
    "publisher_of",
    "require_kept_back",
    "trusted_pins",
    "trusted_publisher",
]

#: Names beside a policy: tables, the publisher's key, and the certificates of servers.
PUBLISHED, KEY, CERTIFICATES = "published", "publisher.key", "certificates"
#: In the folder of a table: the key that checks its signatures.
PUBLIC = "publisher.pub"


def publisher_of(file: str | Path) -> Publisher:
    """Return the publisher of a key file, which is written the first time."""
    path = Path(file)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_key_file(path)
    return Publisher.read(path)


def require_kept_back(secret: str | Path, published: str | Path) -> None:
    """Refuse a secret file or folder inside the folder that is copied to the servers."""
    if Path(secret).resolve().is_relative_to(Path(published).resolve()):
        raise InputError(
            f"{Path(secret).name!r} is secret, and {Path(published).name!r} is copied to the servers",
            code="key-published",
            hint=f"keep it outside of {published}",
            file=secret,
        )


def trusted_publisher(file: Path) -> str:
    """Return the publisher's public key in a file."""
    if not file.is_file():
        raise InputError(
            f"there is no publisher's key {file}",
            code="publisher-key",
            hint="run `discreet retrieve build`, or copy the file from the publisher",
            file=file,
        )
    return file.read_text(encoding="utf-8", errors="replace").strip()


def trusted_pins(folder: Path, servers: int) -> tuple[str, ...]:
    """Return the pins of all certificates in a folder, at least one for each server."""
    files = sorted(folder.glob("*.crt"))
    if len(files) < servers:
        raise InputError(
            f"{servers} servers are asked, and {folder} holds {len(files)} certificates",
            code="retrieval-pins",
            hint="copy the .crt file of each server there, or write pins=[…]",
            file=folder,
        )
    return tuple(certificate_pin(read_certificate(file)) for file in files)
