"""An encrypted selection to one server."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from discreet.errors import InputError
from discreet.protocols.retrieval.lattice import DIMENSION, SCALE, gaussian, product, public_rows
from discreet.protocols.retrieval.lengths import require_length
from discreet.protocols.retrieval.schemes._base import (
    Asked,
    Bytes,
    Public,
    Scheme,
    Shape,
    require_slots,
)
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["SimplePIR"]


@dataclasses.dataclass(frozen=True)
class SimplePIR(Scheme):
    r"""Send one server an encryption of which column is wanted; it answers under the encryption.

    The table is a matrix of bytes D. The client sends A·s + e + 2²⁴·u, where u selects columns, and
    the server returns D times that. With the hint D·A, fetched once per version, the client takes
    the secret away and rounds off the noise. Every question has a fresh secret and fresh noise.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.protocols.retrieval.lattice import hint_of
    >>> from discreet.randomness import Randomness
    >>> shape, block = Shape(columns=5, width=8), np.arange(40, dtype=np.uint8).reshape(8, 5)
    >>> public = Public(bytes(16), hint_of(block.view(np.int8), bytes(16)))
    >>> scheme = SimplePIR()
    >>> asked = scheme.ask(shape, [3], rng=Randomness.secure(), public=public)
    >>> scheme.read(shape, asked, scheme.answer(shape, block, asked.questions), public)[:3]
    b'\x03\x08\r'
    """

    name: ClassVar[str] = "simple-pir"
    reference: ClassVar[str] = "Henzinger, Hong, Corrigan-Gibbs et al. (2023), USENIX Security"
    arithmetic: ClassVar[Literal["xor", "add"]] = "add"
    needs_hint: ClassVar[bool] = True
    assumption: ClassVar[str] = (
        "One server, which may be anybody: learning with errors (n = 1024, q = 2³², σ = 6.4) is hard."
    )

    shape: Literal["balanced", "small-hint", "small-query"] = parameter(
        "balanced", help="which of hint and question is kept small; decided when a table is built"
    )

    @property
    def parties(self) -> int:
        """One server."""
        return 1

    def question_size(self, shape: Shape) -> int:
        """One 32-bit word per column."""
        return 4 * shape.columns

    def answer_size(self, shape: Shape) -> int:
        """One 32-bit word per row of the matrix."""
        return 4 * shape.rows * shape.width

    def ask(
        self,
        shape: Shape,
        slots: Sequence[int],
        *,
        rng: Randomness,
        public: Public | None = None,
    ) -> Asked:
        """Encrypt the selection of columns under a fresh secret."""
        require_slots(shape, slots)
        hint = _required(public, shape)
        secret = np.frombuffer(rng.bytes(4 * DIMENSION), np.uint32)
        question = gaussian(shape.columns, rng).astype(np.uint32)
        for first, piece in public_rows(hint.seed, shape.columns):
            question[first : first + len(piece)] += product(piece, secret)
        # Whole arrays wrap around modulo 2³²; single numbers would warn.
        question[[slot % shape.columns for slot in slots]] += np.uint32(SCALE)
        row = slots[0] // shape.columns
        # Only the wanted row of blocks is decrypted; the rest of the answer is not looked at.
        wanted = slice(row * shape.width, (row + 1) * shape.width)
        return Asked((question.tobytes(),), (wanted, product(hint.hint[wanted], secret)))

    def answer(self, shape: Shape, block: Bytes, questions: Sequence[bytes]) -> list[bytes]:
        """Multiply the matrix with each question: already at the speed of memory for one."""
        from discreet.protocols.retrieval.kernels.lwe import multiply

        matrix = block.reshape(shape.rows * shape.width, shape.columns).view(np.int8)
        for question in questions:
            require_length(question, self.question_size(shape), "the question")
        return [multiply(matrix, np.frombuffer(one, np.uint32)).tobytes() for one in questions]

    def read(
        self, shape: Shape, asked: Asked, answers: Sequence[bytes], public: Public | None = None
    ) -> bytes:
        """Take the secret away and round."""
        require_length(answers[0], self.answer_size(shape), "the answer")
        wanted, masked = asked.secret
        noisy = np.frombuffer(answers[0], np.uint32)[wanted] - masked
        rounded: Bytes = ((noisy + np.uint32(SCALE // 2)) >> np.uint32(24)).astype(np.uint8)
        return rounded.tobytes()


def _required(public: Public | None, shape: Shape) -> Public:
    if public is None or public.hint.shape != (shape.rows * shape.width, DIMENSION):
        raise InputError(
            "the hint of this version is missing or belongs to another table",
            code="retrieval-hint",
            hint="fetch the hint again",
        )
    return public
