"""How wide an interval or how large a base is tells no more of a value than the values inside it.

The reader knows the rule, here that a contributor who is alone has a level in percent of the value,
and the method. For each value that a publication leaves it asks whether any key gives what is
printed.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.tables.assessment import assess
from discreet.tables.methods._rounding_bases import rounding_base

SHARE = 20  # percent of the value: both levels together


def marked(alone, share=SHARE):
    """Return three sectors, one of which is one contributor."""
    part = alone % 1
    cells = pd.DataFrame({"s": list("ABC"), "v": [alone, 37000 + part, 28000 + part]})
    cells.loc[3] = ["Total", cells["v"].sum()]
    cells["n"] = [1, 4, 4, 9]
    table = dc.Table.from_cells(cells, ["s"], "v", count="n")
    return dc.Intervals().prepare(table, [dc.MinimumFrequency(3, share / 2)])


def bounds(made):
    cell = made.table.cell("A")
    return float(made.lower[cell]), float(made.upper[cell])


def _as_wide(one, other, *, whole):
    """Whether intervals are as wide as each other; of real numbers the ends were rounded."""
    wide, other_wide = (high - low for low, high in (one, other))
    return wide == other_wide if whole else 0.88 < wide / other_wide < 1.12


@pytest.mark.parametrize("alone", [1234, 999, 1000.5])
def test_the_width_of_an_interval_fits_every_value_in_it(alone):
    made = (
        dc.Intervals().hide(marked(alone), rng=dc.Randomness.seeded(seed)) for seed in range(20)
    )
    # One that does not begin at zero, where two pieces are joined.
    low, high = next(ends for ends in map(bounds, made) if ends[0] > 0)
    assert high - low >= SHARE / 100 * high * (1 - 1e-9)
    ends = np.linspace(low, high, 4)
    others = np.round(ends) if float(alone).is_integer() else np.floor(ends) + alone % 1
    for other in others[(low <= others) & (others <= high)].tolist():
        # Where a piece begins goes by the key; how wide it is must be possible for each value.
        keyed = (
            dc.Intervals().hide(marked(other), rng=dc.Randomness.seeded(seed)) for seed in range(40)
        )
        whole = float(alone).is_integer()
        found = (_as_wide(bounds(made), (low, high), whole=whole) for made in keyed)
        assert any(found), (low, high, other)


ROUNDINGS = [dc.ConventionalRounding, dc.RandomRounding, dc.ControlledRounding]


@pytest.mark.parametrize("share", [20, 30, 60])
@pytest.mark.parametrize("method", ROUNDINGS, ids=lambda m: m.name)
def test_a_base_that_is_chosen_leaves_the_promised_width(method, share):
    nearest = method is dc.ConventionalRounding
    keys = [bytes([seed]) * 32 for seed in range(16)]
    for alone in (249.5, 226.5, 165.5):
        made = method().hide(marked(alone, share), rng=dc.Randomness.seeded(int(alone)))
        low, high = bounds(made)
        steps = np.linspace(low, high, 16)
        possible = []
        for other in steps[steps > 0]:
            table = marked(other, share)
            bases = (rounding_base(table, None, key, nearest=nearest) for key in keys)
            if made.facts["base"] in bases:
                possible.append(other)
        # The ends of what is possible are known to a step on either side.
        left = max(possible) - min(possible) + 2 * (steps[1] - steps[0])
        assert left >= share / 100 * alone, (alone, made.facts, low, high)


@pytest.mark.parametrize("method", ROUNDINGS, ids=lambda m: m.name)
def test_a_verdict_is_the_same_for_all_values_that_are_rounded_alike(method):
    """That a table was released would tell that no value needs more than the base."""
    verdicts = {}
    for alone in np.arange(200.5, 300, 6):
        made = method(50).hide(marked(alone), rng=dc.Randomness.seeded(1))
        verdicts.setdefault(bounds(made), set()).add(assess(made, method(50)).safe)
    assert len(verdicts) > 1
    assert all(len(found) == 1 for found in verdicts.values())
