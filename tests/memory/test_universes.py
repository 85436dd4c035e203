"""No release says too much together with those before it; without memory many do."""

from __future__ import annotations

import itertools
import math

import pytest

from tests.memory.enumeration import databases, determined
from tests.memory.universes import World, play

#: Amounts of small universes lie below this, those that an attacker thinks of up to `MOST`.
TOP, MOST = 4, 9


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_told_together(seed: int) -> None:
    world = play(seed, remember=True)
    assert world.isolated() == []
    assert world.narrowed() == 0
    assert world.thin_classes() == 0


@pytest.mark.slow
@pytest.mark.parametrize("start", range(12, 1212, 50))
def test_nothing_is_told_together_in_many_universes(start: int) -> None:
    for seed in range(start, start + 50):
        world = play(seed, remember=True)
        assert not world.leaks, f"seed {seed}: {world}"


def leaks(world: World, *, contributors: bool = False) -> list[object] | None:
    """Count out all databases; return what they have in common and must not, or None if too many.

    What one release alone tells is a matter of its rules, not of memory.
    """
    sums = [sum(world.values[n] for n in one) for one in world.told]
    size = len(world.records)
    every = databases(world.told, sums, size, MOST)
    if every is None:
        return None
    people = [person for person, _ in world.records]
    touched = {n for one in world.told for n in one}
    attackers: list[int | None] = [None]
    if contributors:
        attackers += sorted({people[n] for n in touched})
    truth = [int(v) if n in touched else 0 for n, v in enumerate(world.values)]
    ends = [0, *world.ends, len(world.told)]
    found: list[object] = []
    for attacker in attackers:
        fewer = world.k if attacker is None else world.k - 1
        told = determined(every, truth, people, touched, fewer, known=attacker)
        for start, end in itertools.pairwise(ends):
            if not told or start == end:
                continue
            alone = databases(world.told[start:end], sums[start:end], size, MOST)
            if alone is None:
                continue  # so many that nothing is told for sure
            own = {n for one in world.told[start:end] for n in one}
            before = determined(alone, truth, people, own, fewer, known=attacker)
            told = [group for group in told if group not in before]
        found += [(attacker, group) for group in told]
    for inside, low, high in world.sensitive:
        values = every[:, sorted(inside & touched)].sum(axis=1)
        if inside <= touched and not (
            values.min() < values.max()
            and values.min() <= math.ceil(low)
            and values.max() >= math.floor(high)
        ):
            found.append(("interval", sorted(inside), low, high))
    return [*found, *range(world.thin_classes())]


def judged(seeds: range, *, remember: bool, attacker: str = "outsider") -> tuple[list[object], int]:
    """Return the universes that leak, and how many could be counted out."""
    wrong: list[object] = []
    counted = 0
    for seed in seeds:
        world = play(seed, remember=remember, top=TOP, attacker=attacker)
        found = leaks(world, contributors=attacker == "contributors")
        counted += found is not None
        if found:
            wrong.append((seed, found))
    return wrong, counted


@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_no_database_is_left_alone(attacker: str) -> None:
    wrong, counted = judged(range(7), remember=True, attacker=attacker)
    assert not wrong
    assert counted >= 5


def test_without_memory_at_least_a_tenth_leak() -> None:
    wrong, counted = judged(range(24), remember=False)
    assert len(wrong) >= counted / 10 > 2


@pytest.mark.slow
@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
@pytest.mark.parametrize("start", range(6, 2006, 50))
def test_no_database_is_left_alone_in_many_universes(start: int, attacker: str) -> None:
    wrong, counted = judged(range(start, start + 50), remember=True, attacker=attacker)
    assert not wrong
    assert counted >= 40


@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_alternatives_show_no_more_than_is_so(
    attacker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the universes were too large for the exact way.
    monkeypatch.setattr("discreet.audit.joint._MANY", 1)
    wrong, counted = judged(range(100, 104), remember=True, attacker=attacker)
    assert not wrong
    assert counted >= 3


@pytest.mark.slow
@pytest.mark.parametrize("start", range(104, 504, 50))
def test_alternatives_show_no_more_than_is_so_in_many_universes(
    start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.audit.joint._MANY", 1)
    for seed in range(start, start + 50):
        world = play(seed, remember=True)
        assert not world.leaks, f"seed {seed}: {world}"
