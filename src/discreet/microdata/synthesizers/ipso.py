"""IPSO: confidential numbers drawn anew from their regression on what is kept."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from discreet.microdata.synthesizers._base import Fitted, Kind, Synthesizer, released_columns
from discreet.microdata.synthesizers._moments import (
    Regressed,
    orthogonal,
    regressed,
    require_numeric,
    with_cross_product,
)
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["IPSO"]


@dataclasses.dataclass(frozen=True)
class IPSO(Synthesizer):
    """Draw confidential numbers from their regression on the other columns, which leave as they are.

    A: fitted values and normal noise of the estimated covariance. B: the noise is orthogonal to
    the columns kept, so that the same regression finds the same coefficients. C: its covariances,
    too, are exactly the original ones. Whole numbers become decimals.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> firms = pd.DataFrame({"size": [1.0, 2, 3, 4, 5, 6, 7], "profit": [2.0, 1, 4, 6, 4, 9, 7]})
    >>> data = dc.read(firms, roles={"size": "quasi", "profit": "confidential"})
    >>> made = dc.synthesize(data, IPSO("profit")).frame
    >>> bool(abs(made["profit"].var() - firms["profit"].var()) < 1e-9)
    True
    """

    name: ClassVar[str] = "ipso"
    reference: ClassVar[str] = "Burridge, Statistics and Computing 2003"
    protection: ClassVar[Literal["dp", "measured", "statistics"]] = "statistics"
    corresponds: ClassVar[bool] = True

    confidential: tuple[str, ...] = parameter(help="numbers that are drawn anew")
    kind: str = parameter("C", help="what is kept exactly", choices=("A", "B", "C"))

    def __post_init__(self) -> None:
        given: Any = self.confidential
        names = (given,) if isinstance(given, str) else tuple(given)
        object.__setattr__(self, "confidential", names)
        super().__post_init__()

    @property
    def inference(self) -> Kind:
        """Kept columns are real, the others are not."""
        return "partially" if self.kind == "A" else "none"

    @property
    def keeps(self) -> str:
        """What the records keep."""
        exact = {
            "A": "regressions on the other columns, up to sampling error",
            "B": "coefficients of the regressions on all other columns, exactly",
            "C": "means, coefficients of the regressions on all other columns, and covariances, exactly",
        }[self.kind]
        return f"the other columns as they are; of {', '.join(self.confidential)}: {exact}"

    @property
    def promise(self) -> str:
        """What protects people."""
        return (
            f"{', '.join(self.confidential)} of the release depend on the original ones through means, "
            "coefficients and covariances only, which a record far from all others in the kept columns "
            "moves by itself; the other columns leave as they are, unprotected"
        )

    def untouched(self, dataset: Dataset) -> tuple[str, ...]:
        """Return the columns that leave as they are."""
        return tuple(n for n in released_columns(dataset) if n not in self.confidential)

    def check(self, dataset: Dataset) -> None:
        """Check that the columns hold numbers."""
        super().check(dataset)
        require_numeric(dataset, self.confidential, self.name)

    def fit(self, dataset: Dataset, *, rng: Randomness, progress: Progress = silent) -> Fitted:
        """Regress the confidential columns on the others."""
        del rng, progress
        self.check(dataset)
        return _Regression(regressed(dataset, self.confidential, apart=True), self.kind)


class _Regression(Fitted):
    def __init__(self, model: Regressed, kind: str) -> None:
        self._model, self._way = model, kind
        self.size = model.rows.num_rows
        self.notes = {}

    def draw(self, n: int, *, rng: Randomness) -> pa.Table:
        """Return the records with noise of the residuals' moments."""
        model = self._model
        rows, columns = model.residuals.shape
        if self._way == "C":
            noise = orthogonal(rng, rows, columns, model.basis)
            return model.table(model.fitted + with_cross_product(noise, model.residuals))
        product = model.residuals.T @ model.residuals
        root = np.linalg.cholesky(product / (rows - model.basis.shape[1]))
        if self._way == "B":
            noise = orthogonal(rng, rows, columns, model.basis)
        else:
            noise = rng.normal(rows * columns).reshape(rows, columns)
        return model.table(model.fitted + noise @ root.T)
