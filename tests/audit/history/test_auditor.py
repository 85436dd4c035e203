"""The history audit against brute force: exact in both directions, and blind to values."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.audit.history.reference import Elimination, Reference, has_low_weight, isolates, rank

from discreet.audit.history.auditor import Auditor, answer_groups
from discreet.audit.history.low_weight import _can_cover, has_low_weight_codeword
from discreet.audit.history.rows import freed_values
from discreet.audit.history.state import ENTRIES, REFUSED, REST, ROWS, WORDS

# One worker compiles what these call.
pytestmark = pytest.mark.xdist_group("history kernels")


def play(n, k, questions):
    """Ask questions of an auditor and of the reference; return how many were answered."""
    auditor, reference = Auditor(np.ones(n, np.int64), k), Reference(np.ones(n), k)
    answered = 0
    for members in questions:
        inside = np.array(sorted(members), np.int64)
        decision = auditor.decide(inside)
        assert (decision.safe, decision.known) == reference.decide(members)
        if decision.safe:
            auditor.accept(decision)
            reference.accept(members)
            answered += 1
            assert (auditor.rank, auditor.atoms) == (reference.rank, reference.atoms)
    assert not isolates(reference.rows, n, k)
    return answered


sequences = st.integers(3, 9).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.integers(2, min(4, n)),
        st.lists(st.sets(st.integers(0, n - 1)), max_size=10),
    )
)


@settings(max_examples=250, deadline=None)
@given(sequences)
def test_decisions_equal_brute_force(sequence):
    play(*sequence)


@pytest.mark.slow
def test_thousands_of_random_histories_equal_brute_force():
    rng = np.random.default_rng(1)
    answered = 0
    for _ in range(3000):
        n = int(rng.integers(4, 11))
        k = int(rng.integers(2, 5))
        questions = [
            set(np.flatnonzero(rng.random(n) < rng.choice([0.4, 0.5, 0.7])).tolist())
            for _ in range(12)
        ]
        answered += play(n, min(k, n), questions)
    assert answered > 3000


def test_union_of_small_atoms_below_k_is_refused():
    # Each step is harmless alone; the fourth answer would give the sum of two records.
    auditor = Auditor(np.ones(12, np.int64), 3)
    sets = [{0, 1, 2, 3, 4, 5}, {0, 2, 6, 7, 8}, {1, 6, 7, 8, 3}]
    for members in sets:
        decision = auditor.decide(np.array(sorted(members)))
        assert decision.safe
        auditor.accept(decision)
    # {0, 2} + {6, 7, 8} minus {1, 3} + {6, 7, 8} and so on: the pair {0, 2} is at stake.
    assert not auditor.decide(np.array([6, 7, 8])).safe


def test_what_was_refused_is_refused_again_without_a_search():
    auditor = Auditor(np.ones(14, np.int64), 3)
    for members in ({0, 1, 2, 3, 4, 5}, {0, 2, 6, 7, 8}, {1, 6, 7, 8, 3}):
        auditor.accept(auditor.decide(np.array(sorted(members))))
    for known in (1, 1, 1):
        assert not auditor.decide(np.array([6, 7, 8])).safe
        assert auditor._state.used[REFUSED] == known
    # The same but for an answer; another one is looked at anew.
    assert not auditor.decide(np.array([0, 1, 2, 3, 4, 5, 6, 7, 8])).safe
    assert auditor._state.used[REFUSED] == 1
    assert not auditor.decide(np.array([0, 1, 2, 3, 4, 9, 10, 11, 12, 13])).safe


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=3, max_size=7), st.data())
def test_profiles_of_several_records_equal_brute_force(counts, data):
    k = data.draw(st.integers(2, 4))
    if sum(counts) < k:
        return
    auditor, reference = Auditor(np.array(counts, np.int64), k), Reference(counts, k)
    for _ in range(7):
        members = sorted(data.draw(st.sets(st.integers(0, len(counts) - 1))))
        decision = auditor.decide(np.array(members, np.int64))
        assert (decision.safe, decision.known) == reference.decide(members)
        if decision.safe:
            auditor.accept(decision)
            reference.accept(members)
            assert (auditor.rank, auditor.atoms) == (reference.rank, reference.atoms)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=4, max_size=7), st.data())
def test_after_answers_given_elsewhere_nothing_below_k_is_added(counts, data):
    k = data.draw(st.integers(2, 4))
    auditor, reference = Auditor(np.array(counts, np.int64), k), Reference(counts, k)
    for _ in range(8):
        members = sorted(data.draw(st.sets(st.integers(0, len(counts) - 1), min_size=1)))
        inside = np.array(members, np.int64)
        if data.draw(st.booleans()):
            before = reference.rank
            reference.accept(members)
            assert auditor.learn(inside) == (reference.rank > before)
        else:
            decision = auditor.decide(inside)
            # What was given may isolate records already; then more may be refused than need be.
            assert reference.decide(members)[0] >= decision.safe
            if decision.safe:
                auditor.accept(decision)
                reference.accept(members)
        assert (auditor.rank, auditor.atoms) == (reference.rank, reference.atoms)


def long_history(seed, records, k, questions, *, long=False):
    """Ask many questions of an auditor and of elimination; return how many were answered."""
    chance = np.random.default_rng(seed)
    auditor, reference = Auditor(np.ones(records, np.int64), k), Elimination(records, k)
    line, answered = chance.permutation(records), 0
    for _ in range(questions):
        low, high = np.sort(chance.integers(0, records + 1, 2))
        inside = np.sort(
            line[low:high]
            if chance.random() < 0.7
            else np.flatnonzero(chance.random(records) < chance.choice([0.1, 0.5]))
        )
        decision = auditor.decide(inside)
        safe, known = reference.decide(inside)
        # A search that runs out of effort refuses too much, never too little.
        gave_up = long and safe and not known and not decision.safe
        assert gave_up or (decision.safe, decision.known) == (safe, known)
        if decision.safe:
            auditor.accept(decision)
            reference.accept(inside)
            answered += not decision.known
        assert auditor.rank == len(reference.pivots)
    return answered


@pytest.mark.parametrize("k", [2, 3])
def test_histories_of_many_answers_equal_elimination(k):
    assert long_history(k, records=60, k=k, questions=90) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_histories_longer_than_several_blocks_equal_elimination(seed):
    k = 2 + seed % 2
    # Rows are looked for 64 at a time. With k = 3 the search may run out of effort.
    assert long_history(seed, records=500, k=k, questions=600, long=k == 3) > 2 * 64


@pytest.mark.parametrize("attributes", [1, 2, 3])
def test_groups_are_decided_one_after_another(attributes):
    chance = np.random.default_rng(attributes)
    auditors = [Auditor(np.ones(9, np.int64), 3) for _ in range(attributes)]
    references = [Reference(np.ones(9), 3) for _ in range(attributes)]
    for number in range(6):
        for _ in range(2):  # each attribute has answers of its own
            who = int(chance.integers(attributes))
            own = np.flatnonzero(chance.random(9) < 0.6)
            if (decision := auditors[who].decide(own)).safe:
                auditors[who].accept(decision)
                references[who].accept(own)
        code = chance.integers(0, 2 + number % 2, 9)
        groups = [np.flatnonzero(code == c) for c in np.unique(code)]
        order = chance.permutation(len(groups))
        ends = np.cumsum([len(group) for group in groups])
        shown = answer_groups(auditors, np.concatenate(groups), ends, order)
        for place in order:
            expected = all(reference.decide(groups[place])[0] for reference in references)
            assert shown[place] == expected
            if expected:
                for reference in references:
                    reference.accept(groups[place])


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_light_words_equal_brute_force(data):
    rows = data.draw(st.integers(1, 4))
    columns = data.draw(st.integers(1, 7))
    matrix = np.array(
        data.draw(
            st.lists(
                st.lists(st.integers(-2, 2), min_size=columns, max_size=columns),
                min_size=rows,
                max_size=rows,
            )
        )
    )
    if rank(matrix.tolist()) < rows:
        return
    sizes = np.array(data.draw(st.lists(st.integers(1, 3), min_size=columns, max_size=columns)))
    k = data.draw(st.integers(2, 5))
    light = has_low_weight(matrix.tolist(), sizes.tolist(), k)
    assert has_low_weight_codeword(matrix, sizes, k, effort=10_000) == light


@numba.njit
def can_cover(sizes, own, covers, usable, left, uncovered):
    return _can_cover(sizes, own, covers, usable, left, uncovered)


def test_the_bound_on_columns_that_can_be_cleared_is_the_plain_one():
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(400):
        rows = int(rng.integers(1, 130))
        sizes = rng.integers(1, 5, rows)
        own = rng.permutation(rows)
        # Few rows clear several columns, so that taking one for another changes the answer.
        covers = np.where(rng.random(rows) < 0.05, rng.integers(0, 1 << 12, rows), 0).astype(
            np.uint64
        )
        usable = rng.integers(0, 1 << 63, (rows + 63) >> 6, dtype=np.uint64)
        usable[-1] &= np.uint64((1 << (rows & 63 or 64)) - 1)
        left, uncovered = int(rng.integers(1, 4)), np.uint64(rng.integers(1, 1 << 12))
        most = max(
            [1]
            + [
                int(covers[row] & uncovered).bit_count()
                for row in range(rows)
                if int(usable[row >> 6]) >> (row & 63) & 1 and sizes[own[row]] <= left
            ]
        )
        expected = int(uncovered).bit_count() <= left * most
        assert can_cover(sizes, own, covers, usable, left, uncovered) == expected
        seen.add(expected)
    assert seen == {True, False}


def test_the_memory_that_a_history_takes_grows_with_it():
    auditor = Auditor(np.ones(400, np.int64), 3)
    profiles = 3 * 400  # of each a count, a secret number and an atom, at least a byte each
    taken = [auditor.bytes()]
    assert taken[0] >= profiles
    for first in range(0, 300, 60):
        auditor.accept(auditor.decide(np.arange(first, first + 60)))
        taken.append(auditor.bytes())
    assert taken == sorted(set(taken))
    assert taken[-1] - taken[0] >= 8 * int(auditor._state.used[ENTRIES]) > 0


def test_search_without_effort_refuses():
    rows = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 0], [1, 0, 0, 1, 0, 1]])
    sizes = np.ones(6, np.int64)
    assert not has_low_weight_codeword(rows, sizes, 2, effort=100)
    assert has_low_weight_codeword(rows, sizes, 2, effort=0)


def test_refused_decision_cannot_be_accepted():
    auditor = Auditor(np.ones(5, np.int64), 3)
    with pytest.raises(ValueError, match="refused"):
        auditor.accept(auditor.decide(np.array([1])))


def test_what_was_given_counts_whatever_it_means():
    auditor = Auditor(np.ones(12, np.int64), 3)
    assert not auditor.decide(np.arange(2)).safe
    assert auditor.learn(np.arange(2))
    assert not auditor.learn(np.arange(2))
    assert auditor.rank == 2
    # {0, 1} is known by now, so that {2} would be the difference; {0, 1, 2} alone is harmless.
    assert not auditor.decide(np.arange(3)).safe
    assert Auditor(np.ones(12, np.int64), 3).decide(np.arange(3)).safe


def test_learning_a_history_equals_answering_it():
    rng = np.random.default_rng(3)
    live, again = Auditor(np.ones(60, np.int64), 4), Auditor(np.ones(60, np.int64), 4)
    for _ in range(80):
        inside = np.flatnonzero(rng.random(60) < 0.5)
        decision = live.decide(inside)
        if decision.safe:
            live.accept(decision)
            again.learn(inside)
    assert (live.rank, live.atoms) == (again.rank, again.atoms)
    for _ in range(40):
        inside = np.flatnonzero(rng.random(60) < 0.5)
        assert live.decide(inside).safe == again.decide(inside).safe


def subset_sums(numbers, prime):
    """Return the sum of each subset, bit by bit."""
    sums = np.zeros(1, np.int64)
    for number in numbers:
        sums = np.concatenate([sums, (sums + number) % prime])
    return sums


def test_sets_that_are_dependent_modulo_a_known_number_are_told_apart():
    # Every question's numbers add up to a multiple of 2³¹ − 1: modulo that prime all questions leave
    # one combination open, though over the rationals they do not.
    prime, n = 2**31 - 1, 38
    half = n // 2
    numbers = np.random.default_rng(5).integers(1, prime, n)
    numbers[-1] = (numbers[-1] - numbers.sum()) % prime
    left, right = subset_sums(numbers[:half], prime), subset_sums(numbers[half:], prime)
    order = np.argsort(right)
    wanted = (prime - left) % prime
    at = np.minimum(np.searchsorted(right[order], wanted), order.size - 1)
    rows = [[1] * n]
    for low in np.flatnonzero(right[order][at] == wanted):
        mask = int(low) | int(order[at[low]]) << half
        rows.append([mask >> j & 1 for j in range(n)])
    auditor = Auditor(np.full(n, 2, np.int64), 3)
    for row in rows:
        if any(row):
            auditor.learn(np.flatnonzero(row))
    assert auditor.rank == rank(rows) == n


@numba.njit
def row_values(state, row):
    return freed_values(state, row)


@pytest.mark.parametrize("seed", range(12))
def test_what_the_state_tells_in_short_is_what_it_holds(seed):
    """Rows, pivots and fingerprints are kept up to date step by step: compute them anew."""
    chance = np.random.default_rng(seed)
    counts, k = chance.integers(0, 9, 120), int(chance.integers(2, 7))
    auditor = Auditor(counts, k)
    line, told = chance.permutation(120), [np.arange(120)]
    for _ in range(60):
        low, high = np.sort(chance.integers(0, 121, 2))
        inside = (
            line[low:high] if chance.random() < 0.6 else np.flatnonzero(chance.random(120) < 0.4)
        )
        if chance.random() < 0.1:
            auditor.learn(inside)
            told += [inside] if counts[inside].any() else []
        elif (decision := auditor.decide(inside)).safe:
            auditor.accept(decision)
            told.append(inside)
    state = auditor._state
    atoms, p = auditor.atoms, state.prime
    sizes = np.bincount(state.atom, weights=counts, minlength=atoms)
    assert (state.sizes[:atoms] == sizes).all()
    for which in range(2):
        prints = np.zeros(atoms, np.int64)
        np.add.at(prints, state.atom, state.secret[which])
        assert (state.atom_prints[which, :atoms] == prints % p).all()
    rows = np.array([row_values(state, row) for row in range(state.used[ROWS])])
    there = np.flatnonzero(state.ends[: state.used[ROWS]] > 0)
    assert len(there) > 5
    for row in there:
        pivot = state.pivots[row]
        assert (state.row_at[pivot], rows[row, pivot]) == (row, 1)
        assert sizes[pivot] >= k
        assert not rows[row + 1 :, pivot].any()
        assert not state.rest[pivot]
    words = np.zeros((state.used[WORDS], atoms), np.int64)
    for column, atom in enumerate(state.word_atoms[: state.column_at.max() + 1]):
        words[:, atom] = state.words[: state.used[WORDS], column]
    assert not words[:, sizes >= k].any()
    # All this spans what was told, and nothing else.
    rest = [state.rest[:atoms].astype(np.int64)] if state.used[REST] != -2 else []
    kept = np.array([*rows[there], *words, *rest])
    sets = np.zeros((len(told), atoms), np.int64)
    for number, inside in enumerate(told):
        sets[number, np.unique(state.atom[inside[counts[inside] > 0]])] = 1
    assert len(kept) == auditor.rank == modular_rank(sets, p)
    assert modular_rank(np.vstack([kept, sets]), p) == auditor.rank
    for scratch in (state.held, state.held_prints, state.value, state.met, state.todo):
        assert not scratch.any()


def modular_rank(rows, p):
    """Rank modulo a prime."""
    rows, rank = [row.astype(object) % p for row in rows], 0
    while rows:
        row = rows.pop()
        if not row.any():
            continue
        pivot = int(np.flatnonzero(row)[0])
        scale = pow(int(row[pivot]), -1, p)
        rows = [(other - other[pivot] * scale * row) % p for other in rows]
        rank += 1
    return rank
