"""Hybrid data: between the original and a synthetic file, with the original's moments."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.errors import InputError
from discreet.microdata.columns import Numbers
from discreet.microdata.synthesizers._base import Fitted, Kind, Synthesizer, released_columns
from discreet.microdata.synthesizers._groups import joined_groups
from discreet.microdata.synthesizers._moments import (
    Regressed,
    orthogonal,
    regressed,
    require_numeric,
    with_cross_product,
)
from discreet.microdata.synthesizers._third_moments import chosen, third_moments
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["Hybrid"]

#: Draws of each group to choose from; fewer where many groups or records make third moments near.
_DRAWS, _MOMENTS, _NUMBERS = 64, 4_000, 20_000_000


@dataclasses.dataclass(frozen=True)
class Hybrid(Synthesizer):
    """Mix numbers with synthetic ones so that means and covariances stay exact.

    With `alpha` the residuals of the regression on the other columns are mixed: α of the original
    and √(1 − α²) of noise orthogonal to it, with the same covariances; α = 0 is IPSO-C, α = 1 the
    original; of several files each has less of it, so that their average has α. With `k` records are
    grouped by MDAV, and each group is drawn anew with its own means and covariances (R-microhybrid).
    Groups in which a column has one value, but for a few people, or in which one person makes nearly
    all of its variance, are joined with the nearest. Of several draws of each group those are taken
    that keep the third moments of the whole file nearly. Whole numbers become decimals.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> rows = pd.DataFrame({"a": [1.0, 5, 2, 8, 9, 4, 7, 3], "b": [2.0, 1, 4, 3, 9, 9, 5, 1]})
    >>> data = dc.read(rows, roles={"a": "quasi", "b": "confidential"})
    >>> made = dc.synthesize(data, Hybrid(["a", "b"], k=4)).frame
    >>> bool((made.cov() - rows.cov()).abs().max().max() < 1e-9)
    True
    """

    name: ClassVar[str] = "hybrid"
    reference: ClassVar[str] = (
        "Muralidhar and Sarathy, TDP 2008; Domingo-Ferrer and González-Nicolás, 2010"
    )
    corresponds: ClassVar[bool] = True

    columns: tuple[str, ...] = parameter(help="numbers that are mixed")
    alpha: float | None = parameter(
        None, help="share of the original, from 0 (none) to 1 (all of it)", low=0, below=1
    )
    k: int | None = parameter(None, help="records in a group at least; 20 by default", low=3)

    def __post_init__(self) -> None:
        given: Any = self.columns
        names = (given,) if isinstance(given, str) else tuple(given)
        object.__setattr__(self, "columns", names)
        super().__post_init__()
        if self.alpha is not None and self.k is not None:
            raise InputError(
                "hybrid takes alpha or k, not both",
                code="contradicting-parameters",
                hint="write alpha=0.5 to mix residuals, or k=20 to draw groups anew",
                parameter="alpha",
            )

    @property
    def inference(self) -> Kind:
        """Records are mixed, which no rule is about."""
        return "none"

    @property
    def keeps(self) -> str:
        """What the records keep."""
        names = ", ".join(self.columns)
        if self.alpha is not None:
            return f"the other columns as they are; means and covariances of {names} exactly"
        return (
            f"the other columns as they are; means and covariances of {names} exactly, overall and "
            "within each group; third moments nearly, unless a few records make them"
        )

    def among(self, files: int) -> Hybrid:
        """Return the mix of each of several files: their average tells as much as one file with `alpha`.

        Noise of m files averages out: with a share of a in each, their mean is a mix with the share
        a / √(a² + (1 − a²)/m).
        """
        if self.alpha is None:
            return self
        share = self.alpha / np.sqrt(files * (1 - self.alpha**2) + self.alpha**2)
        return dataclasses.replace(self, alpha=float(share))

    def untouched(self, dataset: Dataset) -> tuple[str, ...]:
        """Return the columns that leave as they are."""
        return tuple(n for n in released_columns(dataset) if n not in self.columns)

    def check(self, dataset: Dataset) -> None:
        """Check that the columns hold numbers."""
        super().check(dataset)
        require_numeric(dataset, self.columns, self.name)

    def fit(self, dataset: Dataset, *, rng: Randomness, progress: Progress = silent) -> Fitted:
        """Regress, or group the records."""
        del rng, progress
        self.check(dataset)
        if self.alpha is not None:
            return _Mixed(regressed(dataset, self.columns), float(self.alpha))
        return _Grouped(regressed(dataset, self.columns, explain=False), self.k or 20)


class _Mixed(Fitted):
    """Residuals mixed with noise orthogonal to them."""

    def __init__(self, model: Regressed, alpha: float) -> None:
        self._model, self._alpha = model, alpha
        self.size = model.rows.num_rows
        self.notes = {"share of the original in each file": round(alpha, 6)}

    def draw(self, n: int, *, rng: Randomness) -> pa.Table:
        """Return the records mixed."""
        model, own = self._model, self._model.residuals
        # Together: where residuals follow from each other, a basis of them alone has a direction by
        # chance, which is not orthogonal to what is kept.
        basis, _ = np.linalg.qr(np.concatenate([model.basis, own / _deviation(own)], axis=1))
        noise = with_cross_product(orthogonal(rng, len(own), own.shape[1], basis), own)
        mixed = self._alpha * own + np.sqrt(1 - self._alpha**2) * noise
        return model.table(model.fitted + mixed)


class _Grouped(Fitted):
    """Groups of similar records, each with its own means and covariances."""

    def __init__(self, model: Regressed, k: int) -> None:
        from discreet.microdata.masking._mdav import mdav

        rows = model.rows.num_rows
        if rows < k:
            raise InputError(
                f"{rows:,} records make no group of {k}",
                code="too-few-records",
                hint="write a smaller k",
                parameter="k",
            )
        values = model.fitted + model.residuals
        self._model, self._values = model, values
        places = model.residuals / _deviation(model.residuals)
        group = joined_groups(np.asarray(mdav(places, k)), places, model.owner)
        self._group = group
        self.size = rows
        self.notes = {
            "groups": int(group.max()) + 1,
            "smallest group": int(np.bincount(group).min()),
        }

    def draw(self, n: int, *, rng: Randomness) -> pa.Table:
        """Return every group drawn anew: of several draws those that keep third moments overall."""
        sizes = np.bincount(self._group)
        order = np.argsort(self._group, kind="stable")
        start = np.cumsum(sizes) - sizes
        scale = _deviation(self._values)
        draws = max(1, min(_DRAWS, _MOMENTS // sizes.size, _NUMBERS // self._values.size))
        places, moments, goal = [], [], 0.0
        for size in np.unique(sizes):  # groups of one size together: thousands of small ones
            rows = order[start[sizes == size][:, None] + np.arange(size)]
            groups = self._values[rows]
            away = groups - groups.mean(axis=1, keepdims=True)
            goal = goal + third_moments(away / scale).sum(axis=0)
            drawn = np.stack([_again(away, rng) for _ in range(draws)])
            places.append((rows, groups - away, drawn))
            moments.append(np.stack([third_moments(one / scale) for one in drawn], axis=1))
        pick, sign = chosen(np.concatenate(moments), np.asarray(goal))
        found, done = np.empty_like(self._values), 0
        for rows, middle, drawn in places:
            own = slice(done, done + len(rows))
            taken = drawn[pick[own], np.arange(len(rows))]
            found[rows] = middle + sign[own, None, None] * taken
            done += len(rows)
        return self._model.table(found)


def _deviation(values: Numbers) -> Numbers:
    found = values.std(axis=0)
    return np.where(found > 0, found, 1.0)


def _again(away: Numbers, rng: Randomness) -> Numbers:
    """Return groups (group, record, column) around 0 with the same covariances."""
    many, size, columns = away.shape
    rank = min(size - 1, columns)
    noise = rng.normal(many * size * rank).reshape(many, size, rank)
    noise -= noise.mean(axis=1, keepdims=True)
    basis, _ = np.linalg.qr(noise)
    basis -= basis.mean(axis=1, keepdims=True)
    _, sizes, axes = np.linalg.svd(away, full_matrices=False)
    return np.asarray(basis @ (sizes[:, :rank, None] * axes[:, :rank]))
