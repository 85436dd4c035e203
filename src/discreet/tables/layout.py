"""A released table as people lay it out: one attribute down, another across."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from discreet.data.table import Dimension, Table
from discreet.page import Pivot
from discreet.tables.protected_table import ProtectedTable

__all__ = ["across_of", "left_out", "legend", "pivot", "published_text", "sides"]

#: Longer tables are shown from the top; attributes with more codes do not go across.
_CELLS, _CODES = 20_000, 40
_INDENT = "\u2003"
#: What fits a terminal.
_LINES, _ACROSS = 40, 10
_MARK = "c"


def legend(release: ProtectedTable) -> str:
    """Return what the marks in the layout mean."""
    if release.protected.prints_intervals:
        return "Two numbers: the value lies between them."
    if release.withholds:
        return "c: withheld, confidential or to protect another cell."
    if release.method.acting.name == "suppression":
        return "No cell is withheld."
    return "Values were changed to protect contributors; see below how."


def pivot(release: ProtectedTable) -> Pivot:
    r"""Return the table as people lay it out: one attribute across, sub-totals over their parts.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet import demo
    >>> table = dc.tabulate(demo.salaries(), by=["sector", "region"], measure="salary")
    >>> release = table.protect(rules=[dc.MinimumFrequency(3)], method=dc.Suppression())
    >>> pivot(release).header
    ['sector \\ region', 'BCN', 'TGN', 'Total']
    """
    table = release.table
    right = across_of(table)
    down = [d for d in range(len(table.dimensions)) if d != right]
    cells = range(min(len(table), _CELLS))
    place = {tuple(table.codes[cell].tolist()): cell for cell in cells}
    names = [table.by[d] for d in down]
    across = [-1] if right is None else _total_last(table.dimensions[right])
    if right is None:
        header = [*names, "value"]
    else:
        names[-1] += f" \\ {table.by[right]}"
        header = [*names, *(table.dimensions[right].codes[c] for c in across)]

    digits = _digits(release)
    trees = [dict(_tree(table.dimensions[d])) for d in down]
    ranks = [{code: rank for rank, code in enumerate(tree)} for tree in trees]
    keys = sorted(
        {tuple(codes[d] for d in down) for codes in place},
        key=lambda key: tuple(rank[code] for rank, code in zip(ranks, key, strict=True)),
    )

    def line(key: tuple[int, ...]) -> list[str]:
        labels = [
            _INDENT * max(trees[at][code] - 1, 0) + table.dimensions[down[at]].codes[code]
            for at, code in enumerate(key)
        ]
        whole = dict(zip(down, key, strict=True))
        cells = [
            place.get(tuple(whole.get(d, one) for d in range(len(table.dimensions))))
            for one in across
        ]
        return [*labels, *("" if cell is None else _text(release, cell, digits) for cell in cells)]

    return Pivot(header, len(down), _groups(keys, trees[0], line))


def left_out(table: Table) -> int:
    """Return how many cells the layout does not show, the table being very long."""
    return max(len(table) - _CELLS, 0)


def _groups(
    keys: Sequence[tuple[int, ...]],
    depth: Mapping[int, int],
    line: Callable[[tuple[int, ...]], list[str]],
) -> list[tuple[list[str], list[list[str]]]]:
    """Return lines under their sub-totals, the grand total last."""
    groups: list[tuple[list[str], list[list[str]]]] = []
    total: list[tuple[list[str], list[list[str]]]] = []
    for code, together in itertools.groupby(keys, key=lambda key: key[0]):
        lines = [line(key) for key in together]
        # With one attribute down, codes below the first level fold away under it.
        if len(keys[0]) == 1 and depth[code] > 1 and groups:
            groups[-1][1].extend(lines)
        else:
            (groups if code else total).append((lines[0], lines[1:]))
    return groups + total


def _tree(dimension: Dimension) -> list[tuple[int, int]]:
    """Return codes and their depths, each before the codes below it; the total first."""
    parents = dimension.parents[0]
    below: dict[int, list[int]] = {}
    for code in range(1, len(dimension.codes)):
        # A code of another hierarchy alone stands directly under the total.
        below.setdefault(max(int(parents[code]), 0), []).append(code)
    found, waiting = [], [(0, 0)]
    while waiting:
        code, depth = waiting.pop()
        found.append((code, depth))
        waiting += [(child, depth + 1) for child in reversed(below.get(code, []))]
    return found


def _total_last(dimension: Dimension) -> list[int]:
    first, *rest = (code for code, _ in _tree(dimension))
    return [*rest, first]


def across_of(table: Table) -> int | None:
    """Return the attribute that goes across: the one with the fewest codes, if they fit a page."""
    sizes = [len(dimension.codes) for dimension in table.dimensions]
    if len(sizes) < 2 or min(sizes) > _CODES:
        return None
    return sides(table)[1] if len(sizes) == 2 else len(sizes) - 1 - sizes[::-1].index(min(sizes))


def _text(release: ProtectedTable, cell: int, digits: int) -> str:
    """Return what is printed for a cell, with so many digits after the point."""
    protected, frame = release.protected, release._frame
    if not protected.withheld[cell]:
        return f"{float(frame['value'][cell]):,.{digits}f}"
    if protected.prints_intervals:
        lower, upper = (float(frame[end][cell]) for end in ("lower", "upper"))
        return f"{lower:,.{digits}f} – {upper:,.{digits}f}"
    return _MARK


def _digits(release: ProtectedTable) -> int:
    """Return how many digits after the point all values need, at most two: one for the table."""
    columns = ("value", "lower", "upper") if release.protected.prints_intervals else ("value",)
    values = np.concatenate([release._frame[name].to_numpy(dtype=float) for name in columns])
    values = values[np.isfinite(values)]
    rounded = (np.abs(values - values.round(digits)) <= 1e-9 * np.abs(values) for digits in (0, 1))
    return next((digits for digits, whole in enumerate(rounded) if whole.all()), 2)


def sides(table: Table) -> tuple[int, int]:
    """Return which attribute goes down and which across: the longer one down."""
    if len(table.dimensions) < 2:
        return 0, 0
    longer = len(table.dimensions[1].codes) > len(table.dimensions[0].codes)
    return (1, 0) if longer else (0, 1)


def published_text(release: ProtectedTable) -> str:
    r"""Return what is published as text that fits a terminal, values set to the right.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet import demo
    >>> table = dc.tabulate(demo.salaries(), by=["sector", "region"], measure="salary")
    >>> release = table.protect(rules=[dc.MinimumFrequency(3)], method=dc.Suppression())
    >>> print(published_text(release).splitlines()[0])
    sector \ region        BCN      TGN      Total
    """
    whole = pivot(release)
    header, body, labels = list(whole.header), whole.lines(), whole.labels
    kept = list(range(len(header)))
    if len(header) > _ACROSS:
        kept = [*range(_ACROSS - 1), len(header) - 1]
    lines = [
        [str(line[c]).replace(_INDENT, "  ") for c in kept] for line in (header, *body[:_LINES])
    ]
    width = [max(len(line[c]) for line in lines) for c in range(len(kept))]
    text = "\n".join(
        "  ".join(
            cell.ljust(width[c]) if c < labels else cell.rjust(width[c])
            for c, cell in enumerate(line)
        ).rstrip()
        for line in lines
    )
    more = {
        "lines": max(len(body) - _LINES, 0),
        "columns": len(header) - len(kept),
        "cells": left_out(release.table),
    }
    missing = [f"{number:,} {name}" for name, number in more.items() if number]
    return f"{text}\n… {' and '.join(missing)} more: write the result with -o" if missing else text
