"""Additive noise: normal noise in proportion to each column's spread."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from sqlglot import exp

from discreet.data.engines import keyed, sql
from discreet.data.schema import Schema
from discreet.errors import InputError
from discreet.microdata.columns import Numbers, numbers
from discreet.microdata.masking._base import ColumnMasking
from discreet.microdata.masking._moments import moments
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["AdditiveNoise"]


@dataclasses.dataclass(frozen=True)
class AdditiveNoise(ColumnMasking):
    """Add normal noise of alpha times each column's standard deviation.

    Uncorrelated noise keeps means and multiplies variances by 1 + alpha², while correlations
    shrink by the same factor. Correlated noise has the covariances of the columns themselves, so
    that correlations are kept too. `rescale` shrinks the result towards the mean, so that variances
    are kept as well. All in expectation; a user who is told alpha can correct for it. The results
    are not rounded. Missing values stay missing; for correlated noise the covariances are those
    of the complete records.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table({"salary": [100.0, 200.0, None]})
    >>> masked = AdditiveNoise("salary", 0.1).apply(rows, schema=None, rng=Randomness.seeded(1))
    >>> masked["salary"].null_count
    1
    """

    name: ClassVar[str] = "additive-noise"
    reference: ClassVar[str] = "Brand, Microdata protection through noise addition, 2002"
    random: ClassVar[bool] = True
    numeric: ClassVar[bool] = True

    alpha: float = parameter(0.1, help="standard deviation of the noise over the column's", above=0)
    correlated: bool = parameter(False, help="noise with the columns' own covariances")
    rescale: bool = parameter(False, help="shrink, so that variances are kept")

    def stronger(self) -> AdditiveNoise | None:
        """Return the method with alpha one step further."""
        if self.alpha > 10:
            return None
        return dataclasses.replace(self, alpha=self.alpha * 1.5)

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the columns with noise."""
        import pyarrow as pa

        values = np.stack([numbers(rows.column(name), name=name) for name in self.columns])
        n = values.shape[1]
        noise = np.stack([rng.normal(n) for _ in self.columns])
        noise = self.alpha * (self._root(values) @ noise)
        masked = values + noise
        if self.rescale:
            mean = _mean(values)[:, None]
            masked = mean + (masked - mean) / np.sqrt(1 + self.alpha**2)
        return {
            name: pa.array(column, mask=np.isnan(column))
            for name, column in zip(self.columns, masked, strict=True)
        }

    def mask_in_engine(self, held: Dataset, *, rng: Randomness) -> Dataset | None:
        """Return the columns with noise that the engine computes; moments alone come out."""
        engine, known = held.engine, moments(held.relation, self.columns)
        if self.correlated:
            complete = moments(held.relation, self.columns, complete=True)
            root = _correlated(complete.count, complete.covariances)
        else:
            root = np.diag(np.sqrt(np.diagonal(known.covariances)))
        for name, mean, spread in zip(self.columns, known.means, root.sum(axis=1), strict=True):
            if not np.isfinite(mean) or not np.isfinite(spread):
                raise InputError(
                    f"column {name!r} holds an infinite value",
                    code="not-finite",
                    hint="leave such records out or correct them",
                    column=name,
                )
        rows = keyed.drawn(held.relation, list(held.relation.columns), rng, times=len(root))
        normals = [
            keyed.normal(engine, sql.column(f"__drawn{place}")) for place in range(len(root))
        ]
        shrink = 1 / np.sqrt(1 + self.alpha**2) if self.rescale else 1.0
        made: dict[str, exp.Expr] = {}
        for name, mean, weights in zip(self.columns, known.means, root, strict=True):
            value: exp.Expr = exp.Sub(
                this=sql.double(sql.column(name)), expression=sql.double(sql.number(float(mean)))
            )
            for weight, one in zip(self.alpha * weights, normals, strict=True):
                part = exp.Mul(this=sql.double(sql.number(float(weight))), expression=one.copy())
                value = exp.Add(this=value, expression=part)
            value = exp.Mul(
                this=exp.Paren(this=value), expression=sql.double(sql.number(float(shrink)))
            )
            made[name] = exp.Add(this=sql.double(sql.number(float(mean))), expression=value)
        kept = [
            sql.alias(made[name], name) if name in made else sql.column(name)
            for name in held.relation.columns
        ]
        query = sql.select(sql.subquery(rows.query, "t"), kept)
        return held.replace(relation=engine.relation(query))

    def _root(self, values: Numbers) -> Numbers:
        """Return a matrix that gives independent unit noise the wanted covariances."""
        if not self.correlated:
            return np.diag([_deviation(column) for column in values])
        complete = values[:, ~np.isnan(values).any(axis=0)]
        size = complete.shape[1]
        return _correlated(size, np.atleast_2d(np.cov(complete)) if size > 1 else np.eye(1))


def _correlated(size: int, covariances: Numbers) -> Numbers:
    """Return a root of the covariances of so many complete records."""
    if size < 2:
        raise InputError(
            "correlated noise needs at least two complete records",
            code="too-few-records",
            hint="leave out columns with many missing values",
        )
    share, axes = np.linalg.eigh(covariances)
    root: Numbers = axes * np.sqrt(np.maximum(share, 0))
    return root


def _mean(values: Numbers) -> Numbers:
    known = ~np.isnan(values)
    mean: Numbers = np.where(known, values, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return mean


def _deviation(column: Numbers) -> float:
    known = column[~np.isnan(column)]
    return float(known.std(ddof=1)) if known.size > 1 else 0.0
