"""Learning with errors as SimplePIR uses it: the public matrix, the noise, the hint.

Henzinger, Hong, Corrigan-Gibbs, Meiklejohn and Vaikuntanathan (2023). n = 1024, q = 2³², noise of
deviation 6.4, values modulo 256, at most 2²⁰ columns (their table admits values modulo 294 there).
"""

from __future__ import annotations

import decimal
import functools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet.progress import Progress, silent
from discreet.randomness import Randomness

__all__ = [
    "DIMENSION",
    "MOST_COLUMNS",
    "SCALE",
    "Integers",
    "check_weights",
    "gaussian",
    "hint_of",
    "product",
    "public_row",
    "public_rows",
    "sums_of",
]

#: Length of a secret.
DIMENSION = 1024
#: q / 256: what one unit of a value counts in an answer.
SCALE = 1 << 24
MOST_COLUMNS = 1 << 20
_DEVIATION = "6.4"
#: Beyond ten deviations a value has less than one of 2⁶⁴ parts of the probability.
_TAIL = 64
#: Columns whose products with bytes add up exactly in a float64: 128 · 2³² · 4096 < 2⁵³.
_EXACT = 4096

Integers = npt.NDArray[np.uint32]


@functools.cache
def _cumulative() -> npt.NDArray[np.uint64]:
    """Return the distribution function of the discrete Gaussian, in parts of 2⁶⁴."""
    with decimal.localcontext() as context:
        context.prec = 60
        spread = 2 * decimal.Decimal(_DEVIATION) ** 2
        weights = [(-decimal.Decimal(x * x) / spread).exp() for x in range(-_TAIL, _TAIL + 1)]
        total, running, found = sum(weights), decimal.Decimal(0), []
        for weight in weights[:-1]:
            running += weight
            found.append(min(int(running / total * 2**64), 2**64 - 1))
    return np.array(found, np.uint64)


def gaussian(size: int, rng: Randomness) -> npt.NDArray[np.int64]:
    """Return discrete Gaussian numbers by an exact table; they hide a question, not a person.

    >>> drawn = gaussian(100_000, Randomness.seeded(1))
    >>> abs(drawn.mean()) < 0.1, 6.3 < drawn.std() < 6.5
    (np.True_, np.True_)
    """
    return np.searchsorted(_cumulative(), rng.words(size), side="right").astype(np.int64) - _TAIL


def public_rows(seed: bytes, columns: int) -> Iterator[tuple[int, Integers]]:
    """Give the public matrix (columns, n) in pieces: the first row of each, and the piece.

    The matrix is the key stream of AES-128 in counter mode, so any piece can be made alone.
    """
    stream = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor()
    for first in range(0, columns, _EXACT):
        rows = min(_EXACT, columns - first)
        made = stream.update(bytes(4 * DIMENSION * rows))
        yield first, np.frombuffer(made, np.uint32).reshape(rows, DIMENSION)


def public_row(seed: bytes, row: int) -> Integers:
    """Return one row of the public matrix."""
    counter = (row * 4 * DIMENSION // 16).to_bytes(16, "big")
    stream = Cipher(algorithms.AES(seed), modes.CTR(counter)).encryptor()
    return np.frombuffer(stream.update(bytes(4 * DIMENSION)), np.uint32)


def check_weights(seed: bytes, rows: int) -> Integers:
    """Return a public weight for each row of a matrix, all odd.

    An odd number times a change is zero modulo 2³² only if there is no change: a weighted sum shows
    every change of one word.

    >>> bool((check_weights(bytes(16), 100) % 2 == 1).all())
    True
    """
    # The public matrix never counts this far.
    stream = Cipher(algorithms.AES(seed), modes.CTR(b"\xff" * 8 + bytes(8))).encryptor()
    return np.frombuffer(stream.update(bytes(4 * rows)), np.uint32) | np.uint32(1)


def sums_of(matrix: npt.NDArray[np.int8], seed: bytes) -> Integers:
    """Return the weighted sum of each column of a matrix modulo 2³², exact in float64 as the hint.

    >>> sums_of(np.zeros((3, 2), np.int8), bytes(16))
    array([0, 0], dtype=uint32)
    """
    rows, columns = matrix.shape
    weights = check_weights(seed, rows).astype(np.float64)
    sums = np.zeros(columns, np.uint32)
    for row in range(0, rows, _EXACT):
        for first in range(0, columns, _EXACT):
            block = matrix[row : row + _EXACT, first : first + _EXACT].astype(np.float64)
            added = (weights[row : row + _EXACT] @ block).astype(np.int64)
            sums[first : first + _EXACT] += added.astype(np.uint32)
    return sums


def product(matrix: Integers, vector: Integers) -> Integers:
    """Return matrix · vector modulo 2³² (numpy's integer product wraps around)."""
    return matrix @ vector


def hint_of(matrix: npt.NDArray[np.int8], seed: bytes, *, progress: Progress = silent) -> Integers:
    """Return the hint: matrix · public matrix modulo 2³², in blocks that are exact in float64."""
    rows, columns = matrix.shape
    hint = np.zeros((rows, DIMENSION), np.uint32)
    for first, piece in public_rows(seed, columns):
        progress("hint", first, columns)
        public = piece.astype(np.float64)
        for row in range(0, rows, _EXACT):
            block = matrix[row : row + _EXACT, first : first + len(piece)].astype(np.float64)
            hint[row : row + _EXACT] += (block @ public).astype(np.int64).astype(np.uint32)
    return hint
