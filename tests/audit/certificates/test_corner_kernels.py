"""The compiled search for product certificates against the one written out."""

from __future__ import annotations

import numpy as np
import pytest
from tests.audit.certificates import reference
from tests.audit.certificates.reference import Search
from tests.tables.suppression.test_windows import table

from discreet.audit.certificates._belief import believed
from discreet.audit.certificates.corners import corners
from discreet.tables.suppression.task import Task

# One worker compiles what these call.
pytestmark = pytest.mark.xdist_group("corner kernels")

SHAPES = (
    {"a": (2,)},
    {"a": (5,)},
    {"a": (2, 2, 2), "b": (2,)},
    {"a": (2, 2), "b": (4,)},
    {"a": (3,), "b": (2, 3)},
    {"a": (2,), "b": (3,), "c": (2,)},
)


def both(task, **log):
    size = len(task.value)
    # Powers of two add up exactly in any order.
    given = {
        "withheld": task.primary,
        "live": task.live,
        "price": np.ones(size),
        "free": np.full(size, 2.0**-17),
        "knowledge": task.knowledge,
    }
    asked = (task.table, (task.target, task.amount), (task.down, task.up))
    return corners(*asked, **given, **log), Search(*asked, **given).run()


@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_kernels_find_what_the_plain_search_finds(seed, shape, attacker):
    # Few records make totals sensitive too, more make certificates long.
    given = table(seed, records=(3, 8, 20, 40)[seed % 4] * len(shape), shape=shape)
    found, plain = both(Task.of(given, attacker=attacker))
    assert found.withheld.tolist() == plain.withheld
    assert found.met.tolist() == plain.met
    told = [list(zip(c.tolist(), m.tolist(), strict=True)) for c, m in found.certificates]
    assert told == plain.certificates


@pytest.mark.parametrize("log", [(1, 1 << 20), (2, 1 << 20), (4096, 2 * 4096 + 9)])
@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_a_log_that_is_full_is_emptied_and_the_search_goes_on(attacker, log):
    given = table(3, records=16, shape=SHAPES[3])
    found, plain = both(Task.of(given, attacker=attacker), log=log)
    assert found.met.tolist() == plain.met
    told = [list(zip(c.tolist(), m.tolist(), strict=True)) for c, m in found.certificates]
    assert told == plain.certificates
    assert len(told) > log[0] or sum(map(len, told)) > log[1] - 2 * 4096


def test_the_cases_hold_certificates_and_contributors_who_refute_some():
    task = Task.of(table(1, records=48, shape=SHAPES[3]), attacker="contributors")
    found, plain = both(task)
    assert plain.informed
    assert 0 < sum(plain.met) < len(plain.met) or len(plain.certificates) > 5
    assert (found.withheld & ~task.primary).any()


@pytest.mark.parametrize("seed", range(30))
def test_contributors_are_answered_where_the_plain_comparison_says(seed):
    draw = np.random.default_rng(seed)
    cells = int(draw.integers(4, 9))
    same = np.arange(cells)
    same[1] = draw.integers(0, 2)  # two cells that are always equal, in some cases
    owner = draw.integers(-1, 4, cells)
    pool = np.where(owner == 0, 9, owner)
    known = [
        [
            (int(who), float(draw.integers(0, 4)), bool(draw.random() < 0.2))
            for who in draw.permutation([0, 1, 2, 3, 9])[: draw.integers(0, 3)]
        ]
        for _ in range(cells)
    ]
    certificates = [
        [
            (int(cell), float(draw.integers(-4, 5)))
            for cell in draw.permutation(cells)[: draw.integers(1, 5)]
        ]
        for _ in range(8)
    ]
    entries = sorted({(cell, row) for row, found in enumerate(certificates) for cell, _ in found})
    targets, rows = np.array(entries).T
    starts = np.cumsum([0, *map(len, certificates)])
    moved, moves = (np.array(part) for part in zip(*(pair for c in certificates for pair in c), strict=True))  # fmt: skip
    by_cell = np.cumsum([0, *map(len, known)])
    who, fall, sole = (np.array(part) for part in zip(*(entry for k in known for entry in k), strict=True))  # fmt: skip
    found = believed(
        targets, rows, starts, moved, moves, same, owner, pool, by_cell, who, fall, sole
    )
    assert found.tolist() == reference.believed(
        targets.tolist(), rows.tolist(), certificates, same, owner, pool, known
    )
