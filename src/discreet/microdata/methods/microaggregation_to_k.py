"""Microaggregation of all quasi-identifiers together, which gives k-anonymity by construction."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.errors import InputError
from discreet.microdata.frequency_set import FrequencySet
from discreet.microdata.methods._base import Anonymization, Outcome, require_enough
from discreet.microdata.models import Model
from discreet.microdata.models.k_anonymity import KAnonymity
from discreet.microdata.recoding import suppress
from discreet.progress import Progress, silent
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset

__all__ = ["MicroaggregationToK"]


@dataclasses.dataclass(frozen=True)
class MicroaggregationToK(Anonymization):
    """Group like records k at a time and give each group its mean or most frequent values.

    Numbers stay numbers and keep their means; no hierarchy is needed. Records that miss so many
    quasi-identifiers that fewer than k miss the same are dropped and counted as suppressed.

    Examples
    --------
    >>> MicroaggregationToK(variant="variable").settings()["variant"]
    'variable'
    """

    name: ClassVar[str] = "microaggregation-to-k"
    reference: ClassVar[str] = (
        "Domingo-Ferrer and Torra: Ordinal, continuous and heterogeneous k-anonymity through "
        "microaggregation, DMKD 11(2), 2005"
    )

    variant: str = parameter("mdav", help="how groups are made", choices=("mdav", "variable"))
    search: bool = parameter(False, help="improve the groups by local search")

    def anonymize(
        self,
        dataset: Dataset,
        models: Sequence[Model],
        *,
        quasi: Sequence[str],
        progress: Progress = silent,
    ) -> Outcome:
        """Return the dataset with its quasi-identifiers aggregated."""
        from discreet.microdata.masking.microaggregation import Microaggregation
        from discreet.randomness import Randomness

        for model in models:
            if not isinstance(model, KAnonymity):
                raise InputError(
                    f"microaggregation enforces k-anonymity, not {model.name}",
                    code="model-not-supported",
                    hint="use method=Generalization(…) or Mondrian(…) for other models",
                )
        k = max(model.smallest for model in models)
        require_enough(dataset.count, models)
        if k == 1:
            return Outcome(dataset, 0.0, "sse")
        method = Microaggregation(tuple(quasi), k=k, variant=self.variant, search=self.search)
        # The method draws nothing at random; the base class asks for a source all the same.
        masked = method.mask(dataset, rng=Randomness.secure(), progress=progress)
        table = FrequencySet.of(masked, quasi=quasi)
        small = table.count < k
        suppressed = int(table.count[small].sum())
        if suppressed:
            import pyarrow as pa

            rows = {c.name: c.values.take(pa.array(c.codes[small])) for c in table.quasi}
            masked = suppress(masked, pa.table(rows), keep=False, confidential=())
        sizes = table.count[~small].astype(np.float64)
        score = float(sizes.mean()) if len(sizes) else 0.0
        return Outcome(
            masked, score, "aecs", suppressed, losses={"discernibility": float((sizes**2).sum())}
        )
