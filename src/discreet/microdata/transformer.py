"""Masking as a step of a scikit-learn pipeline.

What a pipeline masks is not released by it: no ledger remembers it and nothing says it is safe. It
serves to learn how much a model loses on masked records, and to train on them inside the house.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from discreet.data.dataset import read
from discreet.errors import InputError
from discreet.microdata.masking._base import Masking
from discreet.microdata.pipeline import mask
from discreet.randomness import Randomness

__all__ = ["MaskingTransformer"]


class MaskingTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no annotations
    """Mask the columns of a frame by one method after the other, row for row.

    Parameters
    ----------
    methods
        Masking methods in their order, such as `[dc.Microaggregation("age", k=3)]`.
    types
        Types of columns where they are not seen from the values: {"zip": "nominal"}.
    rng
        The source of randomness; secure by default.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> people = pd.DataFrame({"age": [20, 22, 40, 42], "pay": [10, 20, 30, 90]})
    >>> masking = dc.MaskingTransformer([dc.Microaggregation("age", k=2)])
    >>> masking.fit_transform(people)["age"].tolist()
    [21.0, 21.0, 41.0, 41.0]
    >>> make_pipeline(masking, StandardScaler()).fit_transform(people).shape
    (4, 2)
    """

    def __init__(
        self,
        methods: Sequence[Masking] = (),
        *,
        types: Mapping[str, str] | None = None,
        rng: Randomness | None = None,
    ) -> None:
        self.methods = methods
        self.types = types
        self.rng = rng

    def fit(self, X: Any, y: Any = None) -> MaskingTransformer:
        """Remember the columns; masking learns nothing else. Any: a frame or an array."""
        frame = _framed(X)
        dropping = [method for method in self.methods if method.drops_records]
        if dropping:
            raise InputError(
                f"{dropping[0].name} changes which records there are, and a step of a pipeline "
                "keeps them",
                code="records-dropped",
                hint="sample before the pipeline",
            )
        self.n_features_in_ = frame.shape[1]
        if hasattr(X, "columns"):
            self.feature_names_in_ = frame.columns.to_numpy(dtype=object)
        return self

    def transform(self, X: Any) -> Any:
        """Return the masked records, as an array where an array came. Any: a frame or an array."""
        frame = _framed(X)
        if frame.shape[1] != self.n_features_in_:
            raise InputError(
                f"{frame.shape[1]} columns were given where {self.n_features_in_} were fitted",
                code="other-columns",
                hint="give the columns that `fit` saw",
            )
        if not self.methods or not len(frame):
            return X
        roles = dict.fromkeys(frame.columns, "quasi")
        data = read(frame, roles=roles, types=self.types)
        found = mask(data, list(self.methods), rng=self.rng).frame[list(frame.columns)]
        found.index = frame.index
        return found if hasattr(X, "columns") else found.to_numpy()


def _framed(given: Any) -> Any:
    """Return a frame of pandas, columns of arrays called x0, x1 … as scikit-learn calls them.

    Any: a frame of pandas or polars, or an array.
    """
    import numpy as np
    import pandas as pd

    if isinstance(given, pd.DataFrame):
        return given.set_axis([str(name) for name in given.columns], axis=1)
    if hasattr(given, "to_pandas"):
        return given.to_pandas()
    array = np.asarray(given)
    if array.ndim != 2:
        raise InputError(
            f"a table has two dimensions, found {array.ndim}",
            code="not-a-table",
            hint="give a frame, or an array of records by columns",
        )
    return pd.DataFrame(array, columns=[f"x{place}" for place in range(array.shape[1])])
