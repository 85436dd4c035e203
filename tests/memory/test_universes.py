"""No release says too much together with those before it; without memory many do."""

from __future__ import annotations

import pytest

from tests.memory.universes import play


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_told_together(seed: int) -> None:
    world = play(seed, remember=True)
    assert world.isolated() == []
    assert world.narrowed() == 0
    assert world.thin_classes() == 0


def test_without_memory_much_is_told() -> None:
    worlds = [play(seed, remember=False) for seed in range(8)]
    assert sum(world.leaks for world in worlds) >= 1  # at least a tenth


@pytest.mark.slow
@pytest.mark.parametrize("start", range(12, 1212, 50))
def test_nothing_is_told_together_in_many_universes(start: int) -> None:
    for seed in range(start, start + 50):
        world = play(seed, remember=True)
        assert not world.leaks, f"seed {seed}: {world}"
