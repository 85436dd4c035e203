"""Columns that tell another one: beside its forbidden partner they are as bad as the column itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas

__all__ = ["told_pairs"]

#: Numbers whose ranks agree so closely order each other's records.
_RANKS = 0.99


def told_pairs(
    columns: Mapping[str, pandas.Series], pairs: Iterable[Sequence[str]]
) -> list[tuple[str, str]]:
    """Return further pairs: one column of a pair, and a column that tells the other.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame(
    ...     {
    ...         "name": [f"p{n}" for n in range(9)],
    ...         "icd": list("ABC") * 3,
    ...         "disease": ["flu", "cold", "gout"] * 3,
    ...         "ward": list("xxxxyyyyy"),
    ...     }
    ... )
    >>> told_pairs(frame, [("name", "icd")])
    [('name', 'disease')]
    """
    found = {}
    for pair in pairs:
        if len(set(pair)) != 2 or not set(pair) <= set(columns):
            continue  # said by whoever colours
        for one, other in (tuple(pair), tuple(pair)[::-1]):
            for name in columns:
                if name not in pair and _tells(columns[name], columns[other]):
                    found[one, name] = True
    return list(found)


def _tells(column: pandas.Series, other: pandas.Series) -> bool:
    """Whether the values of a column, most of which several records have, each go with one value."""
    codes, values = column.factorize()
    others, kinds = other.factorize()
    if len(kinds) < 2:
        return False
    if 2 * len(values) <= len(column):
        both = np.unique(np.stack([codes, others]), axis=1).shape[1]
        return bool(both == len(np.unique(codes)))
    return _ordered_alike(column, other)


def _ordered_alike(column: pandas.Series, other: pandas.Series) -> bool:
    numbers = all(one.dtype.kind in "iuf" for one in (column, other))
    if not numbers or len(column) < 3:
        return False
    ranks = [one.rank().to_numpy() for one in (column, other)]
    there = ~np.isnan(ranks).any(axis=0)
    if min(np.ptp(one[there], axis=0) if there.any() else 0 for one in ranks) == 0:
        return False
    return bool(abs(np.corrcoef(ranks[0][there], ranks[1][there])[0, 1]) >= _RANKS)
