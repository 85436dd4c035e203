"""Microaggregation of all quasi-identifiers together, which gives k-anonymity by construction."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.microdata.classes import UNITS, Integers, Numbers
from discreet.microdata.frequency_set import FrequencySet
from discreet.microdata.methods._base import (
    Anonymization,
    Judge,
    Outcome,
    require_records_suffice,
)
from discreet.microdata.models import Model
from discreet.microdata.models._base import require_enough
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

    Numbers stay numbers and keep their means; no hierarchy is needed. Groups that break another
    model are merged with the nearest group until none does. Records that miss so many
    quasi-identifiers that fewer than k miss the same, or that break a model all together, are
    dropped and counted as suppressed.

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

    def rehearse(self, dataset: Dataset, models: Sequence[Model], *, table: FrequencySet) -> None:
        """Refuse models of a population, and values that a hierarchy lacks."""
        from discreet.microdata.masking._base import require_covered

        require_records_suffice("microaggregation", models)
        for coded in table.quasi:
            require_covered(dataset, coded.name)

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

        require_records_suffice("microaggregation", models)
        require_enough(dataset.count, models)
        k = max(2, *(model.smallest for model in models))
        if k > dataset.count or all(m.smallest == 1 and isinstance(m, KAnonymity) for m in models):
            return Outcome(dataset, 0.0, "aecs")
        method = Microaggregation(tuple(quasi), k=k, variant=self.variant, search=self.search)
        progress("grouping", 0, 1)
        held = dataset.numbered()
        judge = Judge.of(held, quasi, models)
        by_size = UNITS not in judge.records.cells and all(
            isinstance(model, KAnonymity) for model in models
        )
        columns = method.aggregate(
            held.arrow(list(quasi)),
            dataset.schema,
            None if by_size else functools.partial(_merged, judge),
        )
        masked = held.with_columns(columns)
        progress("grouping", 1, 1)
        table = FrequencySet.of(masked, quasi=quasi, models=models, reference=dataset)
        classes = table.classes()
        small = np.zeros(len(table.count), dtype=bool)
        for model in models:
            small |= ~model.satisfied(classes)
        suppressed = int(table.count[small].sum())
        if suppressed:
            import pyarrow as pa

            rows = {c.name: c.values.take(pa.array(c.codes[small])) for c in table.quasi}
            masked = suppress(masked, pa.table(rows), keep=False)
        sizes = table.count[~small].astype(np.float64)
        score = float(sizes.mean()) if len(sizes) else 0.0
        return Outcome(
            masked, score, "aecs", suppressed, losses={"discernibility": float((sizes**2).sum())}
        )


def _merged(judge: Judge, places: Integers, points: Numbers, groups: Integers) -> Integers:
    """Merge groups that break a model with the nearest one until none does, or one is left."""
    from scipy.spatial import cKDTree

    while (many := int(groups.max()) + 1) > 1:
        # Records of other patterns of missing values are groups of no interest here.
        label = np.full(len(judge.records.count), many, dtype=np.int64)
        label[places] = groups
        bad = np.flatnonzero(judge.failing(label)[:many])
        if not len(bad):
            break
        sums = np.zeros((many, points.shape[1]))
        np.add.at(sums, groups, points)
        centres = sums / np.bincount(groups)[:, None]
        near = np.asarray(cKDTree(centres).query(centres[bad], k=2)[1])
        other = np.where(near[:, 0] == bad, near[:, 1], near[:, 0])
        groups = _joined(many, bad, other)[groups]
    return groups


def _joined(many: int, one: Integers, two: Integers) -> Integers:
    """Return the new number of each group after pairs of them became one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(one)), (one, two)), shape=(many, many))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)
