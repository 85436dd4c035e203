"""The sign of a secret number: eight rounds, whatever the number of numbers.

Every summand x_j is known to two nodes, so its bits are shared already. A carry-save adder turns
three summands into two (one conjunction); the carry into the highest bit of their sum follows from
a tree that joins neighbouring bits to groups: (g, p) of a group says whether it makes a carry, or
passes one on. Each level needs half the bits of the one before. Freed places are filled with the bits
of other numbers: number j shares its words with number j + n/2, which halves the words as well.
"""

from __future__ import annotations

import numpy as np

from discreet.protocols.arithmetic.node import Node
from discreet.protocols.arithmetic.shares import BitShares, Shares, Words

__all__ = ["larger", "less", "negative", "numbers", "unpack"]

_WORD = 64
_LEVELS = 6
#: At level l, places whose bit l is 0 hold the lower group of each pair.
_MASKS = [
    np.uint64(sum(1 << bit for bit in range(_WORD) if not bit >> level & 1))
    for level in range(_LEVELS)
]


def negative(node: Node, x: Shares) -> BitShares:
    """Return whether each number is below zero; numbers lie below 2^62 in size.

    Numbers may stand in several rows; the bits of each row fill words of their own, so that
    bits of two rows can be joined.
    """
    size = x.own.shape[-1]
    rows = x.own.size // max(size, 1)
    found = _highest(node, _arranged(x.own, rows), _arranged(x.next, rows), size)
    shape = (*x.own.shape[:-1], -1)
    return BitShares(found.own.reshape(shape), found.next.reshape(shape), size)


def _arranged(values: Words, rows: int) -> Words:
    """Return the numbers padded to whole words, in 64 parts with a piece of every row in each."""
    size = values.shape[-1]
    padded = np.zeros((rows, size + -size % _WORD), dtype=np.uint64)
    padded[:, :size] = values.reshape(rows, size)
    return padded.reshape(rows, _WORD, -1).transpose(1, 0, 2).reshape(-1)


def _highest(node: Node, own: Words, after: Words, size: int) -> BitShares:
    # Summands 0, 1, 2 as bits: the node that holds x_j puts it in place j, zeros elsewhere. Then
    # A^C and B^C have the places (x0, 0, x2) and (0, x1, x2), and A^B^C is the number's shares.
    def places(*kept: bool) -> BitShares:
        first, second = kept[node.index], kept[(node.index + 1) % 3]
        zero = np.zeros_like(own)
        return BitShares(own if first else zero, after if second else zero, size)

    c = places(False, False, True)
    majority = node.both(places(True, False, True), places(False, True, True), "carry-save") ^ c
    one = np.uint64(1)
    carry = BitShares(majority.own << one, majority.next << one, size)
    total = BitShares(own, after, size)
    sums = total ^ carry
    made = node.both(total, carry, "generate")
    # Places move up by one: place 0 is the carry into bit 0, which is none; bit 63 drops out.
    g = BitShares(made.own << one, made.next << one, size)
    p = BitShares(sums.own << one, sums.next << one, size)
    top = np.uint64(_WORD - 1)
    highest = BitShares(sums.own >> top, sums.next >> top, size)
    for level in range(_LEVELS):
        low_g, high_g = _halves(g, level)
        low_p, high_p = _halves(p, level)
        label = f"level {level}"
        if level == _LEVELS - 1:
            g = high_g ^ node.both(high_p, low_g, label)
        else:
            # Both conjunctions of a level travel in one message.
            found = node.both(_joined(high_p, high_p), _joined(low_g, low_p), label)
            half = found.own.size // 2
            g = high_g ^ BitShares(found.own[:half], found.next[:half], size)
            p = BitShares(found.own[half:], found.next[half:], size)
        highest = _merged(highest, level)
    return highest ^ g


def _halves(x: BitShares, level: int) -> tuple[BitShares, BitShares]:
    """Return the lower and the upper group of each pair, words of two numbers merged."""
    shift, mask = np.uint64(1 << level), _MASKS[level]
    low = BitShares(x.own & mask, x.next & mask, x.size)
    high = BitShares((x.own >> shift) & mask, (x.next >> shift) & mask, x.size)
    return _merged(low, level), _merged(high, level)


def _merged(x: BitShares, level: int) -> BitShares:
    shift, half = np.uint64(1 << level), x.own.size // 2

    def merge(values: Words) -> Words:
        return values[:half] | (values[half:] << shift)

    return BitShares(merge(x.own), merge(x.next), x.size)


def _joined(x: BitShares, y: BitShares) -> BitShares:
    return BitShares(np.concatenate([x.own, y.own]), np.concatenate([x.next, y.next]), x.size)


def unpack(bits: Words, size: int) -> Words:
    """Return packed bits as numbers 0 and 1, in the order of the numbers they belong to."""
    found = bits
    for level in reversed(range(_LEVELS)):
        shift, mask = np.uint64(1 << level), _MASKS[level]
        found = np.concatenate([found & mask, (found >> shift) & mask], axis=-1)
    return found[..., :size]


def less(node: Node, a: Shares, b: Shares) -> BitShares:
    """Return whether a < b, number by number."""
    return negative(node, a - b)


def numbers(node: Node, bits: BitShares) -> Shares:
    """Return secret bits as secret numbers 0 and 1: u + v − 2uv, twice."""
    own, after = unpack(bits.own, bits.size), unpack(bits.next, bits.size)
    zero = np.zeros_like(own)

    def place(j: int) -> Shares:
        return Shares(
            own if node.index == j else zero, after if (node.index + 1) % 3 == j else zero
        )

    def xor(u: Shares, v: Shares) -> Shares:
        return u + v - node.multiply(u, v, "bit to number").times(2)

    return xor(xor(place(0), place(1)), place(2))


def larger(node: Node, a: Shares, b: Shares) -> tuple[Shares, Shares]:
    """Return the larger and the smaller of each two numbers."""
    smaller_first = numbers(node, less(node, a, b))
    largest = a + node.multiply(smaller_first, b - a, "choose")
    return largest, a + b - largest
