"""What the compiled loops compute, written plainly: the tests compare the two."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["fill_xor", "multiply", "peel", "select"]

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]


def select(table: Words, bits: Words) -> Words:
    """Return the sum modulo 2 of the rows whose bits are set."""
    chosen = np.unpackbits(bits.view(np.uint8), bitorder="little")[: len(table)].astype(bool)
    total: Words = np.bitwise_xor.reduce(table[chosen], axis=0)
    return total


def multiply(
    matrix: npt.NDArray[np.int8], vector: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]:
    """Return matrix · vector modulo 2³²."""
    return (matrix.astype(np.int64).astype(np.uint64) @ vector.astype(np.uint64)).astype(np.uint32)


def peel(slots: Integers, size: int) -> Integers:
    """Return keys and a slot that each alone uses, in an order in which they can be taken away."""
    assert slots.max(initial=0) < size
    left = {key: set(row) for key, row in enumerate(slots.tolist())}
    order: list[tuple[int, int]] = []
    while True:
        users: dict[int, list[int]] = {}
        for key, row in left.items():
            for slot in row:
                users.setdefault(slot, []).append(key)
        alone = {keys[0]: slot for slot, keys in users.items() if len(keys) == 1}
        if not alone:
            return np.array(order, np.int64).reshape(-1, 2)
        for key, slot in alone.items():
            order.append((key, slot))
            del left[key]


def fill_xor(table: Words, slots: Integers, order: Integers) -> None:
    """Make the three slots of each key add up (XOR) to the record in its own slot."""
    for key, own in order[::-1]:
        for other in slots[key]:
            if other != own:
                table[own] ^= table[other]
