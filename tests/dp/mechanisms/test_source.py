"""Noise drawn ahead: as good as noise drawn when asked, and no draw used twice."""

from __future__ import annotations

import collections
import itertools
import os
import threading

import numpy as np
import pytest

from discreet.dp.mechanisms import FAMILY
from discreet.dp.mechanisms._source import LARGEST, MOST, WIDEST, Source


class Counting:
    """Adds 1, 2, 3 … and notes how many values it was given each time."""

    def __init__(self) -> None:
        self.numbers, self.sizes = itertools.count(1), []

    def __call__(self, values):
        self.sizes.append(len(values))
        return [value + next(self.numbers) for value in values]


@pytest.mark.parametrize("name", sorted(FAMILY.members()))
def test_noise_drawn_ahead_has_the_same_distribution(name):
    noise = FAMILY.get(name)().noise(epsilon=0.7, sensitivity=1)
    ahead = collections.Counter(
        value - 100 for _ in range(3000) for value in noise.draw([100, 100, 100, 100])
    )
    at_once = collections.Counter(noise.draw([0] * 12_000))
    for value in range(-3, 4):
        mean = (ahead[value] + at_once[value]) / 2
        assert abs(ahead[value] - at_once[value]) <= 5 * np.sqrt(2 * mean)


def test_a_draw_is_used_once_whoever_asks():
    counting = Counting()
    source = Source(counting, 1.0)
    taken: list[int] = []

    def ask():
        for _ in range(200):
            taken.extend(source.draw([0] * 7))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == len(taken) == 8 * 200 * 7


def test_a_forked_process_draws_its_own():
    noise = FAMILY.get("laplace")().noise(epsilon=1e-12, sensitivity=1)
    noise.draw([0] * 5)  # more than these five are ready now
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, repr(noise.draw([0] * 5)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert set(eval(os.read(reading, 4096))).isdisjoint(noise.draw([0] * 5))
    os.close(reading)
    os.close(writing)


def test_few_calls_for_many_answers_and_one_for_many_values():
    counting = Counting()
    source = Source(counting, 1.0)
    for _ in range(500):
        source.draw([0] * 10)
    assert len(counting.sizes) <= 30
    assert max(counting.sizes) <= MOST
    source.draw([0] * (MOST + 1))
    assert counting.sizes[-1] == MOST + 1


def test_nothing_is_drawn_ahead_where_64_bits_could_cut_it():
    counting = Counting()
    source = Source(counting, 2 * WIDEST)
    assert source.draw([10, 20]) == [11, 22]
    assert counting.sizes == [2]


def test_sums_stay_within_64_bits():
    source = Source(Counting(), 1.0)
    assert source.draw([LARGEST, -LARGEST - 1]) == [LARGEST, -LARGEST + 1]
