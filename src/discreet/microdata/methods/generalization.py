"""Optimal full-domain generalisation with bounded record suppression."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.data.hierarchy import Hierarchy
from discreet.data.suggestion import suggest_hierarchy
from discreet.errors import InputError
from discreet.microdata.frequency_set import FrequencySet
from discreet.microdata.methods._base import Anonymization, Outcome
from discreet.microdata.models import Model
from discreet.microdata.models._base import require_enough
from discreet.microdata.recoding import suppress
from discreet.progress import Progress, silent
from discreet.registry import names_of, parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset
    from discreet.microdata.search.attribute import Attribute
    from discreet.microdata.search.lattice import Optimum

__all__ = ["Generalization"]


@dataclasses.dataclass(frozen=True)
class Generalization(Anonymization):
    """Generalise every quasi-identifier to one level of its hierarchy, at the least loss there is.

    Records in classes that break a model are suppressed, at most the given share. The search
    works on the frequency set and finds the optimum over all combinations of levels; the
    result is applied by joins in the engine, so the file may be larger than memory.

    Suppressed records are dropped; with `keep` they stay as records whose quasi-identifiers are
    `*` and whose other values are missing, so that the number of records is kept. The
    loss counts them in the same way. A missing quasi-identifier is a value of its own.

    Examples
    --------
    >>> Generalization(suppression=0.05).settings()["metric"]
    'loss'
    """

    name: ClassVar[str] = "generalization"
    reference: ClassVar[str] = (
        "Samarati: Protecting respondents' identities in microdata release, TKDE 13(6), 2001"
    )

    suppression: float = parameter(0.0, help="largest share of records to suppress", low=0, high=1)
    metric: str = parameter("loss", help="what to minimise", choices=names_of("metric"))
    highest: Mapping[str, int] = parameter({}, help="highest level of some columns")
    lowest: Mapping[str, int] = parameter({}, help="lowest level of some columns")
    keep: bool = parameter(False, help="keep suppressed records, with * for quasi-identifiers")

    def require(self, dataset: Dataset, quasi: Sequence[str]) -> None:
        """Refuse a quasi-identifier without a hierarchy."""
        for name in quasi:
            _hierarchy(dataset, name)

    def rehearse(self, dataset: Dataset, models: Sequence[Model], *, table: FrequencySet) -> None:
        """Refuse a quasi-identifier without a hierarchy of all its values, and levels it lacks."""
        self._attributes(dataset, table)
        require_enough(table.people, models, word="people")

    def _attributes(self, dataset: Dataset, table: FrequencySet) -> list[Attribute]:
        from discreet.microdata.search.attribute import attribute

        quasi = [coded.name for coded in table.quasi]
        for name in (*self.highest, *self.lowest):
            if name not in quasi:
                raise InputError(
                    f"a level is bounded for {name!r}, which is not a quasi-identifier",
                    code="not-a-quasi-identifier",
                    column=name,
                )
        return [
            attribute(
                coded,
                _hierarchy(dataset, coded.name),
                lowest=self.lowest.get(coded.name, 0),
                highest=self.highest.get(coded.name),
            )
            for coded in table.quasi
        ]

    def anonymize(
        self,
        dataset: Dataset,
        models: Sequence[Model],
        *,
        quasi: Sequence[str],
        progress: Progress = silent,
    ) -> Outcome:
        """Return the dataset at the optimal levels."""
        from discreet.microdata.search.lattice import optimum
        from discreet.microdata.search.metrics import FAMILY

        self.require(dataset, quasi)  # before anything is counted
        progress("counting", 0, 1)
        table = FrequencySet.of(dataset, quasi=quasi, models=models)
        require_enough(table.people, models, word="people")
        attributes = self._attributes(dataset, table)
        limit = int(self.suppression * table.records + 1e-9)
        best = optimum(
            table, attributes, models, FAMILY.get(self.metric)(), limit=limit, progress=progress
        )
        levels = {a.name: a.lowest + level for a, level in zip(attributes, best.node, strict=True)}
        maps = _maps(table, attributes, best)
        return Outcome(
            self._applied(dataset, table, attributes, best, maps),
            best.score,
            self.metric,
            best.suppressed,
            levels,
            _losses(table, attributes, best, limit),
            work={"nodes": best.nodes, "evaluated": best.evaluated},
            starred=self.keep and best.suppressed > 0,
            maps=maps,
        )

    def _applied(
        self,
        dataset: Dataset,
        table: FrequencySet,
        attributes: Sequence[Attribute],
        best: Optimum,
        maps: Mapping[str, pa.Table],
    ) -> Dataset:
        import pyarrow as pa

        changed = dataset.recode(maps) if maps else dataset
        gone = ~best.kept & (best.grouping.sizes > 0)
        if not gone.any():
            return changed
        rows = {}
        for j, own in enumerate(attributes):
            value_at = np.argsort(own.rank)
            places = best.rollup.places(best.grouping, j)[gone]
            new = maps[own.name].column("to") if own.name in maps else table.quasi[j].values
            rows[own.name] = new.take(pa.array(value_at[places]))
        return suppress(changed, pa.table(rows), keep=self.keep, unit=dataset.unit)


def _maps(
    table: FrequencySet, attributes: Sequence[Attribute], best: Optimum
) -> dict[str, pa.Table]:
    """Return for each generalised column what its values become."""
    import pyarrow as pa

    return {
        own.name: pa.table({"from": coded.values, "to": pa.array(own.labels[level], pa.string())})
        for coded, own, level in zip(table.quasi, attributes, best.node, strict=True)
        if own.lowest + level > 0
    }


def _hierarchy(dataset: Dataset, name: str) -> Hierarchy:
    found = dataset.schema.hierarchies(name)
    if not found:
        raise InputError(
            f"quasi-identifier {name!r} has no hierarchy",
            code="missing-hierarchy",
            hint=f"a start that fits its values: hierarchies={{{name!r}: "
            f"{suggest_hierarchy(dataset, name)}}}; `discreet hierarchy new FILE {name} -o "
            "hierarchy.csv` writes one to edit; or use method Mondrian, or give the column another "
            "role",
            column=name,
        )
    return found[0]


def _losses(
    table: FrequencySet, attributes: Sequence[Attribute], best: Optimum, limit: int
) -> dict[str, float]:
    """Return what every metric says of the node that one of them chose."""
    from discreet.microdata.search.metrics import FAMILY

    found = {}
    for name, metric in FAMILY.members().items():
        scorer = metric().scorer(table, attributes, best.rollup, limit)
        found[name] = scorer.final(scorer.score(best.node, best.grouping, best.kept))
    return found
