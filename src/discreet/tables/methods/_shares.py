"""How a budget is split over levels and queries, as people write it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.dp.hierarchical.basis import Query
from discreet.dp.hierarchical.budget import level_shares
from discreet.errors import InputError

__all__ = [
    "level_number",
    "named_levels",
    "query_name",
    "read_invariants",
    "read_query",
    "read_shares",
    "read_split",
]

#: Shares that differ from one by less add up.
_CLOSE = 1e-6


def named_levels(names: Sequence[str], depth: int) -> tuple[str, ...]:
    """Return the names of the levels from the root down; numbers where none are given.

    >>> named_levels((), 3)
    ('0', '1', '2')
    """
    if not names:
        return tuple(str(level) for level in range(depth))
    if len(names) != depth or len(set(names)) != depth:
        raise InputError(
            f"the spine has {depth} levels, and {len(set(names))} different names are given",
            code="bad-levels",
            hint="name every level from the top down: levels=nation,state,county",
            parameter="levels",
        )
    return tuple(map(str, names))


def level_number(name: Any, levels: Sequence[str], parameter: str) -> int:
    """Return the number of a level. Any: a name or a number, as people write it."""
    if str(name) not in levels:
        raise InputError(
            f"there is no level {name!r} in {parameter}",
            code="unknown-level",
            hint="choose among " + ", ".join(levels) + "; levels= names them from the top down",
            parameter=parameter,
        )
    return levels.index(str(name))


def read_query(text: str, attributes: Sequence[str]) -> Query:
    """Return the attributes a query keeps: "total", "detailed", "sex" or "sex*age".

    >>> read_query("sex*age", ["age", "sex", "job"])
    (0, 1)
    """
    if text == "total":
        return ()
    if text == "detailed":
        return tuple(range(len(attributes)))
    names = [part.strip() for part in str(text).split("*")]
    for name in names:
        if name not in attributes:
            raise InputError(
                f"the query {text!r} names {name!r}, which is no attribute beside the spine",
                code="unknown-query",
                hint="write total, detailed, or attributes with a star: "
                + "*".join(attributes[:2] or ["sex"]),
                parameter="queries",
            )
    return tuple(sorted({list(attributes).index(name) for name in names}))


def read_invariants(
    given: Mapping[str, str], levels: Sequence[str], attributes: Sequence[str]
) -> dict[int, Query]:
    """Return the marginal that each level publishes exactly, from the root down.

    What a level publishes adds up to the same of the levels above. These must name at least its
    attributes: two exact marginals of one place that cross have no whole table in general.

    >>> read_invariants({"1": "total", "0": "sex"}, ["0", "1"], ["sex", "age"])
    {0: (0,), 1: ()}
    """
    found = {
        level_number(name, levels, "invariants"): read_query(str(query), attributes)
        for name, query in given.items()
    }
    found = dict(sorted(found.items()))
    for above, below in itertools.pairwise(found):
        if not set(found[below]) <= set(found[above]):
            raise InputError(
                f"the exact counts of level {levels[below]} ({query_name(found[below], attributes)}) "
                f"add up to others than those of level {levels[above]} "
                f"({query_name(found[above], attributes)})",
                code="contradicting-invariant",
                hint=f"let level {levels[above]} publish all attributes that level {levels[below]} "
                "does",
                parameter="invariants",
            )
    return found


def query_name(query: Query, attributes: Sequence[str]) -> str:
    """Return a query as people write it.

    >>> query_name((), ["sex"]), query_name((0,), ["sex", "age"])
    ('total', 'sex')
    """
    if not query:
        return "total"
    if len(query) == len(attributes):
        return "detailed"
    return "*".join(attributes[place] for place in query)


def read_split(split: str | Mapping[str, float], levels: Sequence[str]) -> tuple[float, ...]:
    """Return the share of each level."""
    if isinstance(split, str):
        return level_shares(split, len(levels))
    numbered = {level_number(name, levels, "split"): share for name, share in split.items()}
    _require_one(numbered.values(), "the shares of the levels", "split")
    return level_shares(numbered, len(levels))


def read_shares(
    split: str | Mapping[str, float],
    queries: str | Mapping[str, Any],
    levels: Sequence[str],
    attributes: Sequence[str],
) -> list[dict[Query, float]]:
    """Return the share of every query at every level; all of them add up to one.

    `queries` is "marginals", or shares per query, or shares per query for each level. Any: as
    people write them.
    """
    whole = read_split(split, levels)
    found = []
    each = _each_level(queries, levels, attributes)
    for number, (share, given) in enumerate(zip(whole, each, strict=True)):
        if share > 0:
            _require_one(
                given.values(), f"the shares of the queries of level {levels[number]}", "queries"
            )
        total = math.fsum(given.values())
        found.append({query: share * part / total for query, part in given.items() if share > 0})
    if not found[-1].get(tuple(range(len(attributes)))):
        raise InputError(
            f"the last level, {levels[-1]}, needs a share for its detailed counts",
            code="missing-detailed",
            hint='give the query "detailed" and the last level a share above 0',
            parameter="queries",
        )
    total = math.fsum(share for level in found for share in level.values())
    return [{query: share / total for query, share in level.items()} for level in found]


def _each_level(
    queries: str | Mapping[str, Any], levels: Sequence[str], attributes: Sequence[str]
) -> list[dict[Query, float]]:
    default = [_marginals(len(attributes), is_last=level == levels[-1]) for level in levels]
    if isinstance(queries, str):
        return default
    if not any(isinstance(value, Mapping) for value in queries.values()):
        return [_read(queries, attributes)] * len(levels)
    found = default
    for name, given in queries.items():
        if not isinstance(given, Mapping):
            raise InputError(
                f"queries of level {name!r} are a mapping from queries to shares",
                code="bad-shares",
                hint="write queries={'1': {'total': 0.5, 'detailed': 0.5}}",
                parameter="queries",
            )
        found[level_number(name, levels, "queries")] = _read(given, attributes)
    return found


def _marginals(attributes: int, *, is_last: bool) -> dict[Query, float]:
    """Return the default: the total, each attribute alone, and all of them crossed.

    Cells of the last level are measured nowhere below, so that they get a larger share.
    """
    detailed = tuple(range(attributes))
    if attributes == 0:
        return {(): 1.0}
    if attributes == 1:
        return {(): 0.4, detailed: 0.6}
    alone = 0.2 if is_last else 0.3
    return {(): 0.3, **{(a,): alone / attributes for a in range(attributes)}, detailed: 0.7 - alone}


def _read(given: Mapping[str, Any], attributes: Sequence[str]) -> dict[Query, float]:
    found: dict[Query, float] = {}
    for text, share in given.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not share >= 0:
            raise InputError(
                f"the share of the query {text!r} must be a number from 0 on, found {share!r}",
                code="bad-shares",
                parameter="queries",
            )
        query = read_query(str(text), attributes)
        found[query] = found.get(query, 0.0) + float(share)
    return found


def _require_one(shares: Any, what: str, parameter: str) -> None:
    # Any: the values of a mapping that somebody wrote.
    given = list(shares)
    wrong = any(isinstance(s, bool) or not isinstance(s, int | float) or not s >= 0 for s in given)
    if wrong or abs(math.fsum(given) - 1) > _CLOSE:
        total = "no numbers" if wrong else f"{math.fsum(given):g}"
        raise InputError(
            f"{what} must be numbers from 0 on that add up to 1, found {total}",
            code="bad-shares",
            parameter=parameter,
        )
