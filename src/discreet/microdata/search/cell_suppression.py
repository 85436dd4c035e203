"""Which keys to remove from which records, so that every record looks like k records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from discreet.microdata.classes import Integers
from discreet.microdata.models._base import Booleans
from discreet.microdata.search.wildcard import Keys
from discreet.progress import Progress, silent

__all__ = ["patterns", "suppress_as_category", "suppress_as_wildcard"]


def patterns(width: int, costs: Sequence[float]) -> list[int]:
    """Return the sets of keys, as bits, from the cheapest to remove to the dearest.

    >>> patterns(2, [1.0, 3.0])
    [1, 2, 3]
    """
    sets = [
        sum(1 << j for j in chosen)
        for size in range(1, width + 1)
        for chosen in itertools.combinations(range(width), size)
    ]
    price = {s: sum(costs[j] for j in range(width) if s >> j & 1) for s in sets}
    return sorted(sets, key=lambda s: (price[s], s))


def suppress_as_wildcard(
    keys: Keys,
    k: int,
    costs: Sequence[float],
    *,
    spare: bool = False,
    progress: Progress = silent,
) -> None:
    """Remove keys until every record matches k records, a missing key matching every value.

    Each record that matches too few gives up the cheapest set of keys that suffices for it, sets
    in the order of their cost, and every removal is counted for the records still to come. With
    `spare`, records that look alike but for the removed keys give them up one at a time, and
    those that match enough by then keep all of theirs.
    """
    order = patterns(keys.width, costs)
    low = np.arange(len(keys.codes))
    low = low[keys.matches(low) < k]
    for done, pattern in enumerate(order):
        progress("suppressing cells", done, len(order))
        while len(low):
            helped = low[keys.matches(low, pattern) >= k]
            if not len(helped):
                break
            chosen = _one_of_each(keys, helped, pattern) if spare else helped
            keys.remove(chosen, pattern)
            low = low[keys.matches(low) < k]
            if not spare:
                break
        if not len(low):
            break
    progress("suppressing cells", len(order), len(order))


def _one_of_each(keys: Keys, records: Integers, pattern: int) -> Integers:
    """Return one record of each group that would match when a set of keys is missing.

    The one that matches fewest records so far, then the first in the order of the keys' values, so
    that the order of the records in the file plays no part beyond exact copies.
    """
    group = keys.agree(records, pattern)
    rank = keys.agree(records, 0)
    order = np.lexsort((rank, keys.matches(records), group))
    ordered = group[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return records[order[first]]


def suppress_as_category(
    keys: Keys,
    k: int,
    costs: Sequence[float],
    *,
    failing: Callable[[Keys], Booleans] | None = None,
    progress: Progress = silent,
) -> None:
    """Remove keys until every class has k records, a missing key being a value of its own.

    Records in small classes give up the cheapest set of keys with which they form a class of k,
    together with records that already lack just these keys. What is left gives up every key,
    with as many records of large classes as it takes. With `failing`, which says which records
    are in classes that break a promise, not only size counts.
    """
    order = patterns(keys.width, costs)
    bad = failing or (lambda now: now.classes() < k)
    for done, pattern in enumerate(order):
        progress("suppressing cells", done, len(order))
        low = np.flatnonzero(bad(keys))
        if not len(low):
            return
        before = keys.missing.copy()
        keys.remove(low, pattern)
        # Going back restores the classes that were joined, so they are as good as they were.
        failed = low[bad(keys)[low]]
        keys.missing[failed] = before[failed]
    if failing is None:
        _join_the_rest(keys, k)
    else:
        _join_until(keys, failing)


def _join_until(keys: Keys, failing: Callable[[Keys], Booleans]) -> None:
    """Let records of failing classes give up every key, with more and more small classes."""
    everything = (1 << keys.width) - 1
    more = 0
    while (bad := failing(keys)).any():
        keys.remove(np.flatnonzero(bad), everything)
        others = np.flatnonzero(keys.missing != everything)
        if more and len(others):
            label = keys.class_of()[others]
            sizes = np.bincount(label)
            smallest = np.lexsort((np.arange(len(sizes)), np.where(sizes > 0, sizes, len(label))))
            keys.remove(others[np.isin(label, smallest[:more])], everything)
        elif more:
            return
        more = max(1, 2 * more)


def _join_the_rest(keys: Keys, k: int) -> None:
    everything = (1 << keys.width) - 1
    sizes = keys.classes()
    rest = np.flatnonzero(sizes < k)
    if not len(rest):
        return
    keys.remove(rest, everything)
    label = keys.agree(np.arange(len(keys.codes)), 0)
    while (short := k - int((keys.missing == everything).sum())) > 0:
        sizes = keys.classes()
        others = np.flatnonzero(keys.missing != everything)
        if not len(others):
            return
        # A class with more than k records can spare some; else a whole class gives up its keys.
        largest = others[np.argmax(sizes[others])]
        gone = keys.missing[largest]
        members = others[(keys.missing[others] == gone) & (sizes[others] == sizes[largest])]
        alike = keys.agree(members, int(gone))
        members = members[alike == alike[members == largest][0]]
        surplus = len(members) - k
        ordered = members[np.argsort(label[members], kind="stable")]
        keys.remove(ordered[: min(short, surplus)] if surplus > 0 else ordered, everything)
