"""Checking a release once more: by a new count of what is about to leave."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from discreet.data.dataset import Dataset, as_dataset
from discreet.microdata.frequency_set import FrequencySet
from discreet.microdata.models import Model
from discreet.microdata.models._base import ModelCheck
from discreet.microdata.recoding import STAR
from discreet.verification import Held

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.microdata.methods._base import Outcome

__all__ = ["held_for", "verified", "without_starred"]


def verified(
    released: Dataset,
    original: Dataset,
    models: Sequence[Model],
    keys: Sequence[str],
    *,
    wildcard: bool = False,
    starred: bool = False,
    maps: Mapping[str, pa.Table] | None = None,
) -> tuple[ModelCheck, ...]:
    """Check each model on the released records, suppressed ones left out.

    Distributions are compared with those of the original file. With `wildcard` a missing
    quasi-identifier matches every value, as local suppression counts; with `starred` suppressed
    records were kept with stars for their keys. A population is recoded by `maps`, as the file was.
    """
    if wildcard:
        from discreet.microdata.search.wildcard import wildcard_check

        return tuple(wildcard_check(released, model, keys) for model in models)
    visible = without_starred(released, keys) if starred else released
    models = [_comparable(model, maps or {}) for model in models]
    classes = FrequencySet.of(visible, quasi=keys, models=models, reference=original).classes()
    return tuple(model.judge(classes) for model in models)


def _comparable(model: Model, maps: Mapping[str, pa.Table]) -> Model:
    """Return a k-map model whose population has the values of the release."""
    population = getattr(model, "population", None)
    if population is None or not maps:
        return model
    recoded = as_dataset(population).recode(dict(maps))
    return dataclasses.replace(model, population=recoded)  # type: ignore[call-arg]  # it has one


def held_for(
    outcome: Outcome, original: Dataset, models: Sequence[Model], columns: Sequence[str]
) -> Held:
    """Return what the verifier of the written file needs beside it; records, not counts."""
    confidential = list(dict.fromkeys(column for model in models for column in model.columns))
    unit, weight = original.unit, original.weight
    unit = unit if unit in outcome.dataset.columns else None
    weighed = weight is not None and any(hasattr(model, "population") for model in models)
    records = before = None
    more = [name for name in (unit, weight if weighed else None) if name is not None]
    if more:
        records = outcome.dataset.arrow(list(dict.fromkeys([*columns, *confidential, *more])))
    if confidential:
        owner = [] if unit is None else [unit]
        before = original.arrow(list(dict.fromkeys([*confidential, *owner])))
    given = [_comparable(m, outcome.maps) for m in models if getattr(m, "population", None)]
    everyone = as_dataset(given[0].population) if given else None  # type: ignore[attr-defined]  # k-map has one
    return Held(
        records=records,
        unit=unit,
        weight=weight if weighed else None,
        original=before,
        orders={name: _order(original, name) for name in confidential if _is_text(original, name)},
        ancestors={
            name: _ancestors(original, name)
            for name in confidential
            if original.schema.hierarchies(name)
        },
        population=None if everyone is None else everyone.arrow(list(_keys(everyone, columns))),
    )


def _keys(everyone: Dataset, columns: Sequence[str]) -> list[str]:
    return [name for name in columns if name in everyone.columns]


def _is_text(dataset: Dataset, name: str) -> bool:
    import pyarrow as pa

    kind = dataset.relation.schema.field(name).type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _order(dataset: Dataset, name: str) -> list[str]:
    """Return texts in the order of t-closeness: that of a hierarchy's leaves, else alphabetical."""
    values = {value for value in dataset.arrow([name]).column(0).to_pylist() if value is not None}
    hierarchies = dataset.schema.hierarchies(name)
    leaves = list(hierarchies[0].leaves) if hierarchies else []
    return leaves if leaves and values <= set(leaves) else sorted(values)


def _ancestors(dataset: Dataset, name: str) -> dict[str, list[str]]:
    """Return the groups of every leaf, as numbers of groups on each level."""
    tree = dataset.schema.hierarchies(name)[0]
    return {
        leaf: [str(group) for group in groups[1:]]
        for leaf, groups in zip(tree.leaves, tree.levels.tolist(), strict=True)
    }


def without_starred(released: Dataset, keys: Sequence[str]) -> Dataset:
    """Leave out the records that say nothing: all of their keys are starred."""
    from sqlglot import exp

    from discreet.data.engines import sql

    starred = exp.and_(
        *(exp.NullSafeEQ(this=sql.column(name), expression=sql.text(STAR)) for name in keys)
    )
    return released.where(exp.Not(this=exp.Paren(this=starred)))
