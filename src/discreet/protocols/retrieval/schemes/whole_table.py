"""Fetching everything."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

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

__all__ = ["WholeTable"]


@dataclasses.dataclass(frozen=True)
class WholeTable(Scheme):
    r"""Fetch the whole table from one server and look the row up at home.

    With one server and without assumptions about what it can compute, nothing hides the index with
    fewer bytes (Chor et al.): the yardstick for all others, and the best for small tables.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.randomness import Randomness
    >>> shape, block = Shape(columns=5, width=8), np.arange(40, dtype=np.uint8).reshape(5, 8)
    >>> asked = WholeTable().ask(shape, [3], rng=Randomness.secure())
    >>> asked.questions
    (b'',)
    >>> WholeTable().read(shape, asked, WholeTable().answer(shape, block, [b""]))[:3]
    b'\x18\x19\x1a'
    """

    name: ClassVar[str] = "whole-table"
    reference: ClassVar[str] = "Chor, Goldreich, Kushilevitz and Sudan (1995), FOCS"
    assumption: ClassVar[str] = (
        "Nothing is assumed: the server is asked for everything, whatever the user wants."
    )

    sends_block: ClassVar[bool] = True

    @property
    def parties(self) -> int:
        """One server."""
        return 1

    def question_size(self, shape: Shape) -> int:
        """Nothing is asked."""
        return 0

    def answer_size(self, shape: Shape) -> int:
        """All slots."""
        return shape.slots * shape.width

    def ask(
        self,
        shape: Shape,
        slots: Sequence[int],
        *,
        rng: Randomness,
        public: Public | None = None,
    ) -> Asked:
        """Remember the slots."""
        require_slots(shape, slots)
        return Asked((b"",), tuple(slots))

    def answer(self, shape: Shape, block: Bytes, questions: Sequence[bytes]) -> list[bytes]:
        """Return the block, whoever asks."""
        for question in questions:
            require_length(question, 0, "the question")
        whole = block.tobytes()
        return [whole for _ in questions]

    def read(
        self, shape: Shape, asked: Asked, answers: Sequence[bytes], public: Public | None = None
    ) -> bytes:
        """Add the slots."""
        require_length(answers[0], self.answer_size(shape), "the answer")
        block = np.frombuffer(answers[0], np.uint8).reshape(shape.slots, shape.width)
        return bytes(np.bitwise_xor.reduce(block[list(asked.secret)], axis=0))
