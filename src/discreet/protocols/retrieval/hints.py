"""What a client of a scheme with one server holds of a block: as a file, and after changes.

A changed slot touches one column of the matrix, so the hint changes by the difference of the two
records times one row of the public matrix: about a kilobyte for each changed row instead of the hint.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from discreet.errors import RefusedError
from discreet.progress import Progress, silent
from discreet.protocols.retrieval.lattice import (
    DIMENSION,
    Integers,
    check_weights,
    hint_of,
    public_row,
    sums_of,
)
from discreet.protocols.retrieval.schemes._base import Bytes, Public, Shape

__all__ = ["change_list", "old_table", "packed", "packed_size", "patched", "public_of", "unpacked"]

#: Changed slots whose products add up exactly in a float64: 255 · 2³² · 4096 < 2⁵³.
_EXACT = 4096


def public_of(matrix: npt.NDArray[np.int8], seed: bytes, *, progress: Progress = silent) -> Public:
    """Return what clients fetch of a matrix."""
    return Public(seed, hint_of(matrix, seed, progress=progress), sums_of(matrix, seed))


def packed(public: Public) -> Integers:
    """Return the words of a hint's file: the hint, then the sums of the columns."""
    return np.concatenate([public.hint.reshape(-1), public.sums])


def packed_size(shape: Shape) -> int:
    """Return the bytes of a hint's file.

    >>> packed_size(Shape(columns=32768, width=1024, rows=32)) >> 20
    128
    """
    return 4 * (DIMENSION * shape.rows * shape.width + shape.columns)


def unpacked(seed: bytes, words: Integers, shape: Shape) -> Public:
    """Return what a hint's file holds.

    Raises
    ------
    RefusedError
        If it has no sums, as older versions wrote it.
    """
    if words.nbytes != packed_size(shape):
        raise old_table("this table")
    hint = words[: -shape.columns].reshape(-1, DIMENSION)
    return Public(seed, hint, words[-shape.columns :])


def old_table(name: str) -> RefusedError:
    """Return the error about a table whose answers cannot be checked as they should be."""
    return RefusedError(
        f"{name} was built by an older version, with which a server that lies can find out what is "
        "looked for, or is not noticed",
        code="old-table",
        hint="ask the publisher to build it again",
    )


def change_list(before: Bytes, after: Bytes) -> bytes:
    """Return what changed between two versions of the slots, (slots, width).

    For each changed slot its number, and by how much each byte changed: nine bits; compressed, as
    most of a record often stays.
    """
    changed = np.flatnonzero((before != after).any(axis=1))
    # Bytes count as −128 … 127, as in the matrix.
    moved = after[changed].view(np.int8).astype(np.int16)
    moved -= before[changed].view(np.int8).astype(np.int16)
    signs = np.packbits(moved < 0, axis=1)
    written = changed.astype("<u4").tobytes() + moved.astype(np.uint8).tobytes() + signs.tobytes()
    return zlib.compress(written)


def patched(public: Public, shape: Shape, changes: bytes) -> Public:
    """Return hint and sums after a list of changes, without the rest of the table.

    >>> from discreet.protocols.retrieval.schemes._panels import matrix_of
    >>> shape, before = Shape(columns=5, width=8), np.arange(40, dtype=np.uint8).reshape(5, 8)
    >>> after = before.copy()
    >>> after[3] = 200
    >>> one, two = (public_of(matrix_of(shape, slots), bytes(16)) for slots in (before, after))
    >>> made = patched(one, shape, change_list(before, after))
    >>> bool((packed(made) == packed(two)).all())
    True

    Raises
    ------
    RefusedError
        If it is no list of changes of such a table.
    """
    slots, moved = _read(shape, changes)
    made = Public(public.seed, public.hint.copy(), public.sums.copy())
    rows, columns = np.divmod(slots, shape.columns)
    weights = check_weights(public.seed, shape.rows * shape.width).reshape(shape.rows, -1)
    for row in np.unique(rows).tolist():
        place = slice(row * shape.width, (row + 1) * shape.width)
        inside = np.flatnonzero(rows == row)
        for first in range(0, inside.size, _EXACT):
            some = inside[first : first + _EXACT]
            public_part = np.stack([public_row(public.seed, n) for n in columns[some].tolist()])
            added = moved[some].T.astype(np.float64) @ public_part.astype(np.float64)
            made.hint[place] += added.astype(np.int64).astype(np.uint32)
            made.sums[columns[some]] += moved[some].astype(np.uint32) @ weights[row]
    return made


def _read(shape: Shape, changes: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the changed slots, and by how much each byte changed."""
    size = 4 + shape.width + -(-shape.width // 8)
    try:
        # No more than the table could change, whatever the list claims.
        stream = zlib.decompressobj()
        written = stream.decompress(changes, shape.slots * size + 1)
        many, rest = divmod(len(written), size)
        slots = np.frombuffer(written, "<u4", many).astype(np.int64)
        if (
            not stream.eof
            or rest
            or many > shape.slots
            or np.any(slots >= shape.slots)
            or np.any(np.diff(slots) <= 0)
        ):
            raise ValueError
    except (ValueError, zlib.error):
        raise RefusedError(
            "the list of changes does not fit the table",
            code="bad-hint",
            hint="fetch the hint again",
        ) from None
    low = np.frombuffer(written, np.uint8, many * shape.width, 4 * many).astype(np.int64)
    signs = np.frombuffer(written, np.uint8, offset=(4 + shape.width) * many).reshape(many, -1)
    moved = low.reshape(many, -1) - (
        np.unpackbits(signs, axis=1, count=shape.width).astype(int) << 8
    )
    return slots, moved
