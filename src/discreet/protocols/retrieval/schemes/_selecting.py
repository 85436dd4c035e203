"""What the schemes that add rows modulo 2 have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from discreet.protocols.retrieval.lengths import require_length
from discreet.protocols.retrieval.schemes._base import Asked, Bytes, Public, Scheme, Shape

__all__ = ["SharedSelection", "answered", "packed_size", "select_rows"]


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


@dataclasses.dataclass(frozen=True)
class SharedSelection(Scheme):
    """A scheme whose servers each add up rows; their answers add up to the wanted one."""

    def answer_size(self, shape: Shape) -> int:
        """One slot."""
        return shape.width

    def read(
        self, shape: Shape, asked: Asked, answers: Sequence[bytes], public: Public | None = None
    ) -> bytes:
        """Add up the answers, modulo 2."""
        total = np.zeros(shape.width, np.uint8)
        for answer in answers:
            require_length(answer, shape.width, "the answer")
            total ^= np.frombuffer(answer, np.uint8)
        return total.tobytes()
