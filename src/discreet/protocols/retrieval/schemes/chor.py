"""Random vectors to several servers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from discreet.protocols.retrieval.schemes._base import (
    Asked,
    Bytes,
    Public,
    Shape,
    require_slots,
)
from discreet.protocols.retrieval.schemes._selecting import SharedSelection, answered, packed_size
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["Chor"]


@dataclasses.dataclass(frozen=True)
class Chor(SharedSelection):
    r"""Send random bits to all servers but one, and to the last their sum with the wanted bit.

    Each server adds up the rows that its bits select; the answers add up to the wanted row. Any of
    the servers but one together see uniformly random bits, whatever is asked and however much they
    compute. One bit per slot goes up to each server. A server that does not answer stalls the look-up.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.randomness import Randomness
    >>> shape, block = Shape(columns=5, width=8), np.arange(40, dtype=np.uint8).reshape(5, 8)
    >>> scheme = Chor(servers=3)
    >>> asked = scheme.ask(shape, [3], rng=Randomness.secure())
    >>> answers = [scheme.answer(shape, block, [question])[0] for question in asked.questions]
    >>> scheme.read(shape, asked, answers)[:3]
    b'\x18\x19\x1a'
    """

    name: ClassVar[str] = "chor"
    reference: ClassVar[str] = "Chor, Goldreich, Kushilevitz and Sudan (1995), FOCS"
    assumption: ClassVar[str] = (
        "At least one of the servers does not show its questions to the others; nothing is assumed "
        "about what they can compute."
    )

    servers: int = parameter(
        2, help="how many servers are asked; all of them must answer", low=2, high=5
    )

    @property
    def parties(self) -> int:
        """All servers."""
        return self.servers

    def question_size(self, shape: Shape) -> int:
        """One bit per slot."""
        return packed_size(shape)

    def ask(
        self,
        shape: Shape,
        slots: Sequence[int],
        *,
        rng: Randomness,
        public: Public | None = None,
    ) -> Asked:
        """Draw random bits for all servers but the last."""
        require_slots(shape, slots)
        size = packed_size(shape)
        last = np.zeros(size, np.uint8)
        for slot in slots:
            last[slot >> 3] ^= np.uint8(1 << (slot & 7))
        # Bits beyond the last slot are zero for everybody.
        unused = np.uint8(0xFF >> (-shape.slots % 8))
        drawn = []
        for _ in range(self.servers - 1):
            bits = np.frombuffer(rng.bytes(size), np.uint8).copy()
            bits[-1] &= unused
            last ^= bits
            drawn.append(bits.tobytes())
        return Asked((*drawn, last.tobytes()), None)

    def answer(self, shape: Shape, block: Bytes, questions: Sequence[bytes]) -> list[bytes]:
        """Add up the selected rows."""
        return answered(shape, block, questions)
