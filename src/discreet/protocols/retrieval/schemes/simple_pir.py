"""An encrypted selection to one server."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from discreet.errors import InputError
from discreet.protocols.retrieval.lattice import (
    DIMENSION,
    SCALE,
    check_weights,
    gaussian,
    product,
    public_rows,
)
from discreet.protocols.retrieval.lengths import require_length
from discreet.protocols.retrieval.schemes._base import (
    Asked,
    Bytes,
    Public,
    Scheme,
    Shape,
    require_slots,
)
from discreet.protocols.retrieval.schemes._panels import matrix_of, panelled, panels_of
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
    >>> from discreet.protocols.retrieval.lattice import hint_of, sums_of
    >>> from discreet.randomness import Randomness
    >>> from discreet.protocols.retrieval.schemes._panels import matrix_of
    >>> shape, slots = Shape(columns=5, width=8), np.arange(40, dtype=np.uint8).reshape(5, 8)
    >>> matrix = matrix_of(shape, slots)
    >>> public = Public(bytes(16), hint_of(matrix, bytes(16)), sums_of(matrix, bytes(16)))
    >>> scheme = SimplePIR()
    >>> block = scheme.arrange(shape, slots)
    >>> asked = scheme.ask(shape, [3], rng=Randomness.secure(), public=public)
    >>> scheme.read(shape, asked, scheme.answer(shape, block, asked.questions), public)[:3]
    b'\x18\x19\x1a'
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
        return Asked((question.tobytes(),), (slots, secret))

    def arrange(self, shape: Shape, slots: Bytes) -> Bytes:
        """Lay the matrix out in panels, which are read as one stream."""
        return panelled(matrix_of(shape, slots))

    def answer(self, shape: Shape, block: Bytes, questions: Sequence[bytes]) -> list[bytes]:
        """Multiply the matrix with each question: already at the speed of memory for one."""
        from discreet.protocols.retrieval.kernels.lwe import multiply

        lines = panels_of(shape, block).view(np.int8)
        answers = []
        for question in questions:
            require_length(question, self.question_size(shape), "the question")
            words = np.zeros((lines.shape[1], 4, 4), np.uint8)
            words.reshape(-1)[: len(question)] = np.frombuffer(question, np.uint8)
            planes = np.ascontiguousarray(words.transpose(0, 2, 1))
            answers.append(multiply(lines, planes)[: shape.rows * shape.width].tobytes())
        return answers

    def read(
        self, shape: Shape, asked: Asked, answers: Sequence[bytes], public: Public | None = None
    ) -> bytes:
        """Take the secret away and round."""
        row = asked.secret[0][0] // shape.columns
        return bytes(self._records(shape, asked, answers, public, slice(row, row + 1)))

    def beside(
        self, shape: Shape, asked: Asked, answers: Sequence[bytes], public: Public | None = None
    ) -> dict[int, bytes]:
        """Return the records above and below the selected one, in the same column."""
        (slot, *_), _ = asked.secret
        row, column = divmod(slot, shape.columns)
        records = self._records(shape, asked, answers, public, slice(0, shape.rows))
        return {
            n * shape.columns + column: record.tobytes()
            for n, record in enumerate(records)
            if n != row
        }

    def is_untouched(
        self, shape: Shape, asked: Asked, answers: Sequence[bytes], public: Public | None = None
    ) -> bool:
        """Compare the weighted sum of the answer with that of the columns times the question.

        Rounding takes small changes away, so the records alone would not show them. The comparison
        does not depend on what is selected: it uses the question as the server got it.
        """
        known = _required(public, shape)
        answer = np.frombuffer(answers[0], np.uint32)
        expected = product(known.sums, np.frombuffer(asked.questions[0], np.uint32))
        return bool(product(check_weights(known.seed, answer.size), answer) == expected)

    def _records(
        self,
        shape: Shape,
        asked: Asked,
        answers: Sequence[bytes],
        public: Public | None,
        rows: slice,
    ) -> Bytes:
        require_length(answers[0], self.answer_size(shape), "the answer")
        _, secret = asked.secret
        hint = _required(public, shape).hint
        wanted = slice(rows.start * shape.width, rows.stop * shape.width)
        noisy = np.frombuffer(answers[0], np.uint32)[wanted] - product(hint[wanted], secret)
        rounded = (noisy + np.uint32(SCALE // 2)) >> np.uint32(24)
        return rounded.astype(np.uint8).reshape(-1, shape.width)


def _required(public: Public | None, shape: Shape) -> Public:
    if public is None or (public.hint.shape, public.sums.shape) != (
        (shape.rows * shape.width, DIMENSION),
        (shape.columns,),
    ):
        raise InputError(
            "the hint of this version is missing or belongs to another table",
            code="retrieval-hint",
            hint="fetch the hint again",
        )
    return public
