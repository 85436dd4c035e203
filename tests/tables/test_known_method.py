"""An attacker who has the program and not the key: which counts can it exclude?

It takes every table that agrees with a publication and asks whether the method could have withheld
the same cells for it under any key. Counts of tables that could not are excluded. Enumerated here for
every table of three cells from 0 to 6, of four cells from 0 to 4, and of two by two cells.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter

import numpy as np
import pytest
from tests.tables.enumeration import counts

import discreet as dc
from discreet.audit.intervals import audit_table

N = 3
#: Keys after which a pattern counts as one that the method never gives.
KEYS = 80


class Method:
    """The method as an attacker can run it: under many keys, on any table."""

    def __init__(self, attacker, objective):
        self.method = dc.Suppression(attacker=attacker, objective=objective)
        self._found, self._asked = {}, {}

    def _run(self, leaves, key):
        if 0 < sum(leaves) < N:
            return None  # the grand total itself is sensitive
        table = counts(np.array(leaves))
        table = self.method.prepare(table, [dc.MinimumFrequency(N)])
        try:
            done = self.method.hide(table, rng=dc.Randomness.seeded(key))
        except dc.InfeasibleError:
            return None
        inner = (table.codes > 0).all(axis=1)
        assert not done.withheld[~inner].any(), "a total of counts was withheld"
        return tuple(done.withheld[inner].tolist())

    def gives(self, leaves, pattern):
        """Whether some key withholds these leaves.

        Codes are only names to the method, so that what holds for a table holds for its orders.
        """
        pairs = sorted(zip(leaves, pattern, strict=True))
        ordered = tuple(value for value, _ in pairs)
        wanted = tuple(flag for _, flag in pairs)
        found = self._found.setdefault(ordered, set())
        while wanted not in found and self._asked.get(ordered, 0) < KEYS:
            key = self._asked[ordered] = self._asked.get(ordered, 0) + 1
            pattern = self._run(ordered, key)
            if pattern is None:
                self._asked[ordered] = KEYS
            else:
                again = sorted(zip(ordered, pattern, strict=True))
                found.add(tuple(flag for _, flag in again))
        return wanted in found

    def patterns(self, leaves, keys):
        """The patterns that some keys give."""
        found = {self._run(leaves, key) for key in range(keys)}
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
    """The sensitive cells of which the attacker excludes a count that the rule keeps possible."""
    hidden = [place for place, flag in enumerate(pattern) if flag]
    found = []
    for cell in hidden:
        if not 0 < leaves[cell] < N:
            continue
        for known in (None, *(c for c in hidden if attackers and leaves[c] == 1 and c != cell)):
            ends = {leaves[cell]}
            for counted in partitions(sum(leaves[c] for c in hidden), len(hidden)):
                other = dict(zip(hidden, counted, strict=True))
                if known is not None and other[known] != 1:
                    continue
                if min(ends) <= other[cell] <= max(ends):
                    continue
                whole = [other.get(place, value) for place, value in enumerate(leaves)]
                if method.gives(whole, pattern):
                    ends.add(other[cell])
                if min(ends) <= max(leaves[cell] - 1, 1) and max(ends) >= leaves[cell] + 1:
                    break
            if min(ends) > max(leaves[cell] - 1, 1) or max(ends) < leaves[cell] + 1:
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


def is_safe_for(leaves, shown, attacker):
    """Whether a pattern that was published of one table could be published of another."""
    if 0 < sum(leaves) < N:
        return False
    pattern = np.frombuffer(shown, dtype=bool)
    method = dc.Suppression(attacker=attacker)
    table = method.prepare(counts(np.array(leaves).reshape(2, 2)), [dc.MinimumFrequency(N)])
    sensitive = table.status == 2
    if (sensitive & ~pattern).any() or (pattern & (table.value == 0)).any():
        return False
    return audit_table(table, published=~pattern, attacker=attacker).safe


def is_given_for(leaves, shown, attacker):
    """Whether some key withholds these cells of another 2 × 2 table."""
    if not is_safe_for(leaves, shown, attacker):
        return False
    method = dc.Suppression(attacker=attacker)
    table = method.prepare(counts(np.array(leaves).reshape(2, 2)), [dc.MinimumFrequency(N)])
    keys = (dc.Randomness.seeded(key) for key in range(20))
    return any(method.hide(table, rng=key).withheld.tobytes() == shown for key in keys)


def squares(most):
    """Every 2 × 2 table up to the order of its rows and columns, with the number of its orders."""
    found = Counter()
    for a, b, c, d in itertools.product(range(most + 1), repeat=4):
        turned = [(a, b, c, d), (b, a, d, c), (c, d, a, b), (d, c, b, a)]
        found[min(turned + [(w, y, x, z) for w, x, y, z in turned])] += 1
    return found


def enumerate_squares(attacker, tables, fitting):
    """Return how many sensitive cells of 2 × 2 tables with margins lose a promised count, of how many.

    An alternative counts where the pattern could be published of it, too.
    """
    wrong = total = 0
    fits = functools.cache(fitting)
    for leaves, times in tables.items():
        method = dc.Suppression(attacker=attacker)
        table = method.prepare(counts(np.array(leaves).reshape(2, 2)), [dc.MinimumFrequency(N)])
        if 0 < sum(leaves) < N or not (table.status == 2).any():
            continue
        try:
            pattern = method.hide(table, rng=dc.Randomness.seeded(0)).withheld
        except dc.InfeasibleError:
            continue
        every = itertools.product(range(max(sum(leaves), N) + 1), repeat=4)
        others = [one for one in every if agree(table, counted(one), pattern)]
        alone = [c for c in np.flatnonzero(pattern).tolist() if table.value[c] == 1]
        for cell in np.flatnonzero(table.status == 2).tolist():
            knowing = [None, *(c for c in alone if c != cell and attacker == "contributors")]
            total += times
            told = functools.partial(fits, shown=pattern.tobytes(), attacker=attacker)
            wrong += times * any(
                loses(table, cell, [o for o in others if c is None or counted(o)[c] == 1], told)
                for c in knowing
            )
    return wrong, total


def loses(table, cell, others, fits):
    """Whether a count from 1 to N that the equations leave comes from no table that fits."""
    at = {one: counted(one)[cell] for one in others}
    low, high = max(1.0, min(at.values())), min(float(N), max(at.values()))
    left = {table.value[cell]}
    for one in sorted(others, key=lambda one: abs(at[one] - table.value[cell])):
        if not min(left) <= at[one] <= max(left) and fits(one):
            left.add(at[one])
        if min(left) <= low and max(left) >= high:
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


#: Of 2 × 2 tables with counts from 0 to 4 and published margins: at most this share of the sensitive
#: cells loses a promised count to somebody who runs the method on every alternative. The manual says so.
SHARES = {"outsider": 0.13, "contributors": 0.34}


@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_few_squares_with_margins_tell_counts(attacker):
    some = Counter(dict(sorted(squares(3).items())[::6]))
    wrong, total = enumerate_squares(attacker, some, is_safe_for)
    assert total > 50
    assert wrong <= SHARES[attacker] * total


@pytest.mark.slow
@pytest.mark.parametrize("fitting", [is_safe_for, is_given_for])
@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_a_stated_share_of_all_squares_with_margins_tells_counts(attacker, fitting):
    wrong, total = enumerate_squares(attacker, squares(4), fitting)
    assert total > 1000
    assert 0 < wrong <= SHARES[attacker] * total


def test_a_method_without_a_key_tells_counts():
    """The control: the same search without noise excludes counts that are promised."""
    from discreet.tables.suppression.engine import suppress

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
