"""Key files: a secret of the curator in a file of its own."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from pathlib import Path

from discreet.errors import InputError

__all__ = ["read_key_file", "write_key_file"]

_SHORTEST = 16
_DRAWN = re.compile(rb"[0-9a-f]{64}")
#: Different digits of a secret drawn by lot: fewer happen once in 10²³ keys.
_FEWEST = 6


def read_key_file(file: str | Path, *, drawn: bool = False) -> bytes:
    """Return the secret that a key file holds.

    With `drawn` only one that `write_key_file` wrote: any other file can be guessed, or is published.

    >>> read_key_file("no-such.key")
    Traceback (most recent call last):
    discreet.errors.InputError: there is no key file no-such.key ...
    """
    path = Path(file)
    if not path.is_file():
        raise InputError(
            f"there is no key file {path}",
            code="key-not-found",
            hint="write one with: discreet table new-key FILE",
            file=path,
        )
    secret = path.read_bytes().strip()
    if len(secret) < _SHORTEST:
        raise InputError(
            f"the key in {path} has {len(secret)} bytes, which can be guessed",
            code="key-too-short",
            hint="write a new one with: discreet table new-key FILE",
            file=path,
        )
    if drawn and not (_DRAWN.fullmatch(secret) and len(set(secret)) >= _FEWEST):
        raise InputError(
            f"{path} is not a key file: it does not hold 64 hexadecimal digits drawn by lot",
            code="not-a-key",
            hint="write one with: discreet table new-key FILE",
            file=path,
        )
    return hashlib.sha256(secret).digest()


def write_key_file(file: str | Path) -> Path:
    """Write a new secret into a file that only its owner may read; never over an old one."""
    path = Path(file)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as target:
            target.write(secrets.token_hex(32) + "\n")
    except FileExistsError:
        raise InputError(
            f"{path} exists, and a key that is overwritten is lost",
            code="key-exists",
            hint="choose another name, or move the old key away",
            file=path,
        ) from None
    return path
