"""Nobody decides on the same attribute at the same time, and whoever is alone is alone."""

from __future__ import annotations

import random
import threading

from discreet.queries.turns import Turns


def test_turns_are_kept_by_many_threads():
    turns, lock = Turns(), threading.Lock()
    busy: dict[str, int] = {"a": 0, "b": 0, "c": 0}
    broken, together, done = [], set(), []

    def enter(names, *, alone):
        with lock:
            for name in names:
                busy[name] += 1
            inside = sum(busy.values())
            if any(busy[name] > 1 for name in busy) or (alone and inside != len(names)):
                broken.append(dict(busy))
            together.add(inside)

    def leave(names):
        with lock:
            for name in names:
                busy[name] -= 1

    def work(seed):
        chance = random.Random(seed)
        for _ in range(200):
            alone = chance.random() < 0.1
            names = tuple(busy) if alone else tuple(chance.sample("abc", chance.randint(1, 2)))
            with turns.alone() if alone else turns.on(names):
                enter(names, alone=alone)
                threading.Event().wait(chance.random() * 1e-4)
                leave(names)
        done.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == list(range(8))
    assert not broken
    assert max(together) > 1


def test_a_failure_gives_the_turn_back():
    turns = Turns()
    for turn in (lambda: turns.on({"a"}), turns.alone):
        try:
            with turn():
                raise KeyError
        except KeyError:
            pass
    with turns.alone():
        pass
