"""The order in which keys can be written into a three-wise filter, and the writing."""

from __future__ import annotations

import numpy as np

from discreet.compiling import Array, kernel

__all__ = ["fill_xor", "peel"]


@kernel
def peel(slots: Array, size: int) -> Array:
    """Return keys and a slot that each alone uses, in an order; fewer keys if that fails.

    Repeatedly a slot that only one key uses is given to that key, which is then taken away. Written
    in the reverse order, every key finds its own slot still free. (keys, 3) → (peeled, 2).
    """
    keys = slots.shape[0]
    users = np.zeros(size, np.int64)
    together = np.zeros(size, np.int64)  # XOR of the keys that use a slot: the key if it is one
    for key in range(keys):
        for place in range(3):
            users[slots[key, place]] += 1
            together[slots[key, place]] ^= key
    waiting = np.empty(size, np.int64)
    many = 0
    for slot in range(size):
        if users[slot] == 1:
            waiting[many] = slot
            many += 1
    order = np.empty((keys, 2), np.int64)
    done = 0
    while many > 0:
        many -= 1
        slot = waiting[many]
        if users[slot] != 1:
            continue
        key = together[slot]
        order[done, 0], order[done, 1] = key, slot
        done += 1
        for place in range(3):
            other = slots[key, place]
            users[other] -= 1
            together[other] ^= key
            if users[other] == 1:
                waiting[many] = other
                many += 1
    return order[:done]


@kernel
def fill_xor(table: Array, slots: Array, order: Array) -> None:
    """Make the three slots of each key add up (XOR) to its record, which lies in its own slot."""
    for step in range(order.shape[0] - 1, -1, -1):
        key, own = order[step]
        line = table[own]
        for place in range(3):
            if slots[key, place] != own:
                other = table[slots[key, place]]
                for n in range(line.size):
                    line[n] ^= other[n]
