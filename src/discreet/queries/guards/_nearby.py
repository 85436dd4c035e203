"""Questions close by: wider ranges, rolled-up values, a condition or a key less.

What is near is found from public columns and declared hierarchies alone, like every decision of
restriction, so that a suggestion tells nothing either.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.hierarchy import Hierarchy
from discreet.data.sql.conditions import operands
from discreet.data.sql.query import Query
from discreet.queries.guards._profiles import Profiles

__all__ = ["covering", "nearest_answered"]

Ids = npt.NDArray[np.int64]
#: Questions that are decided before the search ends without a suggestion.
MOST_TRIED = 60
#: Cells of a partition that a suggestion names at most, and values of a list.
MOST_CELLS, MOST_VALUES = 6, 24
_DOWN, _UP = (exp.GT, exp.GTE), (exp.LT, exp.LTE)


def nearest_answered(
    query: Query,
    profiles: Profiles,
    hierarchies: Mapping[str, Sequence[Hierarchy]],
    answered: Callable[[Query], bool],
) -> str:
    """Return the question with the fewest records more that would be answered, or nothing."""
    candidates = [*_wider(query, profiles, hierarchies), *_coarser(query)]
    sized = [(profiles.records(profiles.inside(other)), n) for n, other in enumerate(candidates)]
    for _, place in sorted(sized)[:MOST_TRIED]:
        if answered(candidates[place]):
            return candidates[place].question
    return ""


def _wider(
    query: Query, profiles: Profiles, hierarchies: Mapping[str, Sequence[Hierarchy]]
) -> Iterator[Query]:
    if query.predicate is None:
        return
    conditions = (
        operands(query.predicate) if isinstance(query.predicate, exp.And) else [query.predicate]
    )
    for place, condition in enumerate(conditions):
        others = [c for n, c in enumerate(conditions) if n != place]
        for instead in (*_ranges(condition, profiles), *_rolled(condition, hierarchies)):
            yield _with(query, [*conditions[:place], instead, *conditions[place + 1 :]])
        yield _with(query, others)


def _coarser(query: Query) -> Iterator[Query]:
    """Return the question with one key less, the last one first, as ROLLUP does."""
    for place in reversed(range(len(query.keys))):
        keys = tuple(key for n, key in enumerate(query.keys) if n != place)
        yield dataclasses.replace(query, keys=keys)


def _with(query: Query, conditions: Sequence[exp.Expression]) -> Query:
    copies: list[Any] = [_closed(condition) for condition in conditions]
    joined: Any = exp.and_(*copies, wrap=False) if copies else None  # Any: sqlglot's base class
    return dataclasses.replace(query, predicate=joined)


def _closed(condition: exp.Expression) -> exp.Expression:
    copy = condition.copy()
    return exp.Paren(this=copy) if isinstance(copy, exp.Or) else copy


def _ranges(condition: exp.Expression, profiles: Profiles) -> Iterator[exp.Expression]:
    """Move the ends of a range, or make one of a single number, by 1, 2, 4 … values that occur."""
    column = condition.this
    if not isinstance(column, exp.Column) or column.name not in profiles.public:
        return
    ends = _ends(condition)
    if ends is None:
        return
    values = profiles.numbers(column.name)
    steps = 1
    while values and steps < 2 * len(values):
        low = min(ends[0], _moved(values, ends[0], -steps))
        high = max(ends[1], _moved(values, ends[1], steps))
        if isinstance(condition, _UP):
            yield type(condition)(this=column.copy(), expression=_number(high))
        elif isinstance(condition, _DOWN):
            yield type(condition)(this=column.copy(), expression=_number(low))
        else:
            yield exp.Between(this=column.copy(), low=_number(low), high=_number(high))
        steps *= 2


def _ends(condition: exp.Expression) -> tuple[float, float] | None:
    if isinstance(condition, exp.Between):
        low, high = _value(condition.args["low"]), _value(condition.args["high"])
    elif isinstance(condition, (exp.EQ, *_DOWN, *_UP)):
        low = high = _value(condition.expression)
    elif isinstance(condition, exp.In) and condition.expressions:
        found = [_value(item) for item in condition.expressions]
        if any(value is None for value in found):
            return None
        known = [value for value in found if value is not None]
        low, high = min(known), max(known)
    else:
        return None
    return None if low is None or high is None else (low, high)


def _value(tree: Any) -> float | None:
    sign = -1.0 if isinstance(tree, exp.Neg) else 1.0
    tree = tree.this if isinstance(tree, exp.Neg) else tree
    is_number = isinstance(tree, exp.Literal) and not tree.is_string
    return sign * float(tree.this) if is_number else None


def _moved(values: Sequence[float], value: float, steps: int) -> float:
    place = bisect.bisect_left(values, value) if steps > 0 else bisect.bisect_right(values, value)
    place = place + steps if steps > 0 else place - 1 + steps
    return values[min(max(place, 0), len(values) - 1)]


def _number(value: float) -> exp.Expression:
    text = repr(int(abs(value))) if float(value).is_integer() else repr(abs(float(value)))
    number = exp.Literal.number(text)
    return exp.Neg(this=number) if value < 0 else number


def _rolled(
    condition: exp.Expression, hierarchies: Mapping[str, Sequence[Hierarchy]]
) -> Iterator[exp.Expression]:
    """Put the values under a common ancestor in place of single ones."""
    column = condition.this
    if not isinstance(column, exp.Column) or not isinstance(condition, exp.EQ | exp.In):
        return
    given = [condition.expression] if isinstance(condition, exp.EQ) else condition.expressions
    if not given or not all(isinstance(g, exp.Literal) and g.is_string for g in given):
        return
    for hierarchy in hierarchies.get(column.name, ()):
        if any(g.this not in hierarchy.leaves for g in given):
            continue
        paths = [hierarchy.ancestors(g.this) for g in given]
        for ancestor in paths[0][1:]:
            if ancestor == hierarchy.root or any(ancestor not in path for path in paths):
                continue
            leaves = [leaf for leaf in hierarchy.leaves if ancestor in hierarchy.ancestors(leaf)]
            if len(leaves) <= MOST_VALUES:
                yield _in(column, leaves)


def _in(column: exp.Expression, values: Sequence[Any]) -> exp.Expression:
    listed = [exp.Literal.string(v) if isinstance(v, str) else _number(v) for v in values]
    if len(listed) == 1:
        return exp.EQ(this=column.copy(), expression=listed[0])
    return exp.In(this=column.copy(), expressions=listed)


# -- partitions ------------------------------------------------------------------------------------
def covering(query: Query, profiles: Profiles, cells: Ids) -> Query | None:
    """Return the question about the cells of a partition that the question touches.

    None if they are too many to name, or have values that conditions cannot name.
    """
    inside = profiles.inside(query)
    touched = np.unique(cells[inside])
    if not inside.size or touched.size > MOST_CELLS:
        return None
    rows = profiles.rows()
    boxes = [_box(query, rows, np.flatnonzero(cells == cell)) for cell in touched]
    if any(box is None for box in boxes):
        return None
    known = [cast("exp.Expression", box) for box in boxes]
    joined: Any = known[0] if len(known) == 1 else exp.or_(*(_bracketed(b) for b in known))
    found = dataclasses.replace(query, predicate=joined)
    # A cell is a box of values; where it is not (values that compare otherwise), nothing is told.
    same = np.array_equal(profiles.inside(found), np.flatnonzero(np.isin(cells, touched)))
    return found if same else None


def _bracketed(box: exp.Expression) -> exp.Expression:
    return exp.Paren(this=box) if isinstance(box, exp.And) else box


def _box(query: Query, rows: Mapping[str, Any], members: Ids) -> exp.Expression | None:
    """Return the conditions that a cell meets: ranges of numbers, lists of text."""
    conditions: list[Any] = []
    for name, values in rows.items():
        here = values[members]
        if np.array([value is None or value != value for value in here]).any():
            return None
        distinct = sorted(set(here.tolist()))
        if len(distinct) == len(set(values.tolist())):
            continue
        column = exp.column(name, table=query.relation, quoted=True)
        if all(isinstance(v, int | float) and not isinstance(v, bool) for v in distinct):
            low, high = distinct[0], distinct[-1]
            conditions.append(
                _in(column, [low])
                if low == high
                else exp.Between(this=column, low=_number(low), high=_number(high))
            )
        elif all(isinstance(v, str) for v in distinct) and len(distinct) <= MOST_VALUES:
            conditions.append(_in(column, distinct))
        else:
            return None
    return cast("exp.Expression", exp.and_(*conditions)) if conditions else None
