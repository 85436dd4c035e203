"""What the schemes that add rows modulo 2 have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.protocols.retrieval.lengths import require_length
from discreet.protocols.retrieval.schemes._base import Bytes, Shape

__all__ = ["added", "answered", "packed_size", "select_rows"]


def packed_size(shape: Shape) -> int:
    """Return the bytes of one bit per slot."""
    return -(-shape.slots // 8)


def answered(shape: Shape, block: Bytes, questions: Sequence[bytes]) -> list[bytes]:
    """Return the sum of rows that each question's bits select."""
    for question in questions:
        require_length(question, packed_size(shape), "the question")
    # The kernel reads whole words.
    bits = np.zeros((len(questions), -(-shape.slots // 64) * 8), np.uint8)
    for line, question in zip(bits, questions, strict=True):
        line[: len(question)] = np.frombuffer(question, np.uint8)
    return select_rows(shape, block, bits)


def select_rows(shape: Shape, block: Bytes, bits: Bytes) -> list[bytes]:
    """Return the sums of rows for several vectors of bits: (questions, bytes, whole words)."""
    from discreet.protocols.retrieval.kernels.xor import select, select_many

    table = block.reshape(shape.slots, shape.width).view(np.uint64)
    words = bits.view(np.uint64)
    if len(words) == 1:
        return [select(table, words[0]).tobytes()]
    return [line.tobytes() for line in select_many(table, words)]


def added(shape: Shape, answers: Sequence[bytes]) -> bytes:
    """Return the sum modulo 2 of the servers' answers."""
    total = np.zeros(shape.width, np.uint8)
    for answer in answers:
        require_length(answer, shape.width, "the answer")
        total ^= np.frombuffer(answer, np.uint8)
    return total.tobytes()
