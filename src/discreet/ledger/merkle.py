"""Merkle trees over the entries of a ledger: one entry is shown to lie under a head, others stay unseen.

The tree is that of RFC 6962: leaves and nodes are hashed behind different bytes, and a tree of n leaves
is split at the largest power of two below n.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence

from discreet.report import Report

__all__ = ["Proof", "prove", "root"]


@dataclasses.dataclass(frozen=True)
class Proof(Report):
    """That one entry lies under the root of a ledger.

    Examples
    --------
    >>> hashes = [str(n) * 64 for n in range(5)]
    >>> proof = prove(hashes, 3)
    >>> proof.root == root(hashes), proof.holds, len(proof.path)
    (True, True, 3)
    >>> dataclasses.replace(proof, hash="9" * 64).holds
    False
    """

    number: int
    #: The hash of the entry.
    hash: str
    #: How many entries lie under the root.
    entries: int
    #: Hashes of the siblings on the path from the entry up to the root.
    path: tuple[str, ...]
    root: str

    @property
    def holds(self) -> bool:
        """Whether entry and path lead to the root."""
        try:
            return _climbed(self.number - 1, self.entries, self.hash, self.path) == self.root
        except ValueError:
            return False


def root(hashes: Sequence[str]) -> str:
    """Return the root over the hashes of entries, from the first on.

    >>> root([]) == hashlib.sha256().hexdigest()
    True
    """
    return _root([_leaf(one) for one in hashes]).hex()


def prove(hashes: Sequence[str], number: int) -> Proof:
    """Return the proof for an entry by its number, which starts at 1."""
    leaves = [_leaf(one) for one in hashes]
    path = tuple(node.hex() for node in _path(leaves, number - 1))
    return Proof(number, hashes[number - 1], len(hashes), path, _root(leaves).hex())


def _leaf(text: str) -> bytes:
    return hashlib.sha256(b"\x00" + bytes.fromhex(text)).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def _split(size: int) -> int:
    return 1 << ((size - 1).bit_length() - 1)


def _root(leaves: Sequence[bytes]) -> bytes:
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return leaves[0]
    middle = _split(len(leaves))
    return _node(_root(leaves[:middle]), _root(leaves[middle:]))


def _path(leaves: Sequence[bytes], place: int) -> list[bytes]:
    if len(leaves) <= 1:
        return []
    middle = _split(len(leaves))
    if place < middle:
        return [*_path(leaves[:middle], place), _root(leaves[middle:])]
    return [*_path(leaves[middle:], place - middle), _root(leaves[:middle])]


def _climbed(place: int, size: int, entry: str, path: Sequence[str]) -> str:
    """Return the root that an entry and the hashes beside its way lead to."""
    if not 0 <= place < size:
        raise ValueError
    turns = []
    while size > 1:
        middle = _split(size)
        turns.append(place < middle)
        place, size = (place, middle) if place < middle else (place - middle, size - middle)
    if len(turns) != len(path):
        raise ValueError
    found = _leaf(entry)
    for is_left, beside in zip(reversed(turns), path, strict=True):
        other = bytes.fromhex(beside)
        found = _node(found, other) if is_left else _node(other, found)
    return found.hex()
