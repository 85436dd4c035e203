"""PRAM: categories change at random, by published odds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.data.schema import Schema
from discreet.errors import InputError
from discreet.microdata.masking._base import ColumnMasking, Numbers, codes
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PRAM", "invariant_matrix"]

_MOST = 5_000


@dataclasses.dataclass(frozen=True)
class PRAM(ColumnMasking):
    """Change categories at random by a Markov matrix (post-randomisation).

    Without a `matrix` a category stays with probability `retention` and otherwise becomes any other
    with equal odds. An `invariant` matrix is made from it, under which the expected distribution
    of each column is the observed one; the probability of staying then differs by category. A given
    matrix says for each category the odds of what it becomes, `{from: {to: probability}}`, and is
    used as it is unless `invariant` is set. The matrix may be published: it cannot be undone.
    Missing values stay missing.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table({"job": ["cook", "pilot", None]})
    >>> method = PRAM("job", matrix={"cook": {"pilot": 1.0}, "pilot": {"pilot": 1.0}})
    >>> method.apply(rows, schema=None, rng=Randomness.seeded(1))["job"].to_pylist()
    ['pilot', 'pilot', None]
    """

    name: ClassVar[str] = "pram"
    reference: ClassVar[str] = "Gouweleeuw, Kooiman, Willenborg and de Wolf, JOS 1998"
    random: ClassVar[bool] = True

    retention: float = parameter(0.8, help="probability of staying", low=0, high=1)
    matrix: Mapping[str, Any] | None = parameter(None, help="odds of each change")
    invariant: bool | None = parameter(
        None, help="keep the expected distribution; by default unless a matrix is given"
    )

    def stronger(self) -> PRAM | None:
        """Return the method with retention one step further."""
        if self.matrix is not None or self.retention <= 0:
            return None
        return dataclasses.replace(self, retention=max(self.retention - 0.1, 0.0))

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the columns after the draw."""
        return {name: self._randomised(rows.column(name), name, rng) for name in self.columns}

    def transitions(self, values: tuple[str, ...], counts: Numbers, *, column: str) -> Numbers:
        """Return the matrix used for a column: row = category, entries = odds of what it becomes."""
        if self.matrix is not None:
            given = _given_matrix(self.matrix, values, column)
        else:
            others = max(len(values) - 1, 1)
            given = np.full((len(values), len(values)), (1 - self.retention) / others)
            np.fill_diagonal(given, self.retention if len(values) > 1 else 1.0)
        wanted = self.matrix is None if self.invariant is None else self.invariant
        return invariant_matrix(given, counts) if wanted else given

    def _randomised(self, column: pa.ChunkedArray, name: str, rng: Randomness) -> pa.Array:
        import pyarrow as pa

        places, values = codes(column)
        if len(values) > _MOST:
            raise InputError(
                f"column {name!r} has {len(values):,} different values, too many for pram",
                code="too-many-categories",
                hint="recode it first, or use rank-swapping",
                column=name,
            )
        known = places >= 0
        if not known.any():
            return values.take(pa.array(places, mask=~known))
        words = tuple(values.cast(pa.string()).to_pylist())
        counts = np.bincount(places[known], minlength=len(values)).astype(np.float64)
        matrix = self.transitions(words, counts, column=name)
        rungs = np.cumsum(matrix, axis=1)
        rungs[:, -1] = 1.0
        unit = rng.uniform(places.size)
        drawn = places.copy()
        # One search for all categories: row i of the ladder lies between i and i + 1.
        ladder = (rungs + np.arange(len(values))[:, None]).ravel()
        width = max(len(values), 1)
        found = np.searchsorted(ladder, places[known] + unit[known], side="left")
        drawn[known] = np.minimum(found - places[known] * width, width - 1)
        return values.take(pa.array(drawn, mask=~known))


def invariant_matrix(matrix: Numbers, counts: Numbers) -> Numbers:
    """Return a Markov matrix made from another one that keeps a distribution in expectation.

    The first matrix is followed by its own reversal under that distribution.

    >>> odds = invariant_matrix(np.array([[0.8, 0.2], [0.2, 0.8]]), np.array([90.0, 10.0]))
    >>> (np.array([90.0, 10.0]) @ odds).round(9).tolist()
    [90.0, 10.0]
    """
    share = counts / counts.sum() if counts.sum() > 0 else counts
    after = share @ matrix
    back = (matrix * share[:, None]).T / np.where(after > 0, after, 1.0)[:, None]
    lost = after <= 0
    back[lost] = np.eye(len(share))[lost]
    return matrix @ back


def _given_matrix(given: Mapping[str, Any], values: tuple[str, ...], column: str) -> Numbers:
    place = {value: number for number, value in enumerate(values)}
    if any(value not in given for value in values):
        missing = next(value for value in values if value not in given)
        raise InputError(
            f"the matrix has no row for the category {missing!r} of column {column!r}",
            code="bad-matrix",
            hint="give the odds of every category that occurs",
            column=column,
        )
    matrix = np.zeros((len(values), len(values)))
    for value in values:
        for target, odds in given[value].items():
            if str(target) not in place:
                if odds > 0:
                    raise InputError(
                        f"the matrix turns {value!r} into {target!r}, which column {column!r} lacks",
                        code="bad-matrix",
                        hint="use categories that occur in the column",
                        column=column,
                    )
                continue
            matrix[place[value], place[str(target)]] = odds
    if (matrix < 0).any() or not np.allclose(matrix.sum(axis=1), 1.0, atol=1e-9):
        raise InputError(
            "the odds in each row of the matrix must be at least 0 and add up to 1",
            code="bad-matrix",
            column=column,
        )
    return matrix
