"""Keys that sign: Ed25519, the private one in a file for its owner alone."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.atomic import atomic_file
from discreet.errors import InputError
from discreet.verification.manifest import signed_content

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["new_signing_key", "read_signing_key", "signed"]


def new_signing_key(file: str | Path) -> tuple[Path, Path]:
    """Write a new key pair: the private key for its owner alone, the public one beside it.

    >>> import tempfile
    >>> private, public = new_signing_key(Path(tempfile.mkdtemp()) / "office.pem")
    >>> private.name, public.name
    ('office.pem', 'office.pub.pem')
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    path = Path(file)
    public = path.with_suffix(".pub.pem")
    for one in (path, public):
        if one.exists():
            raise InputError(
                f"{one} exists, and a key that is overwritten is lost",
                code="key-exists",
                hint="choose another name, or move the old key away",
                file=one,
            )
    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
        target.write(text)
    shown = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    with atomic_file(public) as temporary:
        temporary.write_bytes(shown)
    return path, public


def signed(content: Mapping[str, Any], file: str | Path) -> dict[str, Any]:
    """Return plain data with the public key and the signature over all of it. Any: as JSON has it."""
    key = read_signing_key(file)
    public = base64.b64encode(key.public_key().public_bytes_raw()).decode()
    stated = {**content, "public_key": public}
    signature = key.sign(signed_content(stated))
    return {**stated, "signature": base64.b64encode(signature).decode()}


def read_signing_key(file: str | Path) -> Ed25519PrivateKey:
    """Return the private key in a file; refuse what is none."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        key = serialization.load_pem_private_key(Path(file).read_bytes(), password=None)
    except FileNotFoundError:
        raise InputError(
            f"there is no key file {file}",
            code="key-not-found",
            hint="write one with: discreet key new FILE --for release",
            file=file,
        ) from None
    except (OSError, ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(
            f"{file} holds no key that signs",
            code="not-a-signing-key",
            hint="write one with: discreet key new FILE --for release",
            file=file,
        )
    return key
