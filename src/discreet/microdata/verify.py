"""Checking a release once more: by a new count of what is about to leave."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from discreet.microdata.frequency_set import FrequencySet, as_dataset
from discreet.microdata.models import Model
from discreet.microdata.models._base import ModelCheck
from discreet.microdata.recoding import STAR

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["verified"]


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
    visible = _without_starred(released, keys) if starred else released
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


def _without_starred(released: Dataset, keys: Sequence[str]) -> Dataset:
    """Leave out the records that say nothing: all of their keys are starred."""
    from sqlglot import exp

    from discreet.data.engines import sql

    starred = exp.and_(
        *(exp.NullSafeEQ(this=sql.column(name), expression=sql.text(STAR)) for name in keys)
    )
    return released.where(exp.Not(this=starred))
