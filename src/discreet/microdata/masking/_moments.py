"""Means and covariances of columns, computed by the engine that holds them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.base import Relation
from discreet.microdata.columns import Numbers

__all__ = ["Moments", "moments", "summed"]


@dataclasses.dataclass(frozen=True, eq=False)
class Moments:
    """Of columns: how many records were counted, their means and covariances."""

    count: int
    means: Numbers
    #: With n − 1; those of a column by itself are of its known values.
    covariances: Numbers


def moments(relation: Relation, columns: Sequence[str], *, complete: bool = False) -> Moments:
    """Return the moments of numeric columns, of complete records alone or column by column.

    Deviations from the mean are squared, in a second pass: squares of large numbers would lose
    them. Column by column the covariances between columns are not computed and are 0.

    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> rows = read(pd.DataFrame({"a": [1.0, 2.0, None], "b": [2.0, 4.0, 9.0]})).relation
    >>> found = moments(rows, ["a", "b"], complete=True)
    >>> found.count, found.means.tolist(), found.covariances.tolist()
    (2, [1.5, 3.0], [[0.5, 1.0], [1.0, 2.0]])
    """
    if complete:
        known = exp.and_(*(sql.is_known(sql.column(name)) for name in columns))
        relation = relation.engine.filter(relation, known)
    counts, sums = summed(relation, [sql.double(sql.column(name)) for name in columns])
    means = sums / np.maximum(counts, 1)
    centred = [
        exp.Sub(this=sql.double(sql.column(name)), expression=sql.double(sql.number(float(mean))))
        for name, mean in zip(columns, means, strict=True)
    ]
    size = len(columns)
    pairs = list(itertools.combinations(range(size), 2)) if complete else []
    pairs += [(place, place) for place in range(size)]
    products = [
        exp.Mul(
            this=exp.Paren(this=centred[one].copy()), expression=exp.Paren(this=centred[two].copy())
        )
        for one, two in pairs
    ]
    known_pairs, squares = summed(relation, products)
    covariances = np.zeros((size, size))
    for (one, two), number, total in zip(pairs, known_pairs, squares, strict=True):
        covariances[one, two] = covariances[two, one] = total / max(number - 1, 1)
    return Moments(int(counts.max(initial=0)), means, covariances)


def summed(relation: Relation, values: Sequence[exp.Expr]) -> tuple[Numbers, Numbers]:
    """Return how many values each expression has, and their sum."""
    wanted = []
    for place, value in enumerate(values):
        wanted += [
            sql.alias(exp.Count(this=value.copy()), f"n{place}"),
            sql.alias(exp.Sum(this=value.copy()), f"s{place}"),
        ]
    query = sql.select(sql.subquery(relation.query, "t"), wanted)
    found = relation.engine.fetch(query).to_pylist()[0]
    counts = np.array([found[f"n{place}"] for place in range(len(values))], np.float64)
    sums = [found[f"s{place}"] for place in range(len(values))]
    return counts, np.array([0.0 if one is None else one for one in sums], np.float64)
