"""A fixed partition of the records into cells of at least k, by their public columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.queries.guards._profiles import Profiles

__all__ = ["partition"]

Ids = npt.NDArray[np.int64]


def partition(profiles: Profiles, k: int) -> Ids:
    """Return the cell of each profile: as fine as cells of k records allow, column by column.

    Values of the first column are put together, in their order, until each part has k records;
    then each part is divided by the next column, and so on. Only public columns are looked at.
    """
    rows = profiles.engine.fetch(profiles.relation)
    order = np.argsort(rows.column("__profile").to_numpy())
    codes = [
        _codes(rows.column(name).to_numpy(zero_copy_only=False)[order])
        for name in rows.column_names
        if name != "__profile"
    ]
    # Columns with few values first: their conditions are the likeliest to be unions of cells.
    codes.sort(key=lambda c: int(c.max(initial=0)))
    cells = np.zeros(profiles.counts.size, np.int64)
    groups = [np.arange(cells.size)]
    for code in codes:
        groups = [part for group in groups for part in _divided(group, code, profiles.counts, k)]
    for number, group in enumerate(groups):
        cells[group] = number
    return cells


def _codes(values: npt.NDArray[np.generic]) -> Ids:
    import pandas

    # Missing values are a value of their own, last.
    codes = pandas.factorize(pandas.Series(values), sort=True, use_na_sentinel=True)[0]
    codes = codes.astype(np.int64)
    codes[codes < 0] = codes.max(initial=0) + 1
    return np.asarray(codes, dtype=np.int64)


def _divided(group: Ids, code: Ids, counts: Ids, k: int) -> list[Ids]:
    here = code[group]
    order = np.argsort(here, kind="stable")
    sorted_codes = here[order]
    starts = np.flatnonzero(np.r_[True, sorted_codes[1:] != sorted_codes[:-1]])
    sizes = np.add.reduceat(counts[group][order], starts)
    parts: list[Ids] = []
    held, begin = 0, 0
    ends = np.r_[starts[1:], order.size]
    for size, end in zip(sizes, ends, strict=True):
        held += int(size)
        if held >= k:
            parts.append(group[order[begin:end]])
            held, begin = 0, int(end)
    if begin < order.size:
        rest = group[order[begin:]]
        if parts:
            parts[-1] = np.concatenate([parts[-1], rest])
        else:
            parts.append(rest)
    return parts
