"""Distributed point functions: two short keys that expand to bits differing in one place.

Boyle, Gilboa and Ishai (2016). A binary tree of seeds; a correction word for each level makes the
two servers' seeds agree everywhere but on the way to the point. A leaf is a block of 128 bits.
Seeds are doubled by AES under fixed keys in the mode of Matyas, Meyer and Oseas: E(x) ⊕ x.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet.protocols.retrieval.lengths import require_length
from discreet.randomness import Randomness

__all__ = ["expand", "key_size", "make_keys"]

_LEAF = 128
_ONE = np.uint64(1)
_CLEARED = ~_ONE
Words = npt.NDArray[np.uint64]
#: Fixed and public; each direction and the leaves have their own.
_KEYS = {word: (b"discreet dpf " + word).ljust(16, b".") for word in (b"L", b"R", b"=")}


def _levels(size: int) -> int:
    return max(-(-size // _LEAF) - 1, 0).bit_length()


def key_size(size: int) -> int:
    """Return the bytes of a key for so many places.

    >>> key_size(1 << 20)
    245
    """
    levels = _levels(size)
    return 1 + 16 + 16 * levels + -(-2 * levels // 8) + 16


@functools.cache
def _cipher(word: bytes) -> Cipher[modes.ECB]:
    # ECB here is AES as a fixed permutation of single blocks, not a way to hide messages.
    return Cipher(algorithms.AES(_KEYS[word]), modes.ECB())  # noqa: S305


def _hashed(seeds: Words, word: bytes) -> Words:
    """Return E(x) ⊕ x for each seed (n, 2)."""
    encryptor: Any = _cipher(word).encryptor()
    mixed = np.frombuffer(encryptor.update(seeds.tobytes()), np.uint64).reshape(-1, 2)
    return mixed ^ seeds


def _doubled(seeds: Words) -> tuple[Words, Words]:
    """Return children (n, 2, 2) of seeds and their control bits (n, 2)."""
    children = np.stack([_hashed(seeds, b"L"), _hashed(seeds, b"R")], axis=1)
    bits = children[:, :, 0] & _ONE
    children[:, :, 0] &= _CLEARED
    return children, bits


def make_keys(size: int, place: int, rng: Randomness) -> tuple[bytes, bytes]:
    """Return two keys whose expansions differ at one place and nowhere else."""
    levels = _levels(size)
    leaf, bit = divmod(place, _LEAF)
    roots = np.frombuffer(rng.bytes(32), np.uint64).reshape(2, 2).copy()
    seeds, control = roots.copy(), np.array([0, 1], np.uint64)
    words, turns = [], []
    for level in range(levels):
        way = leaf >> (levels - 1 - level) & 1
        children, bits = _doubled(seeds)
        # Off the way both servers get the same seed and bit; on it their bits differ.
        word = children[0, 1 - way] ^ children[1, 1 - way]
        turn = bits[0] ^ bits[1] ^ np.array([1 - way, way], np.uint64)
        words.append(word)
        turns.append(turn)
        seeds = children[:, way] ^ (word * control[:, None])
        control = bits[:, way] ^ (turn[way] * control)
    ends = _hashed(seeds, b"=")
    point = np.zeros(2, np.uint64)
    point[bit >> 6] = _ONE << np.uint64(bit & 63)
    packed = np.packbits(np.array(turns, np.uint8).reshape(-1), bitorder="little").tobytes()
    rest = b"".join(word.tobytes() for word in words) + packed
    final = (ends[0] ^ ends[1] ^ point).tobytes()
    return tuple(bytes([n]) + roots[n].tobytes() + rest + final for n in (0, 1))


def expand(key: bytes, size: int) -> npt.NDArray[np.uint8]:
    """Return the bits of a key, packed, for all places and up to a whole leaf.

    >>> from discreet.randomness import Randomness
    >>> one, two = make_keys(1000, 777, Randomness.secure())
    >>> apart = np.unpackbits(expand(one, 1000) ^ expand(two, 1000), bitorder="little")
    >>> np.flatnonzero(apart).tolist()
    [777]
    """
    require_length(key, key_size(size), "the question")
    levels = _levels(size)
    leaves = max(-(-size // _LEAF), 1)
    seeds = np.frombuffer(key, np.uint64, 2, offset=1).reshape(1, 2)
    control = np.array([key[0] & 1], np.uint64)
    words = np.frombuffer(key, np.uint64, 2 * levels, offset=17).reshape(levels, 2)
    packed = np.frombuffer(key, np.uint8, -(-2 * levels // 8), offset=17 + 16 * levels)
    turns = np.unpackbits(packed, bitorder="little")[: 2 * levels].reshape(levels, 2)
    for level in range(levels):
        children, bits = _doubled(seeds)
        children ^= (words[level] * control[:, None])[:, None, :]
        bits ^= turns[level].astype(np.uint64)[None, :] * control[:, None]
        # Leaves beyond the last place are never needed.
        kept = -(-leaves // (1 << (levels - 1 - level)))
        seeds, control = children.reshape(-1, 2)[:kept], bits.reshape(-1)[:kept]
    final = np.frombuffer(key, np.uint64, 2, offset=len(key) - 16)
    ends: Words = _hashed(np.ascontiguousarray(seeds), b"=") ^ (final * control[:, None])
    return ends.reshape(-1).view(np.uint8)
