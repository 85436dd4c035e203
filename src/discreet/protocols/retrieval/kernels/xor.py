"""Sums modulo 2 of the rows that bits select, at the speed of reading memory.

Rows are selected by masks, never by branches: a branch would show the bits to whoever watches time
or cache. Masks are read from an array, because a compiler that knows a mask to be all or nothing
turns it into a branch.
"""

from __future__ import annotations

import numpy as np

from discreet.compiling import Array, inner, kernel
from discreet.protocols.retrieval.kernels.prefetching import AHEAD, ask_for

__all__ = ["select", "select_many", "total"]

_ONE = np.uint64(1)
_WORD = 64
#: Rows that the queries of a batch take from the cache, one query after another.
_TILE = 16


@inner
def _spread(bits: Array, first: int, masks: Array) -> None:
    """Write the bits from a row on as masks: all ones or zero."""
    for place in range(masks.size):
        row = first + place
        bit = (bits[row >> 6] >> np.uint64(row & 63)) & _ONE
        masks[place] = np.uint64(0) - bit


@inner
def _add_in_order(table: Array, masks: Array, first: int, end: int, total: Array) -> None:
    """Add rows one after another: one stream, which the memory delivers fastest."""
    size = 8 * table.shape[1]
    ahead = table.ctypes.data + AHEAD
    for row in range(first, end):
        mask = masks[row - first]
        line = table[row]
        for place in range(row * size, (row + 1) * size, 64):
            ask_for(ahead + place)
        for word in range(line.size):
            total[word] ^= line[word] & mask


@inner
def _add_in_eights(table: Array, masks: Array, first: int, total: Array) -> None:
    """Add the rows of a tile that is in the cache: eight share one pass over the sum."""
    for row in range(first, first + _TILE, 8):
        n = row - first
        a, b, c, d = masks[n], masks[n + 1], masks[n + 2], masks[n + 3]
        e, f, g, h = masks[n + 4], masks[n + 5], masks[n + 6], masks[n + 7]
        r, s, t, u = table[row], table[row + 1], table[row + 2], table[row + 3]
        v, w, x, y = table[row + 4], table[row + 5], table[row + 6], table[row + 7]
        for n in range(total.size):
            upper = (r[n] & a) ^ (s[n] & b) ^ (t[n] & c) ^ (u[n] & d)
            total[n] ^= upper ^ (v[n] & e) ^ (w[n] & f) ^ (x[n] & g) ^ (y[n] & h)


@inner
def _zeros(words: int) -> Array:
    """Return zeros that begin with a line of memory: sums that share one with others take longer."""
    held = np.zeros(words + 8, np.uint64)
    first = (-held.ctypes.data % 64) // 8
    return held[first : first + words]


@kernel
def select(table: Array, bits: Array) -> Array:
    """Return the sum of the rows whose bits are set: (rows, words), packed bits → (words,)."""
    rows, width = table.shape
    total = _zeros(width)
    base = table.ctypes.data + AHEAD
    masks = np.empty(_WORD, np.uint64)
    for first in range(0, rows, _WORD):
        _spread(bits, first, masks)
        for row in range(first, min(first + _WORD, rows)):
            mask = masks[row - first]
            line = table[row]
            at = base + row * width * 8
            for place in range(0, width * 8, 64):
                ask_for(at + place)
            for word in range(line.size):
                total[word] ^= line[word] & mask
    return total


@kernel
def select_many(table: Array, bits: Array) -> Array:
    """Return such sums for several queries in one pass over memory: bits is (queries, words)."""
    rows, width = table.shape
    totals = _zeros(bits.shape[0] * width).reshape(bits.shape[0], width)
    masks = np.empty(_TILE, np.uint64)
    for first in range(0, rows, _TILE):
        end = min(first + _TILE, rows)
        for query in range(bits.shape[0]):
            _spread(bits[query], first, masks)
            if query == 0 or end - first < _TILE:
                _add_in_order(table, masks, first, end, totals[query])
            else:
                _add_in_eights(table, masks, first, totals[query])
    return totals


@kernel
def total(words: Array) -> Array:
    """Return the sum of all words: what reading memory costs, against which the rest is measured."""
    found = np.uint64(0)
    for place in range(words.size):
        found += words[place]
    return found
