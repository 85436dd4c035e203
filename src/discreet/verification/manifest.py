"""Manifests: what was published, bound to an entry of a ledger and signed.

A manifest lists the SHA-256 of every file of a release and names the entry under which the ledger
recorded it before the files appeared. It is signed with Ed25519, so that anybody with the public
key can tell whether a byte was changed.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.errors import InputError
from discreet.verification.findings import UNKNOWN, Finding, judged

__all__ = ["MANIFEST", "check_manifest", "file_digests", "read_public_key", "signed_content"]

MANIFEST = "manifest.json"
#: What a manifest has, and nothing else.
FIELDS = frozenset(
    {
        "format", "kind", "audience", "conditions", "files", "records", "joint", "entry",
        "signature", "public_key",
    }
)  # fmt: skip


def file_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder, but not of its manifest."""
    found = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.is_file() and name != MANIFEST:
            with file.open("rb") as content:
                found[name] = hashlib.file_digest(content, "sha256").hexdigest()
    return found


def signed_content(manifest: Mapping[str, Any]) -> bytes:
    """Return what is signed: all of a manifest but the signature. Any: as JSON has it."""
    stated = {name: value for name, value in manifest.items() if name != "signature"}
    return json.dumps(stated, sort_keys=True, separators=(",", ":")).encode()


def read_public_key(file: str | Path) -> bytes:
    """Return the 32 bytes of an Ed25519 public key in a PEM file."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = serialization.load_pem_public_key(Path(file).read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(
            f"{file} holds no public key ({type(error).__name__})",
            code="not-a-public-key",
            hint="give the file that `discreet key new` wrote beside the key, ending in .pub.pem",
            file=file,
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(
            f"{file} holds a key of another kind", code="not-a-public-key", file=file,
            hint="Ed25519 is needed; `discreet key new` writes such a key",
        )  # fmt: skip
    return key.public_bytes_raw()


def check_manifest(folder: Path, key: bytes | None = None) -> list[Finding]:
    """Compare the files of a folder with its manifest, and the manifest with its signature."""
    place = folder / MANIFEST
    if not place.exists():
        if key is None:
            return []
        return [judged(MANIFEST, "signed by the given key", "there is no manifest")]
    try:
        text = place.read_text(encoding="utf-8")
        stated = json.loads(text)
        listed = {str(name): str(digest) for name, digest in stated["files"].items()}
        known = set(stated) <= FIELDS and text == written(stated)
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        return [judged(MANIFEST, "can be read", f"it cannot ({type(error).__name__})")]
    there = file_digests(folder)
    changed = sorted(n for n in {*listed, *there} if listed.get(n) != there.get(n))
    wrong = f"{len(changed):,} files differ, such as {changed[0]}" if changed else None
    found = [
        judged(MANIFEST, "written as manifests are", None if known else "it is not"),
        judged(MANIFEST, "every file as it was published", wrong),
        _signature(stated, key),
    ]
    joint = str(stated.get("joint", "covered"))
    if joint != "covered":
        found.append(Finding(MANIFEST, "safe together with earlier releases", UNKNOWN, joint))
    if stated.get("audience") == "controlled":
        told = "; ".join(map(str, stated.get("conditions") or ["none are stated"]))
        found.append(Finding(MANIFEST, "for receivers who accept conditions", UNKNOWN, told))
    return found


def written(manifest: Mapping[str, Any]) -> str:
    """Return a manifest as the one text that it may be. Any: as JSON has it."""
    return json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _signature(stated: Mapping[str, Any], key: bytes | None) -> Finding:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    what = "signed by the given key" if key is not None else "signed"
    if "signature" not in stated:
        if key is None:
            return Finding(MANIFEST, what, UNKNOWN, "it is not signed")
        return judged(MANIFEST, what, "it is not signed")
    try:
        own = base64.b64decode(str(stated["public_key"]), validate=True)
        if key is not None and own != key:
            return judged(MANIFEST, what, "it is signed by another")
        signature = base64.b64decode(str(stated["signature"]), validate=True)
        Ed25519PublicKey.from_public_bytes(own).verify(signature, signed_content(stated))
    except (InvalidSignature, ValueError, KeyError):
        return judged(MANIFEST, what, "the signature is not of this manifest")
    if key is None:
        return Finding(MANIFEST, what, UNKNOWN, "by a key that was not given to compare")
    return judged(MANIFEST, what, None)
