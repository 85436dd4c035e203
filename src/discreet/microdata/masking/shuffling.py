"""Shuffling: values are reordered so that relations to other columns stay."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.data.schema import Schema
from discreet.errors import InputError
from discreet.microdata.columns import Numbers, codes, numbers
from discreet.microdata.masking._base import ColumnMasking
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["Shuffling"]


@dataclasses.dataclass(frozen=True)
class Shuffling(ColumnMasking):
    """Reorder confidential numbers by their model given other columns (data shuffling).

    New scores are drawn from a normal copula of the columns given the `given` columns, without
    looking at the record's own confidential values; then the original values are handed out in the
    order of the scores. Each column's distribution is kept exactly, rank correlations with each
    other and with `given` approximately, and a record's own value has no say beyond these.
    Categories among `given` enter as indicators. Missing values stay missing, and records with
    one are left out of the model; they get scores without it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table({"age": list(range(20)), "salary": [10 * i for i in range(20)]})
    >>> method = Shuffling("salary", given="age")
    >>> masked = method.apply(rows, schema=None, rng=Randomness.seeded(1))["salary"].to_pylist()
    >>> sorted(masked) == rows["salary"].to_pylist()
    True
    """

    name: ClassVar[str] = "shuffling"
    reference: ClassVar[str] = "Muralidhar and Sarathy, Data shuffling, Management Science 2006"
    random: ClassVar[bool] = True
    numeric: ClassVar[bool] = True

    given: tuple[str, ...] = parameter((), help="columns whose relation to the values is kept")

    def __post_init__(self) -> None:
        given = (self.given,) if isinstance(self.given, str) else tuple(self.given)
        object.__setattr__(self, "given", given)
        super().__post_init__()
        if both := set(self.given) & set(self.columns):
            raise InputError(
                f"column {min(both)!r} cannot be shuffled and given",
                code="duplicate-column",
                column=min(both),
                parameter="given",
            )

    @property
    def reads(self) -> tuple[str, ...]:
        """The shuffled columns and the given ones."""
        return (*self.columns, *self.given)

    def mask_in_engine(self, held: Dataset, *, rng: Randomness) -> Dataset | None:
        """Return the records after the shuffle; sums of products of scores alone come out."""
        from discreet.microdata.masking._normal_scores import shuffled

        made = shuffled(held.relation, self.columns, self.given, rng)
        return None if made is None else held.replace(relation=made)

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the shuffled columns."""
        import pyarrow as pa

        values = [numbers(rows.column(name), name=name) for name in self.columns]
        target = np.stack([_scores(column, rng) for column in values], axis=1)
        basis = self._basis(rows, rng)
        drawn = _draw(target, basis, rng)
        masked = {}
        for place, name in enumerate(self.columns):
            known = np.flatnonzero(~np.isnan(values[place]))
            column = rows.column(name).combine_chunks()
            source = np.arange(rows.num_rows)
            by_value = known[np.argsort(values[place][known], kind="stable")]
            by_score = known[np.argsort(drawn[known, place], kind="stable")]
            source[by_score] = by_value
            masked[name] = column.take(pa.array(source))
        return masked

    def _basis(self, rows: pa.Table, rng: Randomness) -> Numbers:
        import pyarrow as pa

        parts = [np.ones((rows.num_rows, 1))]
        for name in self.given:
            kind = rows.column(name).type
            if pa.types.is_integer(kind) or pa.types.is_floating(kind):
                scores = _scores(numbers(rows.column(name), name=name), rng)
                parts.append(np.nan_to_num(scores)[:, None])
            else:
                places, words = codes(rows.column(name))
                parts += [(places == code)[:, None].astype(float) for code in range(1, len(words))]
        return np.concatenate(parts, axis=1)


def _scores(values: Numbers, rng: Randomness) -> Numbers:
    """Return normal scores of the ranks, ties broken at random, missing ones missing."""
    from scipy.special import ndtri

    scores = np.full(values.size, np.nan)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.lexsort((rng.uniform(known.size), values[known]))]
    scores[order] = ndtri((np.arange(known.size) + 0.5) / max(known.size, 1))
    return scores


def _draw(target: Numbers, basis: Numbers, rng: Randomness) -> Numbers:
    """Return scores from the regression on the basis, with residuals of the same covariances."""
    complete = ~np.isnan(target).any(axis=1)
    slope = np.linalg.lstsq(basis[complete], target[complete], rcond=None)[0]
    rest = target[complete] - basis[complete] @ slope
    spread = rest.T @ rest / max(int(complete.sum()), 1)
    share, axes = np.linalg.eigh(spread)
    root = axes * np.sqrt(np.maximum(share, 0))
    noise = np.stack([rng.normal(target.shape[0]) for _ in range(target.shape[1])], axis=1)
    drawn: Numbers = basis @ slope + noise @ root.T
    return drawn
