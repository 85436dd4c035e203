"""PRAM: categories change at random, by published odds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.data.schema import Schema
from discreet.errors import InputError
from discreet.microdata.columns import Numbers, Places, codes, combined
from discreet.microdata.masking._base import ColumnMasking
from discreet.microdata.masking._categories import AliasTables, drawn_by, grouped
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

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

    A category drawn by itself may not go with the record's other values, such as a married child. The
    release reports combinations that no original record has. `within` names columns to respect: a
    category becomes one of those that occur with the record's values of these columns, and stays
    where no other occurs.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table({"job": ["cook", "pilot", None]})
    >>> method = PRAM("job", matrix={"cook": {"pilot": 1.0}, "pilot": {"pilot": 1.0}})
    >>> method.apply(rows, schema=None, rng=Randomness.seeded(1))["job"].to_pylist()
    ['pilot', 'pilot', None]
    >>> rows = pa.table(
    ...     {"age": ["child", "adult", "adult"], "state": ["single", "single", "married"]}
    ... )
    >>> method = PRAM("state", retention=0, within="age")
    >>> method.apply(rows, schema=None, rng=Randomness.seeded(1))["state"].to_pylist()[0]
    'single'
    """

    name: ClassVar[str] = "pram"
    reference: ClassVar[str] = "Gouweleeuw, Kooiman, Willenborg and de Wolf, JOS 1998"
    random: ClassVar[bool] = True
    draws_categories: ClassVar[bool] = True

    retention: float = parameter(0.8, help="probability of staying", low=0, high=1)
    matrix: Mapping[str, Any] | None = parameter(None, help="odds of each change")
    invariant: bool | None = parameter(
        None, help="keep the expected distribution; by default unless a matrix is given"
    )
    within: tuple[str, ...] = parameter(
        (), help="columns with which only combinations that occur are drawn"
    )

    def __post_init__(self) -> None:
        given = (self.within,) if isinstance(self.within, str) else tuple(self.within)
        object.__setattr__(self, "within", given)
        super().__post_init__()
        for name in self.within:
            if name in self.columns:
                raise InputError(
                    f"pram changes column {name!r} and cannot respect it at the same time",
                    code="contradicting-columns",
                    hint="name in within only columns that stay as they are",
                    column=name,
                )

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns it changes and those it respects."""
        return (*self.columns, *self.within)

    def stronger(self) -> PRAM | None:
        """Return the method with retention one step further."""
        if self.matrix is not None or self.retention <= 0:
            return None
        return dataclasses.replace(self, retention=max(self.retention - 0.1, 0.0))

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the columns after the draw."""
        respected = [codes(rows.column(name))[0] for name in self.within]
        group = combined(respected, rows.num_rows)
        return {
            name: self._randomised(rows.column(name), name, group, rng) for name in self.columns
        }

    def mask_in_engine(self, held: Dataset, *, rng: Randomness) -> Dataset | None:
        """Return the records after the draw, which the engine makes; counts alone come out."""
        for name in self.columns:
            relation, tables = held.relation, self._tables(held, name)
            if tables is None:
                return None
            held = held.replace(relation=drawn_by(relation, name, self.within, tables, rng))
        return held

    def _tables(self, held: Dataset, name: str) -> AliasTables | None:
        """Return what the draw of a column needs, by the values of those it respects."""
        found = grouped(held.relation, name, self.within)
        _require_few(len(found.column("value").unique()), name)
        group = codes(found.column("group"))[0]
        places, values = codes(found.column("value"))
        counts = found.column("count").to_numpy().astype(np.float64)
        words = np.array(values.cast("string").to_pylist(), dtype=object)
        tables = AliasTables(values)
        order = np.lexsort((places, group))  # the same on every engine
        for own in np.split(order, _ends(group[order])):
            if not tables.holds(len(own)):
                return None
            matrix = self.transitions(tuple(words[places[own]]), counts[own], column=name)
            tables.add(found.column("group")[int(own[0])].as_py(), places[own], matrix)
        return tables

    def transitions(self, values: tuple[str, ...], counts: Numbers, *, column: str) -> Numbers:
        """Return the matrix used for a column: row = category, entries = odds of what it becomes."""
        if self.matrix is not None:
            given = _given_matrix(self.matrix, values, column, rest=bool(self.within))
        else:
            others = max(len(values) - 1, 1)
            given = np.full((len(values), len(values)), (1 - self.retention) / others)
            np.fill_diagonal(given, self.retention if len(values) > 1 else 1.0)
        wanted = self.matrix is None if self.invariant is None else self.invariant
        return invariant_matrix(given, counts) if wanted else given

    def _randomised(
        self, column: pa.ChunkedArray, name: str, group: Places, rng: Randomness
    ) -> pa.Array:
        import pyarrow as pa

        places, values = codes(column)
        _require_few(len(values), name)
        known = places >= 0
        if not known.any():
            return values.take(pa.array(places, mask=~known))
        words = np.array(values.cast(pa.string()).to_pylist(), dtype=object)
        unit = rng.uniform(places.size)
        drawn = places.copy()
        rows = np.flatnonzero(known)
        rows = rows[np.argsort(group[rows], kind="stable")]
        for some in np.split(rows, _ends(group[rows])):
            present, own = np.unique(places[some], return_inverse=True)
            counts = np.bincount(own.ravel()).astype(np.float64)
            matrix = self.transitions(tuple(words[present]), counts, column=name)
            drawn[some] = present[_drawn(matrix, own.ravel(), unit[some])]
        return values.take(pa.array(drawn, mask=~known))


def _require_few(number: int, column: str) -> None:
    if number > _MOST:
        raise InputError(
            f"column {column!r} has {number:,} different values, too many for pram",
            code="too-many-categories",
            hint="recode it first, or use rank-swapping",
            column=column,
        )


def _ends(sorted_group: Places) -> Places:
    return np.flatnonzero(np.diff(sorted_group)) + 1


def _drawn(matrix: Numbers, places: Places, unit: Numbers) -> Places:
    """Return what each category becomes, drawn by numbers between 0 and 1."""
    rungs = np.cumsum(matrix, axis=1)
    rungs[:, -1] = 1.0
    # One search for all categories: row i of the ladder lies between i and i + 1.
    ladder = (rungs + np.arange(len(matrix))[:, None]).ravel()
    width = len(matrix)
    found = np.searchsorted(ladder, places + unit, side="left")
    return np.asarray(np.minimum(found - places * width, width - 1))


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


def _given_matrix(
    given: Mapping[str, Any], values: tuple[str, ...], column: str, *, rest: bool = False
) -> Numbers:
    """Return a given matrix for the categories that occur.

    With `rest` the odds of what does not occur here go to staying as it is.
    """
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
                if rest:
                    matrix[place[value], place[value]] += odds
                elif odds > 0:
                    raise InputError(
                        f"the matrix turns {value!r} into {target!r}, which column {column!r} lacks",
                        code="bad-matrix",
                        hint="use categories that occur in the column",
                        column=column,
                    )
                continue
            matrix[place[value], place[str(target)]] += odds
    if (matrix < 0).any() or not np.allclose(matrix.sum(axis=1), 1.0, atol=1e-9):
        raise InputError(
            "the odds in each row of the matrix must be at least 0 and add up to 1",
            code="bad-matrix",
            column=column,
        )
    return matrix
