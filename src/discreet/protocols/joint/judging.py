"""Rules judged on shares: on the total, and on what remains of it for every coalition of owners.

After a cell is opened, owners subtract their own parts. What they are left with must be safe too,
so the same inequalities are evaluated on the remainders; an empty remainder is safe.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from discreet.audit.rules import Rule
from discreet.audit.rules._base import Inequality
from discreet.protocols.arithmetic.comparison import larger, negative
from discreet.protocols.arithmetic.node import Node
from discreet.protocols.arithmetic.shares import BitShares, Shares, stack

__all__ = ["Views", "any_of", "audiences", "judge", "merge", "see"]

Group = tuple[int, ...]


def audiences(owners: int, collusion: int) -> list[Group]:
    """Return whose parts make up what each audience is left with: all, then all but a coalition.

    >>> audiences(3, 1)
    [(0, 1, 2), (1, 2), (0, 2), (0, 1)]
    """
    everybody = range(owners)
    return [
        tuple(one for one in everybody if one not in coalition)
        for size in range(collusion + 1)
        for coalition in itertools.combinations(everybody, size)
    ]


def merge(node: Node, a: Shares, b: Shares) -> Shares:
    """Return the n largest of two lists of n, the largest first; the lists are the last axis but one.

    The larger of a's j-th and b's j-th from the end are the n largest, first falling, then rising;
    sorting such a sequence takes as many steps as n has binary digits (Batcher 1968). Lists whose
    length is no power of two are filled up with zeros.
    """
    n = a.own.shape[-2]
    full = 1 << (n - 1).bit_length()
    a, b = _filled(a, full), _filled(b, full)
    best, _ = larger(node, a, b[..., ::-1, :])
    step = full // 2
    while step:
        shape = (*best.own.shape[:-2], full // (2 * step), 2, step, best.own.shape[-1])
        pairs = best.reshape(*shape)
        high, low = larger(node, pairs[..., 0, :, :], pairs[..., 1, :, :])
        joined = Shares(
            np.stack([high.own, low.own], axis=-3), np.stack([high.next, low.next], axis=-3)
        )
        best = joined.reshape(*shape[:-4], full, shape[-1])
        step //= 2
    return best[..., :n, :]


def _filled(x: Shares, full: int) -> Shares:
    missing = full - x.own.shape[-2]
    if not missing:
        return x
    width = [(0, 0)] * x.own.ndim
    width[-2] = (0, missing)
    return Shares(np.pad(x.own, width), np.pad(x.next, width))


def largest_of(node: Node, lists: Sequence[Shares], groups: Sequence[Group]) -> dict[Group, Shares]:
    """Return the largest contributions of each group of owners; equal merges are made once."""
    found: dict[Group, Shares] = {(owner,): one for owner, one in enumerate(lists)}
    wanted: dict[int, set[Group]] = {}

    def plan(group: Group) -> int:
        if len(group) == 1:
            return 0
        depth = 1 + max(plan(half) for half in _halves(group))
        wanted.setdefault(depth, set()).add(group)
        return depth

    for group in groups:
        plan(group)
    for depth in sorted(wanted):
        batch = sorted(wanted[depth])
        sides = [[found[_halves(group)[side]] for group in batch] for side in (0, 1)]
        merged = merge(node, stack(sides[0]), stack(sides[1]))
        found |= {group: merged[place] for place, group in enumerate(batch)}
    return found


def _halves(group: Group) -> tuple[Group, Group]:
    middle = (len(group) + 1) // 2
    return group[:middle], group[middle:]


@dataclasses.dataclass(frozen=True, eq=False)
class Views:
    """What each audience is left with, on shares: audiences first, cells last."""

    count: Shares
    #: For each measure the sum, the largest contributions (places in the middle), and of those who
    #: asked for protection the largest one; none where no rule looks at them.
    measures: Mapping[str, tuple[Shares, Shares | None, Shares | None]]


def see(
    node: Node,
    counts: Sequence[Shares],
    sums: Mapping[str, Sequence[Shares]],
    tops: Mapping[str, Sequence[Shares]],
    asked: Mapping[str, Sequence[Shares]],
    *,
    collusion: int,
) -> Views:
    """Return what remains for every audience.

    `counts` has the contributors that each owner has in each cell; `sums` and `tops`, for each
    measure, its sums and its lists of largest contributions; `asked`, where a rule needs them, the
    lists with the one largest contribution of those who asked for protection.
    """
    groups = audiences(len(counts), collusion)

    def added(parts: Sequence[Shares]) -> Shares:
        return stack([sum((parts[o] for o in group[1:]), parts[group[0]]) for group in groups])

    def best(lists: Sequence[Shares]) -> Shares | None:
        if not lists or not lists[0].own.shape[-2]:
            return None
        found = largest_of(node, lists, groups)
        return stack([found[group] for group in groups])

    return Views(
        added(counts),
        {
            name: (added(parts), best(tops[name]), best(asked.get(name, ())))
            for name, parts in sums.items()
        },
    )


def judge(
    node: Node,
    rules: Sequence[Rule],
    seen: Views,
    *,
    hidden: npt.NDArray[np.int64] | None = None,
) -> BitShares:
    """Return a secret bit for each cell: whether any rule finds it sensitive for any audience.

    For totals, `hidden` is the public number of withheld cells in each. Everybody knows that
    somebody is in each of them and that amounts are not negative: as many people as cells, or a
    sum of nothing, would tell them.
    """
    count, views = seen.count, list(seen.measures.values())
    nothing = node.constant(np.zeros(count.own.shape[-1], dtype=np.int64))
    forms: list[tuple[Shares, ...]] = []  # a rule finds a cell sensitive where all are negative
    for rule in rules:
        needs_measure = any(form.total for form in rule.inequalities())
        for total, top, most in views if needs_measure else [(count, None, None)]:
            forms.append(
                tuple(
                    _value(node, form, count, total, top, most, nothing)
                    for form in rule.inequalities()
                )
            )
    if hidden is not None:
        nobody = count.times(-1)  # negative where somebody is left
        few = np.broadcast_to(-(hidden + 1), count.own.shape)
        forms.append((nobody, count + node.constant(few)))
        one = node.constant(np.full(count.own.shape, -1))
        forms += [(nobody, total + one) for total, _, _ in views]
    if not forms:  # rules on measures, and a question about counts alone
        return negative(node, nothing)
    below = negative(node, stack([value for values in forms for value in values]))
    verdicts, place = [], 0
    for values in forms:
        bits = below[place]
        for further in range(place + 1, place + len(values)):
            bits = node.both(bits, below[further])
        place += len(values)
        verdicts += [bits[view] for view in range(len(count))]
    return any_of(node, verdicts)


def any_of(node: Node, bits: Sequence[BitShares]) -> BitShares:
    """Return whether any of several bits is set, in as many rounds as their number has digits."""
    left = list(bits)
    while len(left) > 1:
        half = len(left) // 2
        first, second = (
            BitShares(
                np.stack([one.own for one in part]),
                np.stack([one.next for one in part]),
                part[0].size,
            )
            for part in (left[:half], left[half : 2 * half])
        )
        joined = node.either(first, second)
        left = [joined[place] for place in range(half)] + left[2 * half :]
    return left[0]


def _value(
    node: Node,
    form: Inequality,
    count: Shares,
    total: Shares,
    top: Shares | None,
    most: Shares | None,
    nothing: Shares,
) -> Shares:
    """Return the linear form of an inequality for every audience and cell."""
    value = stack([nothing] * len(count))
    if form.constant:
        value = value + node.constant(np.full(count.own.shape, form.constant))
    if form.count:
        value = value + count.times(form.count)
    if form.total:
        value = value + total.times(form.total)
    for place, factor in enumerate(form.largest):
        assert top is not None
        value = value + top[:, place].times(factor)
    if form.requested:
        assert most is not None
        value = value + most[:, 0].times(form.requested)
    return value
