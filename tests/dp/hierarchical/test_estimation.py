"""Laws of whole tables: whole, non-negative, adding up, exact where promised."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.dp.hierarchical.estimation import gathered_from, whole_estimate
from discreet.dp.hierarchical.measurement import Measurements
from discreet.randomness import Randomness
from tests.dp.hierarchical.instances import draw_measured


def require_laws(measured: Measurements, *, passes: str, gathers: bool) -> None:
    known = gathered_from(measured) if gathers else None
    levels = list(
        whole_estimate(measured, known, passes=passes, rng=Randomness.seeded(1))  # type: ignore[arg-type]
    )
    spine = measured.spine
    assert [len(level) for level in levels] == list(spine.sizes)
    for number, level in enumerate(levels):
        assert level.dtype == np.int64
        assert (level >= 0).all()
        if number:
            assert (spine.add_up(level, number) == levels[number - 1]).all()
        if measured.possible is not None:
            assert (level[:, ~measured.possible] == 0).all()
        if number in measured.exact:
            query, answers = measured.exact[number]
            assert (measured.basis.answers(level, query) == answers).all()


@pytest.mark.parametrize("passes", ["totals-first", "one"])
@pytest.mark.parametrize("gathers", [True, False])
def test_whole_tables_keep_every_law(passes: str, gathers: bool) -> None:
    for seed in range(25):
        measured, _ = draw_measured(seed, zeros=seed % 3 == 0, gaps=gathers)
        require_laws(measured, passes=passes, gathers=gathers)


@pytest.mark.slow
def test_whole_tables_keep_every_law_on_many() -> None:
    for seed in range(5000, 6000):
        rng = np.random.default_rng(seed)
        measured, _ = draw_measured(
            seed, rho=float(10 ** rng.uniform(-3, 2)), zeros=bool(rng.random() < 0.3)
        )
        require_laws(measured, passes=str(rng.choice(["totals-first", "one"])), gathers=True)


def test_with_much_budget_the_truth_comes_back() -> None:
    for seed in range(5):
        measured, leaves = draw_measured(seed, rho=1e6)
        *_, last = whole_estimate(measured, gathered_from(measured), rng=Randomness.seeded(1))
        assert (last == leaves).all()


def test_nothing_of_the_truth_is_needed_after_measuring() -> None:
    measured, leaves = draw_measured(7)
    expected = list(whole_estimate(measured, gathered_from(measured), rng=Randomness.seeded(3)))
    leaves[:] = -(2**60)  # poison
    again = list(whole_estimate(measured, gathered_from(measured), rng=Randomness.seeded(3)))
    assert all((one == two).all() for one, two in zip(expected, again, strict=True))
    held = [value for value in vars(measured).values() if isinstance(value, np.ndarray)]
    assert all(array.dtype == bool for array in held)
