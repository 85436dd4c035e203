"""Laws of schemes of private retrieval: the right row, and views that tell nothing of it."""

from __future__ import annotations

import dataclasses
import functools
from typing import ClassVar

import numpy as np
import pytest

from discreet.errors import InputError
from discreet.protocols.retrieval.hints import public_of
from discreet.protocols.retrieval.schemes._base import Asked, Public, Scheme, Shape
from discreet.protocols.retrieval.schemes._panels import matrix_of
from discreet.protocols.retrieval.schemes.chor import Chor
from discreet.protocols.retrieval.schemes.simple_pir import SimplePIR
from discreet.protocols.retrieval.views import view_test
from discreet.randomness import Randomness
from tests.laws.parameters import examples

SEED = bytes(range(16))


def held(scheme: Scheme, shape: Shape, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return a block as the scheme lays it out, and its slots in order."""
    slots = np.random.default_rng(seed).integers(0, 256, (shape.slots, shape.width), dtype=np.uint8)
    return scheme.arrange(shape, slots), slots


def published(scheme: Scheme, shape: Shape, slots: np.ndarray) -> Public | None:
    return public_of(matrix_of(shape, slots), SEED) if scheme.needs_hint else None


def fetched(scheme: Scheme, shape: Shape, block, slots, rng, public) -> bytes:
    asked = scheme.ask(shape, slots, rng=rng, public=public)
    assert len(asked.questions) == scheme.parties
    answers = [scheme.answer(shape, block, [question])[0] for question in asked.questions]
    return scheme.read(shape, asked, answers, public)


def total(scheme: Scheme, slots: np.ndarray) -> bytes:
    if scheme.arithmetic == "xor":
        return np.bitwise_xor.reduce(slots, axis=0).tobytes()
    return slots.sum(axis=0, dtype=np.uint8).tobytes()


def gives_the_selected_slots(member: type[Scheme]) -> None:
    for scheme in examples(member):
        rows = 1 if scheme.arithmetic == "xor" else 3
        for columns, segments in ((1, 1), (7, 1), (129, 1), (200, 1), (384, 3)):
            shape = Shape(columns=columns, width=16, rows=rows, segments=segments)
            block, slots = held(scheme, shape)
            public = published(scheme, shape, slots)
            rng = Randomness.seeded(columns)
            starts = range(shape.segment) if shape.slots < 250 else range(0, shape.segment, 29)
            for start in starts:
                for row in range(rows):
                    wanted = [
                        row * columns + part * shape.segment + (start * (part + 1)) % shape.segment
                        for part in range(segments)
                    ]
                    found = fetched(scheme, shape, block, wanted, rng, public)
                    assert found == total(scheme, slots[wanted]), f"{scheme}: {columns}, {wanted}"


def answers_a_batch_as_one_by_one(member: type[Scheme]) -> None:
    shape = Shape(columns=150, width=64)
    for scheme in examples(member):
        block, slots = held(scheme, shape)
        public = published(scheme, shape, slots)
        rng = Randomness.seeded(2)
        asked = [scheme.ask(shape, [n], rng=rng, public=public).questions[0] for n in (0, 9, 149)]
        alone = [scheme.answer(shape, block, [question])[0] for question in asked]
        assert scheme.answer(shape, block, asked) == alone


def sizes_tell_nothing(member: type[Scheme]) -> None:
    shape = Shape(columns=300, width=16)
    for scheme in examples(member):
        block, slots = held(scheme, shape)
        public = published(scheme, shape, slots)
        for slot in (0, 1, 255, 299):
            asked = scheme.ask(shape, [slot], rng=Randomness.secure(), public=public)
            for question in asked.questions:
                assert len(question) == scheme.question_size(shape)
                (answer,) = scheme.answer(shape, block, [question])
                assert len(answer) == scheme.answer_size(shape)


def one_view_tells_nothing(member: type[Scheme]) -> None:
    shape = Shape(columns=96, width=8)
    for scheme in examples(member):
        _, slots = held(scheme, shape)
        public = published(scheme, shape, slots)
        for server in range(scheme.parties):
            if not scheme.question_size(shape):
                continue
            found = view_test(
                scheme,
                shape,
                ([3], [77]),
                views=800,
                rng=Randomness.seeded(3),
                server=server,
                public=public,
            )
            # Four standard errors: many views are tried here.
            assert abs(found.auc - 0.5) <= 4 * found.standard_error, f"{scheme}, server {server}"


def refuses_what_does_not_fit(member: type[Scheme]) -> None:
    shape = Shape(columns=100, width=8)
    for scheme in examples(member):
        block, slots = held(scheme, shape)
        public = published(scheme, shape, slots)
        rng = Randomness.seeded(4)
        right = scheme.ask(shape, [1], rng=rng, public=public)
        for wrong in (right.questions[0] + b"x", right.questions[0][:-1] or b"xx"):
            with pytest.raises(InputError):
                scheme.answer(shape, block, [wrong])
        for slots in ([100], [-1], [], [1, 2]):
            with pytest.raises(InputError):
                scheme.ask(shape, slots, rng=rng, public=public)
        with pytest.raises(InputError):
            scheme.read(shape, right, [b"short"] * scheme.parties, public)


def states_its_assumption(member: type[Scheme]) -> None:
    assert member.assumption.endswith("."), f"{member.name} does not say what it assumes"
    assert member.reference


LAWS = (
    gives_the_selected_slots,
    answers_a_batch_as_one_by_one,
    sizes_tell_nothing,
    one_view_tells_nothing,
    refuses_what_does_not_fit,
    states_its_assumption,
)


@functools.cache
def _worn(size: int) -> bytes:
    return np.random.default_rng(1).bytes(size)


class Worn(Randomness):
    """Draws the same bytes every time, for whom it matters."""

    def __init__(self) -> None:
        super().__init__(bytes(32), secure=False)

    def bytes(self, size: int) -> bytes:
        return _worn(size)


@dataclasses.dataclass(frozen=True)
class ReusedVector(Chor):
    """Sends the same random bits with every question."""

    name: ClassVar[str] = "reused-vector"

    def ask(self, shape, slots, *, rng, public=None) -> Asked:
        return super().ask(shape, slots, rng=Worn(), public=public)


@dataclasses.dataclass(frozen=True)
class ReusedSecret(SimplePIR):
    """Encrypts every question under the same secret, with the same noise."""

    name: ClassVar[str] = "reused-secret"

    def ask(self, shape, slots, *, rng, public=None) -> Asked:
        return super().ask(shape, slots, rng=Worn(), public=public)


@dataclasses.dataclass(frozen=True)
class Neighbour(Chor):
    """Asks for the next slot."""

    name: ClassVar[str] = "neighbour"

    def ask(self, shape, slots, *, rng, public=None) -> Asked:
        return super().ask(shape, [(slot + 1) % shape.slots for slot in slots], rng=rng)


@dataclasses.dataclass(frozen=True)
class Silent(Chor):
    """Assumes something and does not say what."""

    name: ClassVar[str] = "silent"
    assumption: ClassVar[str] = ""


@dataclasses.dataclass(frozen=True)
class Hurried(Chor):
    """Gives everybody in a batch the answer to the first question."""

    name: ClassVar[str] = "hurried"

    def answer(self, shape, block, questions) -> list[bytes]:
        return super().answer(shape, block, questions[:1]) * len(questions)


@dataclasses.dataclass(frozen=True)
class Telling(Chor):
    """Asks longer questions for later slots."""

    name: ClassVar[str] = "telling"

    def ask(self, shape, slots, *, rng, public=None) -> Asked:
        asked = super().ask(shape, slots, rng=rng, public=public)
        longer = tuple(question + bytes(slots[0]) for question in asked.questions)
        return dataclasses.replace(asked, questions=longer)


@dataclasses.dataclass(frozen=True)
class Lenient(Chor):
    """Reads the beginning of a question that is too long."""

    name: ClassVar[str] = "lenient"

    def answer(self, shape, block, questions) -> list[bytes]:
        size = self.question_size(shape)
        return super().answer(shape, block, [question[:size] for question in questions])


BROKEN = {
    ReusedVector: one_view_tells_nothing,
    ReusedSecret: one_view_tells_nothing,
    Neighbour: gives_the_selected_slots,
    Hurried: answers_a_batch_as_one_by_one,
    Telling: sizes_tell_nothing,
    Lenient: refuses_what_does_not_fit,
    Silent: states_its_assumption,
}
