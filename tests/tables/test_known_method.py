"""An attacker who has the program and not the key: which counts can it exclude?

It takes every table that agrees with a publication and asks whether the method could have withheld
the same cells for it, whatever coins its key tosses. Counts of tables that could not are excluded.
Enumerated here for every table of three cells from 0 to 6, of four cells from 0 to 4, and of two by
two cells with margins from 0 to 4. N itself is often excluded: where no count is below N nothing is
withheld. So each count below N must remain, and one of N or more.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from tests.tables.enumeration import counts, forced, hidden_by, squares

import discreet as dc
from discreet.audit.intervals import audit_table
from discreet.tables.suppression.deniability import Frequencies
from discreet.tables.suppression.engine import suppress

N = 3


class Method:
    """The method as an attacker can run it: with any coins, on any table."""

    def __init__(self, attacker, objective):
        self.method = dc.Suppression(attacker=attacker, objective=objective)
        self._given = {}

    def _run(self, leaves, *, key=0, wanted=None):
        if 0 < sum(leaves) < N:
            return None  # the grand total itself is sensitive
        table = self.method.prepare(counts(np.array(leaves)), [dc.MinimumFrequency(N)])
        coins = None if wanted is None else forced([False, *wanted])
        withheld = hidden_by(self.method, table, key=key, coins=coins)
        assert withheld is None or not withheld[0], "the total of counts was withheld"
        return None if withheld is None else tuple(withheld[1:].tolist())

    def gives(self, leaves, pattern):
        """Whether some coins withhold these leaves.

        Codes are only names to the method, so that what holds for a table holds for its orders.
        """
        pairs = sorted(zip(leaves, pattern, strict=True))
        if tuple(pairs) not in self._given:
            ordered, wanted = zip(*pairs, strict=True)
            self._given[tuple(pairs)] = self._run(ordered, wanted=wanted) == wanted
        return self._given[tuple(pairs)]

    def patterns(self, leaves, keys):
        """The patterns that some keys give."""
        found = {self._run(leaves, key=key) for key in range(keys)}
        return sorted(found - {None})


@functools.cache
def partitions(total, parts):
    """All ways to write a total as so many counts of at least one."""
    if parts == 1:
        return [(total,)] if total > 0 else []
    return [
        (first, *rest)
        for first in range(1, total - parts + 2)
        for rest in partitions(total - first, parts - 1)
    ]


def excluded(method, leaves, pattern, attackers):
    """The sensitive cells of which the attacker excludes a count that is promised.

    Promised are every count from 1 to N - 1, and one of N or more.
    """
    hidden = [place for place, flag in enumerate(pattern) if flag]
    found = []
    for cell in hidden:
        if not 0 < leaves[cell] < N:
            continue
        for known in (None, *(c for c in hidden if attackers and leaves[c] == 1 and c != cell)):
            left = {leaves[cell]}
            for counted in partitions(sum(leaves[c] for c in hidden), len(hidden)):
                other = dict(zip(hidden, counted, strict=True))
                if (known is not None and other[known] != 1) or min(other[cell], N) in left:
                    continue
                whole = [other.get(place, value) for place, value in enumerate(leaves)]
                if method.gives(whole, pattern):
                    left.add(min(other[cell], N))
            if left != set(range(1, N + 1)):
                found.append(cell)
                break
    return found


def enumerate_all(cells, most, attacker, objective, keys):
    """Return how many sensitive cells lose a promised count, of how many."""
    method = Method(attacker, objective)
    wrong = total = 0
    for leaves in itertools.combinations_with_replacement(range(most + 1), cells):
        if not any(0 < value < N for value in leaves):
            continue
        for pattern in method.patterns(leaves, keys):
            total += sum(0 < value < N for value in leaves)
            wrong += len(excluded(method, leaves, pattern, attacker == "contributors"))
    return wrong, total


@pytest.mark.parametrize("objective", ["count", "value"])
def test_who_has_the_program_excludes_no_promised_count(objective):
    wrong, total = enumerate_all(3, 3, "contributors", objective, keys=2)
    assert total > 15
    assert wrong == 0


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "most"), [(3, 6), (4, 4)])
@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
@pytest.mark.parametrize("objective", ["count", "value"])
def test_who_has_the_program_excludes_no_promised_count_in_any_table(
    cells, most, attacker, objective
):
    """The share of sensitive cells that lose a promised count is 0."""
    wrong, total = enumerate_all(cells, most, attacker, objective, keys=6)
    assert total > 50
    assert wrong == 0


def is_safe_for(method, leaves, shown):
    """Whether a pattern that was published of one table protects another."""
    if 0 < sum(leaves) < N:
        return False
    pattern = np.frombuffer(shown, dtype=bool)
    table = method.prepare(counts(np.array(leaves).reshape(2, 2)), [dc.MinimumFrequency(N)])
    sensitive = table.status == 2
    if not sensitive.any() or (sensitive & ~pattern).any() or (pattern & (table.value == 0)).any():
        return False
    return audit_table(table, published=~pattern, attacker=method.attacker).safe


def is_given_for(method, leaves, shown):
    """Whether some coins withhold these cells of another 2 × 2 table."""
    if not is_safe_for(method, leaves, shown):
        return False
    table = method.prepare(counts(np.array(leaves).reshape(2, 2)), [dc.MinimumFrequency(N)])
    found = hidden_by(method, table, coins=forced(np.frombuffer(shown, dtype=bool)))
    return found is not None and found.tobytes() == shown


def enumerate_squares(method, tables, fitting, keys, hide=hidden_by):
    """Return how many sensitive cells of 2 × 2 tables with margins lose a promised count, of how many.

    An alternative counts where the pattern could be published of it, too.
    """
    wrong = total = 0
    fits = functools.cache(functools.partial(fitting, method))
    for leaves, times in tables.items():
        table = method.prepare(counts(np.array(leaves).reshape(2, 2)), [dc.MinimumFrequency(N)])
        if 0 < sum(leaves) < N or not (table.status == 2).any():
            continue
        found = [hide(method, table, key=key) for key in range(keys)]
        for shown in {pattern.tobytes() for pattern in found if pattern is not None}:
            total += times * int((table.status == 2).sum())
            wrong += times * _told(method, table, leaves, shown, fits)
    return wrong, total


def _told(method, table, leaves, shown, fits):
    """How many sensitive cells of one table lose a promised count by one pattern."""
    pattern, told = np.frombuffer(shown, dtype=bool), functools.partial(fits, shown=shown)
    every = itertools.product(range(max(sum(leaves), N) + 1), repeat=4)
    others = [one for one in every if agree(table, counted(one), pattern)]
    alone = [c for c in np.flatnonzero(pattern).tolist() if table.value[c] == 1]
    wrong = 0
    for cell in np.flatnonzero(table.status == 2).tolist():
        knowing = [None, *(c for c in alone if c != cell and method.attacker == "contributors")]
        wrong += any(
            loses(table, cell, [o for o in others if c is None or counted(o)[c] == 1], told)
            for c in knowing
        )
    return wrong


def loses(table, cell, others, fits):
    """Whether a count below N that the equations leave, or all of N and more, come from no table that fits."""
    at = {one: min(counted(one)[cell], N) for one in others}
    left = {table.value[cell]}
    for one in sorted(others, key=lambda one: abs(at[one] - table.value[cell])):
        if at[one] not in left and fits(one):
            left.add(at[one])
        if left == set(at.values()):
            return False
    return True


@functools.cache
def counted(leaves):
    """The nine cells of a 2 × 2 table with margins, in the order of `counts`."""
    a, b, c, d = leaves
    return np.array([a + b + c + d, a + c, b + d, a + b, a, b, c + d, c, d], dtype=float)


def agree(table, value, pattern):
    """Whether another table prints the same: equal where published, not empty where withheld."""
    return bool((value[~pattern] == table.value[~pattern]).all() and (value[pattern] > 0).all())


@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_squares_with_margins_tell_no_count(attacker):
    some = Counter(dict(sorted(squares(3).items())[::12]))
    wrong, total = enumerate_squares(dc.Suppression(attacker=attacker), some, is_given_for, 1)
    assert total > 20
    assert wrong == 0


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["count", "value"])
@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_no_square_with_margins_tells_a_count(attacker, objective):
    """The share of sensitive cells that lose a promised count is 0."""
    method = dc.Suppression(attacker=attacker, objective=objective)
    wrong, total = enumerate_squares(method, squares(4), is_given_for, 3)
    assert total > 1000
    assert wrong == 0


def test_the_cheapest_patterns_of_squares_tell_counts():
    """The control: what the search finds is published as it is."""

    def cheapest(method, table, *, key):
        margins = (table.codes == 0).all(axis=1)
        settings = {"attacker": method.attacker, "never": margins, "key": bytes([key])}
        try:
            return suppress(table, **settings).withheld
        except dc.InfeasibleError:
            return None

    tables = Counter({leaves: 1 for leaves in sorted(squares(4)) if 0 not in leaves})
    tables = Counter(dict(list(tables.items())[::6]))
    wrong, total = enumerate_squares(dc.Suppression(), tables, is_safe_for, 1, cheapest)
    assert 0 < wrong < total


def nearest(rng, table, hidden, cell, low, high, held):
    """Return a table near this one that prints the same and has a count between two ends in a cell.

    Of the cells in `held` those that are not small stay so, and those that count one do.
    """
    block = table.equations.toarray()[:, hidden]
    target = (hidden == cell) * 1.0
    sides = [LinearConstraint(np.c_[block, -block], 0, 0)]
    ends = low - table.value[cell], high - table.value[cell]
    sides.append(LinearConstraint(np.r_[target, -target][None], *ends))
    value = table.value[hidden]
    least = np.where(held[hidden] & (value >= N), N, 1)
    rise = np.where(held[hidden] & (value == 1), 0.0, 20.0)
    found = milp(
        rng.uniform(0.1, 10, 2 * len(hidden)),
        constraints=sides,
        bounds=Bounds(0, np.r_[rise, value - least]),
        integrality=np.ones(2 * len(hidden)),
    )
    if found.x is None:
        return None
    up, down = np.round(found.x).reshape(2, -1)
    other = table.value.copy()
    other[hidden] += up - down
    return other


def told_of_large(method, rng, leaves, key=0):
    """Return how many sensitive cells a table has, and how many of them lose a promised count.

    For each count tables near by are tried: the method must give one of them the same pattern. A
    contributor tries only tables in which its own cell counts one.
    """
    rules = [dc.MinimumFrequency(N)]
    table = method.prepare(counts(leaves), rules)
    pattern = hidden_by(method, table, key=key)
    hidden, inner = np.flatnonzero(pattern), (table.codes > 0).all(axis=1)
    sensitive = np.flatnonzero(table.status == 2).tolist()
    alone = [c for c in sensitive if table.value[c] == 1 and inner[c]]
    knowers = [None, *alone] if method.attacker == "contributors" else [None]
    given, told = [table.value], set()
    for cell, count, knower in itertools.product(sensitive, range(1, N + 1), knowers):
        if knower == cell or cell in told:
            continue
        known = hidden[:0] if knower is None else np.array([knower])
        for attempt in range(60):
            if any(min(one[cell], N) == count and (one[known] == 1).all() for one in given):
                break
            held = rng.random(len(table)) < 0.9 ** (attempt // 4)
            held[known], held[cell] = True, False
            ends = (count, count if count < N else np.inf)
            value = nearest(rng, table, hidden, cell, *ends, held)
            if value is None:
                continue
            other = method.prepare(counts(value[inner].reshape(leaves.shape)), rules)
            found = hidden_by(method, other, coins=forced(pattern))
            if found is not None and (found == pattern).all():
                given.append(other.value)
        else:
            told.add(cell)
    return len(sensitive), len(told)


def test_a_table_of_forty_cells_tells_no_count():
    rng = np.random.default_rng(12)
    leaves = rng.poisson(rng.lognormal(1.6, 0.7, (8, 6)))
    cells, told = told_of_large(dc.Suppression(attacker="outsider", effort="fast"), rng, leaves)
    assert cells == 13
    assert told == 0


@pytest.mark.slow
@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
@pytest.mark.parametrize("shape", [(8, 6), (15, 4)])
def test_patterns_of_larger_tables_could_be_those_of_their_neighbours(attacker, shape):
    """Tables with 10^8 alternatives and more: the share of sensitive cells that lose a count is 0."""
    cells = told = 0
    for seed in range(11, 28):
        rng = np.random.default_rng(seed)
        leaves = rng.poisson(rng.lognormal(1.6, 0.7, shape))
        found = told_of_large(dc.Suppression(attacker=attacker), rng, leaves)
        cells, told = cells + found[0], told + found[1]
    assert cells > 100
    assert told == 0


def test_every_pattern_that_tells_nothing_comes_from_some_key():
    """Keys give no other, and for each of them there are coins."""
    method = dc.Suppression(attacker="outsider")
    table = method.prepare(counts(np.array([[2, 4], [4, 4]])), [dc.MinimumFrequency(N)])
    known = Frequencies.of(table, "outsider")
    may = np.flatnonzero((table.value > 0) & (table.status != 2))[1:]  # not the grand total
    expected = set()
    for size in range(len(may) + 1):
        for chosen in itertools.combinations(may.tolist(), size):
            pattern = table.status == 2
            pattern[list(chosen)] = True
            if known.denies(pattern) and audit_table(table, published=~pattern).safe:
                expected.add(pattern.tobytes())
    found = {hidden_by(method, table, key=key).tobytes() for key in range(20)}
    assert found <= expected
    assert len(found) > 1
    for one in sorted(expected)[::6]:
        by_coins = hidden_by(method, table, coins=forced(np.frombuffer(one, dtype=bool)))
        assert by_coins.tobytes() == one


def test_a_method_without_a_key_tells_counts():
    """The control: the same search without noise excludes counts that are promised."""

    def withheld(leaves):
        table = dc.Suppression().mark(counts(np.array(leaves)), [dc.MinimumFrequency(N)])
        try:
            found = suppress(table, objective="value", attacker="outsider")
        except dc.InfeasibleError:
            return None
        return tuple(found.withheld[(table.codes > 0).all(axis=1)].tolist())

    pattern = withheld((2, 3, 3))
    left = {
        first
        for first in range(1, 5)
        if withheld((first, 5 - first, 3) if pattern[1] else (first, 3, 5 - first)) == pattern
    }
    assert left < {1, 2, 3, 4}
    assert min(left) > 1 or max(left) < 3


def test_the_same_key_gives_the_same_pattern(tmp_path):
    keys = [tmp_path / name for name in ("one.key", "two.key")]
    for number, key in enumerate(keys):
        key.write_bytes(bytes([number]) * 32)
    rng = np.random.default_rng(1)
    table = counts(rng.poisson(4, (6, 5)))
    rules = [dc.MinimumFrequency(N)]
    found = [
        table.protect(rules, dc.Suppression(key=str(key))).protected.withheld.tolist()
        for key in (keys[0], keys[0], keys[1])
    ]
    assert found[0] == found[1] != found[2]
    drawn = {tuple(table.protect(rules).protected.withheld.tolist()) for _ in range(4)}
    assert len(drawn) > 1


def test_neither_key_nor_optimality_is_published(tmp_path):
    key = tmp_path / "secret.key"
    key.write_bytes(b"0123456789abcdef0123456789abcdef")
    release = counts(np.array([[5, 4, 1], [6, 7, 8]])).protect(
        [dc.MinimumFrequency(N)], dc.Suppression(key=str(key))
    )
    folder = release.write(tmp_path / "out")
    written = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    assert str(key).encode() not in written
    assert key.read_bytes() not in written
    for word in (b"optimal", b"gap_at_most"):
        assert word not in (folder / "evidence.json").read_bytes()
    page = release.write_curator(tmp_path / "curator.html").read_text(encoding="utf-8")
    assert "cheapest" in page
