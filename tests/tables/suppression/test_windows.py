"""Windows: what large tables are protected with, tried on small ones."""

import numpy as np
import pandas as pd
import pytest

from discreet.audit.intervals import audit_table
from discreet.audit.problem import Tuning
from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Status, Table
from discreet.tables.suppression import engine
from discreet.tables.suppression.task import Scale


def nested(name, *widths):
    pairs, level = [("T", "")], ["T"]
    for depth, width in enumerate(widths):
        parts = [f"{name}{depth}.{i}" for i in range(len(level) * width)]
        pairs += [(part, level[i // width]) for i, part in enumerate(parts)]
        level = parts
    return Hierarchy.from_pairs(pairs), level


THREE_WAY = {"a": (3, 3), "b": (2, 4), "c": (4,)}


def table(seed, records=900, shape=THREE_WAY):
    """A table of records, sensitive where fewer than three contribute."""
    draw = np.random.default_rng(seed)
    hierarchies, chosen = {}, {}
    for name, widths in shape.items():
        hierarchy, leaves = nested(name, *widths)
        hierarchies[name] = hierarchy
        weight = 1 / np.arange(1, len(leaves) + 1)
        chosen[name] = draw.choice(leaves, size=records, p=weight / weight.sum())
    people = pd.DataFrame(chosen).assign(value=draw.integers(1, 100, records).astype(float))
    people["n"] = 1
    for name, hierarchy in hierarchies.items():
        people[name] = people[name].map(hierarchy.ancestors)
        people = people.explode(name)
    sums = people.groupby(list(shape)).agg(
        value=("value", "sum"), n=("n", "sum"), x1=("value", "max")
    )
    cells = sums.reset_index()
    cells["primary"] = cells["n"] < 3
    cells["level"] = 0.1 * cells["x1"]
    return Table.from_cells(
        cells,
        by=list(shape),
        value="value",
        count="n",
        contributions=["x1"],
        hierarchies=hierarchies,
        primary="primary",
        lower="level",
        upper="level",
    )


@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
@pytest.mark.parametrize("large", [0, 10**9])
def test_patterns_found_in_windows_are_safe_and_repeat(attacker, large):
    scale = Scale(whole=0, large=large)
    given = table(seed=3)
    assert (given.status == Status.PRIMARY).sum() > 20
    first = engine.suppress(given, effort="fast", attacker=attacker, scale=scale)
    second = engine.suppress(given, effort="fast", attacker=attacker, scale=scale)
    assert first.status.tolist() == second.status.tolist()
    assert audit_table(given, published=first.status, attacker=attacker).safe


def test_windows_cost_little_more_than_the_whole_table():
    given = table(seed=4)
    asked = {"objective": "value", "effort": "fast", "attacker": "outsider"}
    whole = engine.suppress(given, **asked)
    near = engine.suppress(given, **asked, scale=Scale(whole=0))
    assert near.cost <= 1.5 * whole.cost


def test_large_components_are_decided_part_by_part_as_at_once():
    given = table(seed=5)
    pattern = engine.suppress(given, effort="fast", attacker="outsider")
    status = pattern.status.copy()
    secondary = np.flatnonzero(status == Status.SECONDARY)
    status[secondary[::7]] = Status.SAFE
    at_once = audit_table(given, published=status)
    in_parts = audit_table(given, published=status, tuning=Tuning(parts=(10, 25)))
    assert at_once.unsafe == in_parts.unsafe > 0
    assert at_once.unsafe_cells == in_parts.unsafe_cells


def test_a_holding_knows_all_of_its_cells():
    cells = pd.DataFrame(
        {
            "s": ["T", "A", "B", "C", "D"],
            "value": [100.0, 10, 20, 30, 40],
            "n": [8, 1, 1, 1, 5],
            "p": [0, 1, 1, 1, 0],
            "level": 1.0,
        }
    )
    given = Table.from_cells(
        cells,
        by=["s"],
        value="value",
        count="n",
        primary="p",
        lower="level",
        upper="level",
        total="T",
    )
    shown = np.array([True, False, False, False, True])
    assert audit_table(given, published=shown, attacker="contributors").safe
    # A and B belong to one holding, which then computes C.
    holding = given.replace(contributors=np.array([[9], [7], [7], [8], [9]]))
    audit = audit_table(holding, published=shown, attacker="contributors")
    assert audit.unsafe_cells == [("C",)]
    repaired = engine.suppress(holding, attacker="contributors")
    assert repaired.audit.safe
    assert repaired.secondaries == 1
