"""Compiled sums over the atoms of one block; imported only where they run."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import numpy as np

from discreet.compiling import Array, kernel

__all__ = ["added", "gram", "numbered", "spread"]


@kernel
def numbered(codes: Array, wanted: Array, place: Array) -> Array:
    """Return numbers of the wanted codes by their first occurrence, and −1 for all others.

    `place` is −1 everywhere, before and after.
    """
    many, width = codes.shape
    found = np.full((many, width), -1, np.int64)
    known = np.empty(many * width, np.int64)
    size = 0
    for atom in range(many):
        for column in range(width):
            code = codes[atom, column]
            if code < 0 or not wanted[code]:
                continue
            if place[code] < 0:
                place[code] = size
                known[size] = code
                size += 1
            found[atom, column] = place[code]
    for number in range(size):
        place[known[number]] = -1
    return found, known[:size].copy()


@kernel
def gram(rows: Array, weight: Array, size: int) -> Array:
    """Return the inner products of the rows, each a sum of atoms with these weights."""
    many, width = rows.shape
    found = np.zeros((size, size))
    mine = np.empty(width, np.int64)
    for atom in range(many):
        filled = 0
        for column in range(width):
            if rows[atom, column] >= 0:
                mine[filled] = rows[atom, column]
                filled += 1
        for one in range(filled):
            for other in range(filled):
                found[mine[one], mine[other]] += weight[atom]
    return found


@kernel
def added(rows: Array, moves: Array, size: int) -> Array:
    """Return by how much each row changes where the atoms move so."""
    many, width = rows.shape
    draws = moves.shape[1]
    found = np.zeros((size, draws))
    for atom in range(many):
        for column in range(width):
            row = rows[atom, column]
            if row >= 0:
                for draw in range(draws):
                    found[row, draw] += moves[atom, draw]
    return found


@kernel
def spread(rows: Array, weight: Array, by: Array, moves: Array) -> None:
    """Take from each atom's moves the weighted sum over its rows."""
    many, width = rows.shape
    draws = moves.shape[1]
    for atom in range(many):
        for column in range(width):
            row = rows[atom, column]
            if row >= 0:
                for draw in range(draws):
                    moves[atom, draw] -= weight[atom] * by[row, draw]
