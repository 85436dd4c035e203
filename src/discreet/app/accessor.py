"""`frame.discreet`: the jobs of this product on a frame of pandas or polars.

Importing this module registers it: ``import discreet.app.accessor``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.data.describe import Description

__all__ = ["DiscreetAccessor"]


class DiscreetAccessor:
    """What can be done with a frame; Any, here and below: a frame of any library.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> import discreet.app.accessor
    >>> frame = pd.DataFrame({"age": [20, 21, 40, 41], "ward": ["A", "A", "B", "B"]})
    >>> frame.discreet.describe().columns[0].role
    'quasi'
    >>> roles = {"age": "quasi", "ward": "confidential"}
    >>> safe = frame.discreet.anonymize(dc.KAnonymity(2), roles=roles, method=dc.Mondrian())
    >>> safe.frame["age"].nunique()
    2
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def read(self, **said: Any) -> Dataset:
        """Return the frame as a dataset: see `dc.read`."""
        from discreet.data.dataset import read

        return read(self._frame, **said)

    def describe(self, **said: Any) -> Description:
        """Describe every column, suggest roles, measure exposure: see `dc.describe`."""
        from discreet.data.describe import describe

        return describe(self.read(**said))

    def tabulate(self, by: Sequence[str], measure: str | None = None, **said: Any) -> Any:
        """Return a table of the frame: see `dc.tabulate`."""
        from discreet.tables import tabulate

        return tabulate(self.read(**said), by=list(by), measure=measure)

    def anonymize(self, models: Any, *, method: Any = None, **said: Any) -> Any:
        """Anonymise the frame: see `dc.anonymize`; what is left goes to `dc.read`."""
        from discreet.microdata import anonymize

        return anonymize(self.read(**said), models, method=method)

    def mask(self, methods: Any, *, rng: Any = None, **said: Any) -> Any:
        """Mask the frame: see `dc.mask`; what is left goes to `dc.read`."""
        from discreet.microdata import mask

        return mask(self.read(**said), methods, rng=rng)


def _register() -> None:
    """Give frames of the installed libraries the attribute `discreet`."""
    import pandas as pd

    if not hasattr(pd.DataFrame, "discreet"):
        pd.api.extensions.register_dataframe_accessor("discreet")(DiscreetAccessor)
    with contextlib.suppress(ModuleNotFoundError):
        import polars as pl

        if not hasattr(pl.DataFrame, "discreet"):
            pl.api.register_dataframe_namespace("discreet")(DiscreetAccessor)


_register()
