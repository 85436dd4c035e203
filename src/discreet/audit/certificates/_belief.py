"""The compiled comparison of deviations with what contributors know.

Imported only where it runs, since compiling takes a moment.
"""

# Any in the annotations of compiled functions would tell nothing: numba types them itself.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

import numba
import numpy as np

__all__ = ["believed"]

#: Attackers that can refute an alternative table, stored per table; beyond this many, all count
#: as unanswered.
_MOST = 1024


@numba.njit(cache=True)
def _knows(move, entry, fall, sole):
    """Whether what an entry says excludes the move."""
    return sole[entry] or move < -fall[entry] - 1e-9 * max(1.0, abs(move))


@numba.njit(cache=True)
def _disbelieves(one, target, row, start, cells, moves, same, by_cell, who, fall, sole):
    """Whether an attacker knows that a certificate for a target is not true."""
    for at in range(start[row], start[row + 1]):
        cell = cells[at]
        if same[cell] == same[target]:
            continue
        for entry in range(by_cell[cell], by_cell[cell + 1]):
            if who[entry] == one and _knows(moves[at], entry, fall, sole):
                return True
    return False


@numba.njit(cache=True)
def believed(targets, rows, start, cells, moves, same, owner, pool, by_cell, who, fall, sole):
    """Return for each entry (ordered by target) whether every attacker is answered there."""
    met = np.zeros(len(targets), np.bool_)
    left = np.zeros(_MOST, np.int64)
    at = 0
    while at < len(targets):
        target, first, number = targets[at], True, 0
        while at < len(targets) and targets[at] == target:
            if first:
                row = rows[at]
                for place in range(start[row], start[row + 1]):
                    cell = cells[place]
                    if same[cell] == same[target]:
                        continue
                    for entry in range(by_cell[cell], by_cell[cell + 1]):
                        one = who[entry]
                        if one == owner[target] or one == pool[target]:
                            continue
                        if _knows(moves[place], entry, fall, sole) and number < _MOST:
                            left[number] = one
                            number += 1
                # There are more than can be stored: the next alternative table starts with all attackers.
                first = number == _MOST
                if first:
                    number = 0
                elif number == 0:
                    met[at] = True
            elif number:
                kept = 0
                for place in range(number):
                    if _disbelieves(
                        left[place], target, rows[at], start, cells, moves,
                        same, by_cell, who, fall, sole,
                    ):  # fmt: skip
                        left[kept] = left[place]
                        kept += 1
                number = kept
                if number == 0:
                    met[at] = True
            at += 1
    return met
