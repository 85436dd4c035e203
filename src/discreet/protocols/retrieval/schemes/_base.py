"""What a scheme of private retrieval is: questions, answers, and who must not collude.

What is held is a *block*: slots of equal width. A question selects one slot, or one in each of
several segments, and its answers tell the client the sum of the selected slots: modulo 2, or byte
by byte modulo 256. Keyword filters need such sums; a single slot is the sum of one.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.randomness import Randomness
from discreet.registry import Member

__all__ = ["Asked", "Bytes", "Public", "Scheme", "Shape", "require_slots"]

Bytes = npt.NDArray[np.uint8]


@dataclasses.dataclass(frozen=True)
class Shape:
    """Layout of a block; everybody knows it.

    `slots` = rows × columns. Sums are over slots of one row. XOR blocks have one row, and each
    question may select one slot in each of `segments` equal parts of it.

    Examples
    --------
    >>> shape = Shape(columns=384, width=64, segments=3)
    >>> shape.slots, shape.segment
    (384, 128)
    """

    columns: int
    width: int
    rows: int = 1
    segments: int = 1

    @property
    def slots(self) -> int:
        """Number of slots."""
        return self.rows * self.columns

    @property
    def segment(self) -> int:
        """Columns of one segment."""
        return self.columns // self.segments


@dataclasses.dataclass(frozen=True)
class Public:
    """What a client fetches once for each version: the seed of a matrix, and what was made with it."""

    seed: bytes
    hint: npt.NDArray[np.uint32]
    #: Weighted sums of the columns, against which answers are checked.
    sums: npt.NDArray[np.uint32]


@dataclasses.dataclass(frozen=True)
class Asked:
    """One question for each server, and what the client keeps to read the answers.

    Any: each scheme keeps something of its own.
    """

    questions: tuple[bytes, ...]
    secret: Any = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Scheme(Member):
    """Fetch slots of a block so that a server learns the size of the block and nothing else."""

    #: How slots are added, which decides how a block is laid out.
    arithmetic: ClassVar[Literal["xor", "add"]] = "xor"
    #: What must hold for the index to stay hidden: the first line of its page.
    assumption: ClassVar[str] = ""
    #: Whether the client needs a hint before it can ask.
    needs_hint: ClassVar[bool] = False
    #: Whether an answer is the whole block, so that its published digest covers all of the answer.
    sends_block: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def parties(self) -> int:
        """How many servers are asked."""

    @abc.abstractmethod
    def question_size(self, shape: Shape) -> int:
        """Return the bytes of a question: the same for every slot."""

    @abc.abstractmethod
    def answer_size(self, shape: Shape) -> int:
        """Return the bytes of an answer: the same for every slot."""

    @abc.abstractmethod
    def ask(
        self,
        shape: Shape,
        slots: Sequence[int],
        *,
        rng: Randomness,
        public: Public | None = None,
    ) -> Asked:
        """Return questions that select slots: one in each segment, all of one row."""

    def arrange(self, shape: Shape, slots: Bytes) -> Bytes:
        """Return slots, (slots, width), as the block that a server of this scheme holds."""
        return slots

    @abc.abstractmethod
    def answer(self, shape: Shape, block: Bytes, questions: Sequence[bytes]) -> list[bytes]:
        """Return a server's answers to the questions of several clients, in one pass if it can."""

    @abc.abstractmethod
    def read(
        self, shape: Shape, asked: Asked, answers: Sequence[bytes], public: Public | None = None
    ) -> bytes:
        """Return the sum of the selected slots."""

    def beside(
        self, shape: Shape, asked: Asked, answers: Sequence[bytes], public: Public | None = None
    ) -> dict[int, bytes]:
        """Return the other slots that an answer tells, by number.

        A client checks them too: else a server that spoils one of them would learn from whether the
        client complains where the selected slot lies.
        """
        return {}

    def is_untouched(
        self, shape: Shape, asked: Asked, answers: Sequence[bytes], public: Public | None = None
    ) -> bool:
        """Whether answers are what right servers send, also where reading would not notice.

        By default every byte of an answer is a byte of what is read, which is signed.
        """
        return True


def require_slots(shape: Shape, slots: Sequence[int]) -> None:
    """Refuse slots that are not one per segment, or not of one row."""
    inside = all(0 <= slot < shape.slots for slot in slots)
    if not slots or not inside or len({slot // shape.columns for slot in slots}) != 1:
        raise InputError(
            f"slots must lie between 0 and {shape.slots - 1}, all in one row of the block",
            code="retrieval-slot",
            hint=f"the table has {shape.slots} places",
        )
    parts = [slot % shape.columns // shape.segment for slot in slots]
    if parts != list(range(shape.segments)):
        raise InputError(
            f"a question selects one slot in each of the {shape.segments} segments of the block",
            code="retrieval-slot",
            hint="give the slots in the order of the segments",
        )
