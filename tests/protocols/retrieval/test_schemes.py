"""Private retrieval is right everywhere, and exact distributions of views are equal."""

import functools
import itertools
import zlib
from collections import Counter

import numpy as np
import pytest

from discreet.errors import RefusedError
from discreet.protocols.retrieval import plain
from discreet.protocols.retrieval.hints import change_list, packed, patched, public_of
from discreet.protocols.retrieval.lattice import (
    DIMENSION,
    check_weights,
    gaussian,
    hint_of,
    public_row,
    public_rows,
    sums_of,
)
from discreet.protocols.retrieval.matrix_shape import matrix_shape
from discreet.protocols.retrieval.point_function import expand, make_keys
from discreet.protocols.retrieval.schemes import simple_pir
from discreet.protocols.retrieval.schemes._base import Shape
from discreet.protocols.retrieval.schemes._panels import matrix_of, panelled, panels_of, slot_in
from discreet.protocols.retrieval.schemes.chor import Chor
from discreet.protocols.retrieval.schemes.dpf import DPF
from discreet.protocols.retrieval.schemes.simple_pir import SimplePIR
from discreet.protocols.retrieval.schemes.whole_table import WholeTable
from discreet.protocols.retrieval.views import view_test
from discreet.randomness import Randomness
from tests.laws.scheme import Worn, fetched, held, published


class Listed(Randomness):
    """Gives the bytes it is told to."""

    def __init__(self, given: bytes) -> None:
        super().__init__(bytes(32), secure=False)
        self.given = given

    def bytes(self, size: int) -> bytes:
        taken, self.given = self.given[:size], self.given[size:]
        assert len(taken) == size
        return taken


def views(servers: int, slots: int, wanted: int, seen: tuple[int, ...]) -> Counter:
    """Count what some servers see over everything that can be drawn."""
    shape = Shape(columns=slots, width=8)
    draws = itertools.product(range(1 << slots), repeat=servers - 1)
    # Bits beyond the last slot are dropped, so drawing them would only count everything again.
    asked = (
        Chor(servers=servers).ask(shape, [wanted], rng=Listed(bytes(drawn))) for drawn in draws
    )
    return Counter(tuple(one.questions[server] for server in seen) for one in asked)


@pytest.mark.parametrize(("servers", "slots"), [(2, 8), (3, 5), (4, 3), (5, 2)])
def test_all_servers_but_one_see_the_same_whatever_is_asked(servers, slots):
    for coalition in itertools.combinations(range(servers), servers - 1):
        expected = views(servers, slots, 0, coalition)
        assert set(expected.values()) == {1}  # uniform over all vectors
        for wanted in range(1, slots):
            assert views(servers, slots, wanted, coalition) == expected


@pytest.mark.parametrize("servers", [2, 3, 5])
def test_all_servers_together_see_what_is_asked(servers):
    shape = Shape(columns=40, width=8)
    for wanted in range(40):
        asked = Chor(servers=servers).ask(shape, [wanted], rng=Randomness.secure())
        together = np.bitwise_xor.reduce([np.frombuffer(q, np.uint8) for q in asked.questions])
        assert np.flatnonzero(np.unpackbits(together, bitorder="little")).tolist() == [wanted]


def test_both_keys_of_a_point_function_show_the_point():
    for size in (1, 2, 127, 128, 129, 600, 5000):
        for place in {0, size // 2, size - 1}:
            keys = make_keys(size, place, Randomness.secure())
            apart = expand(keys[0], size) ^ expand(keys[1], size)
            assert np.flatnonzero(np.unpackbits(apart, bitorder="little")).tolist() == [place]


@pytest.fixture
def rows_kept(monkeypatch):
    """Expand the public matrix of a table once, not for each question about it."""
    monkeypatch.setattr(simple_pir, "public_rows", kept_rows)


@functools.lru_cache(maxsize=4)
def kept_rows(seed, columns):
    return list(public_rows(seed, columns))


def right_on_all(scheme, sizes):
    rng = Randomness.seeded(7)
    for size in sizes:
        shape = Shape(columns=size, width=8)
        block, slots = held(scheme, shape, size)
        public = published(scheme, shape, slots)
        asked = [scheme.ask(shape, [wanted], rng=rng, public=public) for wanted in range(size)]
        # All questions in one pass, and the last also alone: that is another kernel.
        answers = [
            scheme.answer(shape, block, [one.questions[server] for one in asked])
            for server in range(scheme.parties)
        ]
        for server, given in enumerate(answers):
            assert scheme.answer(shape, block, [asked[-1].questions[server]]) == given[-1:]
        for wanted, one in enumerate(asked):
            parts = [given[wanted] for given in answers]
            assert scheme.read(shape, one, parts, public) == slots[wanted].tobytes(), (size, wanted)


SCHEMES = [
    WholeTable(),
    *(Chor(servers=n) for n in (2, 3, 4, 5)),
    DPF(),
    SimplePIR(),
]


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_right_on_all_indices_of_some_sizes(scheme, rows_kept):
    right_on_all(scheme, (1, 2, 3, 63, 64, 65, 130))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_right_on_all_indices_of_all_sizes_up_to_600(scheme, rows_kept):
    right_on_all(scheme, range(1, 601))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [Chor(), DPF(), SimplePIR()], ids=str)
def test_six_thousand_views_tell_nothing(scheme):
    shape = Shape(columns=256, width=8)
    _, slots = held(scheme, shape)
    public = published(scheme, shape, slots)
    for server in range(scheme.parties):
        found = view_test(
            scheme,
            shape,
            ([5], [200]),
            views=6000,
            rng=Randomness.seeded(9),
            server=server,
            public=public,
        )
        assert found.is_chance, found


@pytest.mark.parametrize("scheme", [Chor(), SimplePIR()], ids=str)
def test_reused_randomness_is_caught(scheme):
    shape = Shape(columns=64, width=8)
    _, slots = held(scheme, shape)
    public = published(scheme, shape, slots)
    last = scheme.parties - 1
    found = view_test(scheme, shape, ([5], [50]), views=200, rng=Worn(), server=last, public=public)
    assert found.auc == 1.0
    assert not found.is_chance


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 64, 100, 129])
def test_the_compiled_selection_is_the_plain_one(rows):
    from discreet.protocols.retrieval.kernels.xor import select, select_many

    drawn = np.random.default_rng(rows)
    table = drawn.integers(0, 1 << 63, (rows, 3), dtype=np.uint64)
    bits = drawn.integers(0, 1 << 63, (5, -(-rows // 64)), dtype=np.uint64)
    expected = np.stack([plain.select(table, line) for line in bits])
    assert (select_many(table, bits) == expected).all()
    assert (np.stack([select(table, line) for line in bits]) == expected).all()


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (15, 4), (16, 5), (17, 45), (64, 200)])
def test_the_compiled_products_are_the_plain_one(rows, columns):
    from discreet.protocols.retrieval.kernels import lwe

    drawn = np.random.default_rng(rows)
    matrix = drawn.integers(-128, 128, (rows, columns)).astype(np.int8)
    vector = drawn.integers(0, 1 << 32, columns).astype(np.uint32)
    shape = Shape(columns=columns, width=rows)
    lines = panels_of(shape, panelled(matrix)).view(np.int8)
    words = np.zeros(4 * lines.shape[1], np.uint32)
    words[:columns] = vector
    planes = np.ascontiguousarray(words.view(np.uint8).reshape(-1, 4, 4).transpose(0, 2, 1))
    expected = plain.multiply(matrix, vector)
    for multiply in (lwe.multiply, lwe.multiply_anywhere):
        assert (multiply(lines, planes)[:rows] == expected).all()


def test_a_slot_is_found_in_panels():
    shape = Shape(columns=7, width=24, rows=3)
    block, slots = held(SimplePIR(), shape)
    for slot in range(21):
        assert (slot_in(shape, block, slot) == slots[slot]).all()


def test_an_answer_of_one_server_tells_the_whole_column():
    scheme, shape = SimplePIR(), Shape(columns=9, width=16, rows=4)
    block, slots = held(scheme, shape)
    public = published(scheme, shape, slots)
    asked = scheme.ask(shape, [9 + 5], rng=Randomness.seeded(1), public=public)
    answers = scheme.answer(shape, block, asked.questions)
    found = scheme.beside(shape, asked, answers, public)
    assert found == {n: slots[n].tobytes() for n in (5, 2 * 9 + 5, 3 * 9 + 5)}


def test_every_byte_of_an_encrypted_answer_counts():
    # Rounding takes a small change away: the row is right, and the change is noticed all the same.
    scheme, shape = SimplePIR(), Shape(columns=40, width=64, rows=2)
    block, slots = held(scheme, shape)
    public = published(scheme, shape, slots)
    asked = scheme.ask(shape, [45], rng=Randomness.seeded(1), public=public)
    (answer,) = scheme.answer(shape, block, asked.questions)
    assert scheme.is_untouched(shape, asked, [answer], public)
    lost = 0
    for place in range(len(answer)):
        for bits in (0x01, 0x80, 0xFF):
            changed = bytearray(answer)
            changed[place] ^= bits
            lost += scheme.read(shape, asked, [bytes(changed)], public) == slots[45].tobytes()
            assert not scheme.is_untouched(shape, asked, [bytes(changed)], public)
    assert lost > 100


def test_the_hint_is_exact_at_the_ends_of_its_range():
    # All products as large as they get: float64 must not round.
    matrix = np.full((3, 4097), -128, np.int8)
    whole = np.concatenate([piece for _, piece in public_rows(bytes(16), 4097)])
    expected = matrix.astype(np.int64) @ whole.astype(np.int64)
    assert (hint_of(matrix, bytes(16)) == expected.astype(np.uint32)).all()
    weights = check_weights(bytes(16), 4097).astype(np.int64)
    sums = weights @ matrix.T.astype(np.int64)
    assert (sums_of(matrix.T, bytes(16)) == sums.astype(np.uint32)).all()
    assert (public_row(bytes(16), 4096) == whole[4096]).all()
    assert whole.shape == (4097, DIMENSION)


def test_a_hint_patched_from_a_list_of_changes_is_the_one_built_again():
    # 1,000 changed rows of 1 KiB: the list is as long for a table of any size.
    shape = Shape(columns=700, width=1024, rows=2)
    drawn = np.random.default_rng(2)
    before = drawn.integers(0, 256, (shape.slots, 1024), dtype=np.uint8)
    after = before.copy()
    rows = drawn.permutation(shape.slots)[:1000]
    after[rows] = drawn.integers(0, 256, (1000, 1024))
    changes = change_list(before, after)
    assert len(changes) <= 2_000_000
    old, new = (public_of(matrix_of(shape, slots), bytes(16)) for slots in (before, after))
    assert (packed(patched(old, shape, changes)) == packed(new)).all()
    for wrong in (
        changes[:-1],
        b"\xff" * 1156,
        zlib.compress(b"\xff" * 1156),
        change_list(before[:1], after[:1])[:-4],
    ):
        with pytest.raises(RefusedError):
            patched(old, shape, wrong)


@pytest.mark.slow
def test_a_hint_of_64_megabytes_is_patched_from_two():
    shape = matrix_shape(1 << 18, 1024)
    drawn = np.random.default_rng(4)
    slots = drawn.integers(0, 256, (shape.slots, 1024), dtype=np.uint8)
    before = public_of(matrix_of(shape, slots), bytes(16))
    rows = np.sort(drawn.permutation(shape.slots)[:1000])
    held = slots[rows]
    slots[rows] = drawn.integers(0, 256, (1000, 1024))
    old = np.zeros_like(slots)  # pages that are never written take no memory
    new = np.zeros_like(slots)
    old[rows], new[rows] = held, slots[rows]
    changes = change_list(old, new)
    del old, new
    assert len(changes) <= 2_000_000
    made = packed(patched(before, shape, changes))
    del before
    assert (made == packed(public_of(matrix_of(shape, slots), bytes(16)))).all()


def test_noise_has_the_deviation_that_the_parameters_assume():
    drawn = gaussian(400_000, Randomness.seeded(3))
    assert abs(drawn.std() - 6.4) < 0.03
    assert abs(drawn.mean()) < 0.04
    near = [float((drawn == x).mean()) for x in range(-3, 4)]
    weights = np.exp(-(np.arange(-64, 65) ** 2) / (2 * 6.4**2))
    assert np.allclose(near, (weights / weights.sum())[61:68], atol=0.002)


@pytest.mark.slow
def test_a_million_values_decode():
    # As many columns as the matrix of 2²⁰ rows of 1 KiB has: the noise is as large.
    scheme, shape = SimplePIR(), Shape(columns=32_768, width=8192)
    block, slots = held(scheme, shape)
    public = published(scheme, shape, slots)
    rng = Randomness.seeded(11)
    for wanted in range(0, 123 * 266, 266):  # 123 · 8192 values are more than a million
        assert fetched(scheme, shape, block, [wanted], rng, public) == slots[wanted].tobytes()
