"""Who changes places with whom in rank swapping."""

from __future__ import annotations

import numpy as np

from discreet.compiling import Array, kernel
from discreet.randomness import Randomness

__all__ = ["partners"]

_TRIES = 8


def partners(size: int, window: int, rng: Randomness, *, block: int = 1_000_000) -> Array:
    """Return for each rank the rank it changes places with.

    Random numbers are drawn for a `block` of ranks at a time, to bound memory.

    >>> found = partners(5, 2, Randomness.seeded(1))
    >>> bool((found[found] == np.arange(5)).all()), int(abs(found - np.arange(5)).max()) <= 2
    (True, True)
    """
    partner = np.arange(size, dtype=np.int32 if size < 1 << 31 else np.int64)
    free = np.ones(size, np.bool_)
    for start in range(0, size, block):
        stop = min(start + block, size)
        # Half of the ranks of a whole file find a partner above; in a block all of them may.
        ranks = size // 2 + 1 if stop - start == size else stop - start
        _pair(partner, free, start, stop, window, rng.uniform(ranks * (_TRIES + 1)))
    return partner


@kernel
def _pair(partner: Array, free: Array, start: int, stop: int, window: int, unit: Array) -> None:
    """Give partners to the free ranks of a block.

    From the smallest up, each free rank takes a free rank drawn from the window above it. A few
    draws find one almost always; after that the free ranks of the window are counted, so
    that the choice stays uniform and always ends.
    """
    size = partner.size
    drawn = 0
    for rank in range(start, stop):
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
