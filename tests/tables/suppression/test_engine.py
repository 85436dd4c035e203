"""Suppression: safe by an independent brute force, deterministic, and cheap."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from tests.tables.instances import random_table

import discreet as dc
from discreet import demo
from discreet.audit.intervals import audit_table
from discreet.audit.sensitivity import mark
from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Status
from discreet.tables.suppression import efforts
from discreet.tables.suppression.engine import suppress
from discreet.tables.table import Table


def crossed(shape, values, counts, largest, *, level=0.1, rare=3):
    """A table over flat or nested attributes with all totals, sensitive by frequency and p %."""
    hierarchies, ancestors = {}, []
    for place, size in enumerate(shape):
        name = "abc"[place]
        leaves = [f"{name}{i}" for i in range(size)]
        nested = place == 0 and size >= 4
        pairs = [("T", "")]
        above = {}
        if nested:
            pairs += [("g0", "T"), ("g1", "T")]
        for i, leaf in enumerate(leaves):
            parent = f"g{i % 2}" if nested else "T"
            pairs.append((leaf, parent))
            above[i] = [leaf, parent, "T"] if nested else [leaf, "T"]
        hierarchies[name] = Hierarchy.from_pairs(pairs)
        ancestors.append(above)
    cells = {}
    for at, value, count, top in zip(
        itertools.product(*(range(s) for s in shape)), values, counts, largest, strict=True
    ):
        for key in itertools.product(*(ancestors[d][i] for d, i in enumerate(at))):
            old = cells.get(key, (0, 0, 0))
            cells[key] = (old[0] + value, old[1] + count, max(old[2], top))
    names = list("abc"[: len(shape)])
    rows = [[*key, *cell] for key, cell in cells.items()]
    frame = pd.DataFrame(rows, columns=[*names, "value", "n", "x1"])
    frame["primary"] = (frame["n"] > 0) & (frame["n"] < rare) & (frame["value"] > 0)
    frame.loc[(frame[names] == "T").all(axis=1), "primary"] = False
    frame["level"] = np.maximum(level * frame["x1"], 0.5)
    return Table.from_cells(
        frame,
        by=names,
        value="value",
        count="n",
        contributions=["x1"],
        hierarchies=hierarchies,
        primary="primary",
        lower="level",
        upper="level",
    )


@st.composite
def tables(draw):
    shape = draw(st.sampled_from([(3,), (2, 3), (3, 3), (4, 3), (5, 4), (2, 2, 2), (4, 2, 2)]))
    size = int(np.prod(shape))
    counts = draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 5, 9]), min_size=size, max_size=size))
    parts = [draw(st.lists(st.integers(1, 40), min_size=n, max_size=n)) for n in counts]
    return crossed(shape, [sum(p) for p in parts], counts, [max(p, default=0) for p in parts])


def ends(table, hidden, cell, knows=()):
    """The interval of a cell and tables at its ends by another solver; bounds of some cells known."""
    equations = table.equations.toarray()
    shown = ~hidden
    right = -equations[:, shown] @ table.value[shown]
    cells = np.flatnonzero(hidden)
    known = dict(knows)
    bounds = [known.get(int(c), (0.0, None)) for c in cells]
    found, tables = [], []
    for sign in (1.0, -1.0):
        cost = np.where(cells == cell, sign, 0.0)
        solution = linprog(cost, A_eq=equations[:, cells], b_eq=right, bounds=bounds)
        found.append(np.inf * -sign if solution.status == 3 else sign * solution.fun)
        tables.append(
            dict(zip(cells.tolist(), solution.x, strict=True)) if solution.success else None
        )
    return found, tables


def enough(table, cell, interval, before=(0.0, np.inf)):
    """Whether an interval covers the levels, or as much of them as was possible before."""
    level, value = table.lower[cell], table.value[cell]
    slack = 1e-5 * max(1.0, level)
    fallen = interval[0] <= max(value - level, before[0]) + slack
    return fallen and interval[1] >= min(value + level, before[1]) - slack


def protected(table, hidden, cell):
    return enough(table, cell, ends(table, hidden, cell)[0])


EFFORTS, OBJECTIVES = st.sampled_from(["fast", "balanced"]), st.sampled_from(["count", "value"])


@settings(max_examples=25, deadline=None)
@given(tables(), EFFORTS, OBJECTIVES)
def test_no_outsider_infers_a_sensitive_cell(table, effort, objective):
    require_safe_from_outsiders(table, effort, objective)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(tables(), EFFORTS, OBJECTIVES)
def test_no_outsider_infers_a_sensitive_cell_of_thousands(table, effort, objective):
    require_safe_from_outsiders(table, effort, objective)


def require_safe_from_outsiders(table, effort, objective):
    try:
        pattern = suppress(table, objective=objective, effort=effort, attacker="outsider")
    except dc.InfeasibleError:
        assert not can_be_safe(table)
        return
    for cell in np.flatnonzero(table.status == Status.PRIMARY):
        assert protected(table, pattern.withheld, int(cell))


def can_be_safe(table):
    """Whether withholding everything but empty cells protects every sensitive cell."""
    hidden = (table.value != 0) | (table.count > 0)
    return all(
        protected(table, hidden, int(c)) for c in np.flatnonzero(table.status == Status.PRIMARY)
    )


@settings(max_examples=10, deadline=None)
@given(tables(), EFFORTS, OBJECTIVES)
def test_no_single_contributor_infers_the_cell_of_another(table, effort, objective):
    require_safe_from_contributors(table, effort, objective)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(tables(), EFFORTS, OBJECTIVES)
def test_no_single_contributor_infers_the_cell_of_another_in_thousands(table, effort, objective):
    require_safe_from_contributors(table, effort, objective)


def require_safe_from_contributors(table, effort, objective):
    try:
        pattern = suppress(table, objective=objective, effort=effort, attacker="contributors")
    except dc.InfeasibleError:
        assert not can_be_safe(table) or not can_be_safe_from_contributors(table)
        return
    for cell in np.flatnonzero(table.status == Status.PRIMARY).tolist():
        assert safe_from_contributors(table, pattern.withheld, cell)


def can_be_safe_from_contributors(table):
    hidden = (table.value != 0) | (table.count > 0)
    primary = np.flatnonzero(table.status == Status.PRIMARY)
    return all(safe_from_contributors(table, hidden, int(c)) for c in primary)


def safe_from_contributors(table, hidden, cell):
    """Whether neither an outsider nor any one contributor comes too close to a sensitive cell."""
    interval, tables = ends(table, hidden, cell)
    if not enough(table, cell, interval):
        return False
    # Tables with the cell far down and far up: where a contributor cannot contradict one of each,
    # it is answered.
    low, high = ([t] if t is not None else [] for t in tables)
    largest = table.contributions[:, 0]
    every = (table.value != 0) | (table.count > 0)
    for own in np.flatnonzero(hidden).tolist():
        # Cells of the same value and contributors may be the sensitive one under another name.
        if (table.value[own], table.count[own]) == (table.value[cell], table.count[cell]):
            continue
        value = table.value[own]
        knows = {own: (value, value) if table.count[own] == 1 else (largest[own], None)}
        if all(any(agrees(t[own], *knows[own]) for t in some) for some in (low, high)):
            continue
        now, tables = ends(table, hidden, cell, knows)
        if enough(table, cell, now):
            low.extend(t for t in tables[:1] if t is not None)
            high.extend(t for t in tables[1:] if t is not None)
            continue
        if not enough(table, cell, now, ends(table, every, cell, knows)[0]):
            return False
    return True


def agrees(value, lower, upper):
    return value >= lower - 1e-7 and (upper is None or value <= upper + 1e-7)


@settings(max_examples=25, deadline=None)
@given(tables(), st.sampled_from(["outsider", "contributors"]))
def test_the_optimum_is_no_dearer_and_brute_force_finds_nothing_cheaper(table, attacker):
    try:
        best = suppress(table, objective="count", effort="optimal", attacker=attacker)
    except dc.InfeasibleError:
        return
    quick = suppress(table, objective="count", effort="fast", attacker=attacker)
    assert best.optimal
    assert best.gap == 0.0
    assert best.cost <= quick.cost
    primary = table.status == Status.PRIMARY
    others = np.flatnonzero(~primary & (table.value != 0))
    if best.secondaries == 0 or best.secondaries > 4 or len(others) > 16:
        return
    for chosen in itertools.combinations(others.tolist(), best.secondaries - 1):
        hidden = primary.copy()
        hidden[list(chosen)] = True
        assert not audit_table(table, published=~hidden, attacker=attacker).safe


def test_the_same_table_gives_the_same_pattern():
    draw = np.random.default_rng(5)
    counts = draw.integers(0, 6, 60)
    values = [int(draw.integers(1, 90) * c) for c in counts]
    table = crossed((5, 4, 3), values, counts.tolist(), [v // 2 for v in values])
    first, second = (suppress(table, objective="value") for _ in range(2))
    assert first.status.tolist() == second.status.tolist()


def square(**changes):
    values = [3, 60, 70, 50, 90, 20, 40, 30, 80]
    return crossed((3, 3), values, [1, 6, 6, 5, 9, 5, 5, 5, 8], [3, *[9] * 8]).replace(**changes)


def test_cells_that_must_stay_published_do():
    table = square()
    free = suppress(table, objective="value", attacker="outsider")
    secondary = np.flatnonzero(free.status == Status.SECONDARY)
    kept = suppress(table, objective="value", attacker="outsider", never=secondary[:1])
    assert kept.status[secondary[0]] == Status.SAFE
    assert kept.audit.safe


def test_preferred_cells_are_withheld_first():
    table = square()
    corners = [table.cell("a0", "b1"), table.cell("a1", "b0"), table.cell("a1", "b1")]
    pattern = suppress(table, objective="value", attacker="outsider", prefer=corners)
    assert np.flatnonzero(pattern.status == Status.SECONDARY).tolist() == sorted(corners)


def test_costs_decide_where_given():
    table = square()
    cost = np.full(len(table), 100.0)
    corners = [table.cell("a0", "b2"), table.cell("a2", "b0"), table.cell("a2", "b2")]
    cost[corners] = 1.0
    pattern = suppress(table.replace(cost=cost), objective="cost", attacker="outsider")
    assert np.flatnonzero(pattern.status == Status.SECONDARY).tolist() == sorted(corners)


def test_a_table_that_nothing_protects_is_named():
    table = square()
    every = np.flatnonzero(table.status != Status.PRIMARY)
    with pytest.raises(dc.InfeasibleError, match="a0 × b0") as caught:
        suppress(table, attacker="outsider", never=every)
    assert caught.value.facts["cells"] == ["a0 × b0"]


def test_a_sensitive_cell_that_must_stay_published_is_refused():
    table = square()
    with pytest.raises(dc.InputError, match="never to be withheld"):
        suppress(table, never=[table.cell("a0", "b0")])


def test_choices_are_checked():
    table = square()
    with pytest.raises(dc.InputError, match="write 'value'"):
        suppress(table, objective="values")
    with pytest.raises(dc.InputError, match="there is no effort"):
        suppress(table, effort="quick")
    with pytest.raises(dc.InputError, match="marked as sensitive"):
        suppress(table.replace(status=None))
    with pytest.raises(dc.InputError, match="needs a cost"):
        suppress(table, objective="cost")


def test_a_table_that_does_not_add_up_is_refused():
    table = square()
    value = table.value.copy()
    value[table.cell("a1", "b1")] += 40
    with pytest.raises(dc.InputError, match="differ from the sum"):
        suppress(table.replace(value=value))


def test_negative_values_are_protected():
    values = [-3, 60, 70, 50, -90, 20, 40, 30, 80]
    table = crossed((3, 3), values, [1, 6, 6, 5, 9, 5, 5, 5, 8], [3, *[9] * 8])
    status = table.status.copy()
    status[table.cell("a0", "b0")] = Status.PRIMARY
    pattern = suppress(table.replace(status=status), attacker="outsider")
    assert pattern.audit.safe
    assert pattern.secondaries == 3


def test_a_table_without_sensitive_cells_is_published_whole():
    table = square()
    pattern = suppress(table.replace(status=np.zeros(len(table), dtype=np.int8)))
    assert pattern.secondaries == 0
    assert pattern.audit.safe


INSTANCES = {
    # secondaries and value of the best safe peer
    "sdctable_microdata1": (3, 402),
    "ssb_magnitude1": (3, 4127),
    "testW_size_region": (6, 521926),
    "insee_act_size": (26, 762022),
    "insee_act_nuts2": (17, 350117),
    "ssb_z3": (151, 898),
    "ent_act_product": (63, 260341),
    "synth_25x37": (121, 80690),
    "synth_13x13x5": (187, 279833),
}


@pytest.fixture(scope="module")
def instance(data_folder):
    def read(name):
        folder = data_folder / "tables" / name
        cells = pd.read_csv(folder / "cells.csv", keep_default_na=False)
        by = list(cells.columns[: cells.columns.get_loc("value")])
        hierarchies = {}
        for dimension in by:
            file = folder / f"hier_{dimension}.csv"
            pairs = pd.read_csv(file, keep_default_na=False, dtype=str)
            hierarchies[dimension] = Hierarchy.from_pairs(pairs.itertuples(index=False, name=None))
        return Table.from_cells(
            cells.astype(dict.fromkeys(by, str)),
            by=by,
            value="value",
            count="freq",
            hierarchies=hierarchies,
            contributions=["max1", "max2"],
            primary="primary",
            lower="lpl",
            upper="upl",
            cost="cost",
        )

    return read


@pytest.mark.parametrize("name", INSTANCES)
def test_no_dearer_than_the_best_safe_peer(instance, name):
    count, value = INSTANCES[name]
    table = instance(name)
    fewest = suppress(table, objective="count", attacker="outsider")
    cheapest = suppress(table, objective="value", attacker="outsider")
    assert fewest.secondaries <= count
    assert round(cheapest.suppressed_value) <= value
    for pattern in (fewest, cheapest):
        audit = audit_table(table, published=pattern.status, exact=True)
        assert audit.unsafe == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sdctable_microdata1", 402),
        ("ssb_magnitude1", 5180),
        ("testW_size_region", 1092497),
        ("insee_act_size", 762022),
        ("insee_act_nuts2", 392789),
    ],
)
def test_contributors_are_kept_out_at_no_more_than_the_peer(instance, name, value):
    table = instance(name)
    pattern = suppress(table, objective="value", attacker="contributors")
    assert round(pattern.suppressed_value) <= value
    audit = audit_table(table, published=pattern.status, attacker="contributors")
    assert audit.safe


@pytest.mark.slow
def test_no_pattern_as_cheap_as_the_peers_keeps_contributors_out(instance):
    """The peer withholds 328,519, which cannot be safe: no safe pattern costs as little."""
    pattern = suppress(
        instance("ent_act_product"),
        objective="value",
        effort="optimal",
        attacker="contributors",
        time_limit=300,
    )
    assert pattern.bound > 328_519


@pytest.mark.parametrize("name", list(INSTANCES)[:4])
def test_small_published_tables_are_solved_to_proven_optimality(instance, name):
    table = instance(name)
    pattern = suppress(table, objective="value", effort="optimal", attacker="outsider")
    assert pattern.optimal
    assert pattern.cost <= INSTANCES[name][1] + 1


def test_exact_and_early_audits_agree_on_a_register():
    """Some firms are alone in one cell and the largest in another that moves with it."""
    table = dc.tabulate(demo.businesses(1000), by=["size", "activity"], measure="turnover")
    release = table.protect(rules=[dc.PPercent(10), dc.MinimumFrequency(3)])
    assert release.audit(exact=False).safe
    assert release.audit(exact=True).safe


@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
@pytest.mark.parametrize("lost", ["secondaries", "certificates that reach not quite far enough"])
def test_a_pattern_that_the_auditor_refuses_is_mended(monkeypatch, attacker, lost):
    """A search may miss demands by rounding; the pattern is completed, not refused."""
    table = mark(random_table(3, (4, 3)), [dc.PPercent(15), dc.MinimumFrequency(2)])
    sound = efforts.fast

    def careless(task, progress):
        found = sound(task, progress)
        if lost == "secondaries":
            return efforts.Found(task.primary.copy(), [], found.work)
        half = sound(dataclasses.replace(task, amount=task.amount * 0.5), progress)
        return efforts.Found(half.withheld, [], half.work)

    monkeypatch.setattr(efforts, "fast", careless)
    pattern = suppress(table, effort="fast", attacker=attacker)
    assert pattern.audit.safe
    assert audit_table(table, published=pattern.status, attacker=attacker, exact=True).safe
