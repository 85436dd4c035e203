"""Keys of a distributed point function to two servers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from discreet.protocols.retrieval.lengths import require_length
from discreet.protocols.retrieval.point_function import expand, key_size, make_keys
from discreet.protocols.retrieval.schemes._base import (
    Asked,
    Bytes,
    Public,
    Shape,
    require_slots,
)
from discreet.protocols.retrieval.schemes._selecting import SharedSelection, select_rows
from discreet.randomness import Randomness

__all__ = ["DPF"]


@dataclasses.dataclass(frozen=True)
class DPF(SharedSelection):
    r"""Send two servers short keys that expand to bits differing only at the wanted row.

    As with random vectors each server adds up the rows that its bits select, but what goes up grows
    with the logarithm of the table: 245 bytes for a million rows. One key alone is
    indistinguishable from random as long as AES is a good cipher; both keys together show the row.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.randomness import Randomness
    >>> shape, block = Shape(columns=5, width=8), np.arange(40, dtype=np.uint8).reshape(5, 8)
    >>> scheme = DPF()
    >>> asked = scheme.ask(shape, [3], rng=Randomness.secure())
    >>> answers = [scheme.answer(shape, block, [question])[0] for question in asked.questions]
    >>> scheme.read(shape, asked, answers)[:3]
    b'\x18\x19\x1a'
    """

    name: ClassVar[str] = "dpf"
    reference: ClassVar[str] = "Boyle, Gilboa and Ishai (2016), ACM CCS, Function secret sharing"
    assumption: ClassVar[str] = (
        "The two servers do not show each other their questions, and AES is a good cipher."
    )

    @property
    def parties(self) -> int:
        """Two servers."""
        return 2

    def question_size(self, shape: Shape) -> int:
        """One key for each segment."""
        return shape.segments * key_size(shape.segment)

    def ask(
        self,
        shape: Shape,
        slots: Sequence[int],
        *,
        rng: Randomness,
        public: Public | None = None,
    ) -> Asked:
        """Make keys for each segment."""
        require_slots(shape, slots)
        pairs = [make_keys(shape.segment, slot % shape.segment, rng) for slot in slots]
        return Asked(tuple(b"".join(keys) for keys in zip(*pairs, strict=True)), None)

    def answer(self, shape: Shape, block: Bytes, questions: Sequence[bytes]) -> list[bytes]:
        """Expand the keys and add up the selected rows."""
        size = key_size(shape.segment)
        bits = np.zeros((len(questions), -(-shape.slots // 64) * 8), np.uint8)
        for line, question in zip(bits, questions, strict=True):
            require_length(question, self.question_size(shape), "the question")
            parts = [
                expand(question[start : start + size], shape.segment)
                for start in range(0, len(question), size)
            ]
            if len(parts) == 1:
                line[:] = parts[0][: line.size]
            else:  # segments are whole leaves, so their bits join at whole bytes
                line[:] = np.concatenate([part[: shape.segment // 8] for part in parts])
        return select_rows(shape, block, bits)
