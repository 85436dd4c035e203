"""The random source: secure by default, unbiased, reproducible only when seeded."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet.errors import RefusedError
from discreet.randomness import Randomness


def test_seeded_sources_repeat_and_secure_ones_do_not():
    assert Randomness.seeded(7).bytes(64) == Randomness.seeded(7).bytes(64)
    assert Randomness.seeded(7).bytes(64) != Randomness.seeded(8).bytes(64)
    assert Randomness.secure().bytes(64) != Randomness.secure().bytes(64)


def test_seeded_is_refused_for_a_release_and_secure_is_not():
    Randomness.secure().require_secure()
    with pytest.raises(RefusedError) as caught:
        Randomness.seeded(12345).require_secure()
    assert caught.value.code == "seeded-randomness"
    assert "12345" not in str(caught.value)


def test_a_source_cannot_be_copied_or_stored():
    for copier in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            copier(Randomness.secure())


def test_the_stream_does_not_depend_on_the_size_of_requests():
    whole, parts = Randomness.seeded(3), Randomness.seeded(3)
    assert whole.bytes(1000) == b"".join(parts.bytes(n) for n in (1, 99, 400, 500))


def test_normals_are_normal():
    drawn = Randomness.seeded(5).normal(200_001, mean=2.0, deviation=3.0)
    assert len(drawn) == 200_001
    assert stats.kstest((drawn - 2) / 3, "norm").pvalue > 1e-4


def test_uniforms_are_open_and_uniform():
    drawn = Randomness.seeded(6).uniform(200_000, -1, 4)
    assert drawn.min() > -1
    assert drawn.max() < 4
    assert stats.kstest((drawn + 1) / 5, "uniform").pvalue > 1e-4


def test_exponentials_have_their_scale():
    assert stats.kstest(Randomness.seeded(9).exponential(100_000, 2.5) / 2.5, "expon").pvalue > 1e-4


@given(low=st.integers(-(2**40), 2**40), span=st.integers(1, 2**62))
@settings(max_examples=50)
def test_integers_stay_in_range(low, span):
    drawn = Randomness.seeded(1).integers(low, low + span, 50)
    assert drawn.min() >= low
    assert drawn.max() < low + span


def test_integers_have_no_bias():
    counts = np.bincount(Randomness.seeded(2).integers(0, 6, 120_000), minlength=6)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_permutations_are_uniform():
    source = Randomness.seeded(4)
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(6000):
        order = tuple(source.permutation(3).tolist())
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 6
    assert stats.chisquare(list(seen.values())).pvalue > 1e-4


def test_samples_are_distinct_and_bounded():
    drawn = Randomness.secure().sample(100, 40)
    assert len(set(drawn.tolist())) == 40
    with pytest.raises(ValueError, match="cannot draw"):
        Randomness.secure().sample(3, 4)
    with pytest.raises(ValueError, match="no integer"):
        Randomness.secure().integers(3, 3, 1)


def test_spawned_sources_differ_and_keep_their_kind():
    source = Randomness.seeded(1)
    first, second = source.spawn(), source.spawn()
    assert first.bytes(16) != second.bytes(16)
    assert not first.is_secure
    assert Randomness.secure().spawn().is_secure


def test_bernoulli_share():
    assert abs(Randomness.seeded(11).bernoulli(0.3, 100_000).mean() - 0.3) < 0.01


def test_a_forked_process_draws_numbers_of_its_own():
    import os

    secure, seeded = Randomness.secure(), Randomness.seeded(1)
    secure.bytes(8)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of numpy's, none of ours
        child = os.fork()
    if child == 0:
        os.write(writer, secure.bytes(16) + seeded.bytes(16))
        os._exit(0)
    os.waitpid(child, 0)
    drawn = os.read(reader, 32)
    os.close(reader)
    os.close(writer)
    assert drawn[:16] != secure.bytes(16)
    assert drawn[16:] == seeded.bytes(16)
