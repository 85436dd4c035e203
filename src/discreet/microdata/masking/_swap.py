"""Who changes places with whom in rank swapping."""

from __future__ import annotations

import numpy as np

from discreet.compiling import Array, kernel

__all__ = ["draws", "partners"]

_TRIES = 8


def draws(size: int) -> int:
    """Return how many uniform numbers the pairs can need at most."""
    return (size // 2 + 1) * (_TRIES + 1)


@kernel
def partners(size: int, window: int, unit: Array) -> Array:
    """Return for each rank the rank it changes places with.

    From the smallest up, each free rank takes a free rank drawn from the window above it. A few
    draws find one almost always; after that the free ranks of the window are counted, so
    that the choice stays uniform and always ends. `unit` holds at least `draws(size)` numbers.
    """
    partner = np.arange(size)
    free = np.ones(size, np.bool_)
    drawn = 0
    for rank in range(size):
        if not free[rank]:
            continue
        free[rank] = False
        reach = min(window, size - 1 - rank)
        if reach == 0:
            continue
        chosen = -1
        for _ in range(_TRIES):
            guess = rank + 1 + int(unit[drawn] * reach)
            drawn += 1
            if free[guess]:
                chosen = guess
                break
        if chosen < 0:
            choices = 0
            for guess in range(rank + 1, rank + 1 + reach):
                choices += free[guess]
            if choices == 0:
                continue
            skip = int(unit[drawn] * choices)
            drawn += 1
            for guess in range(rank + 1, rank + 1 + reach):
                if free[guess]:
                    if skip == 0:
                        chosen = guess
                        break
                    skip -= 1
        free[chosen] = False
        partner[rank], partner[chosen] = chosen, rank
    return partner
