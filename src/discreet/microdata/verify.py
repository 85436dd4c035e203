"""Checking a release once more: by a new count of what is about to leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.microdata.models import Model
from discreet.microdata.models._base import ModelCheck
from discreet.microdata.recoding import STAR

if TYPE_CHECKING:
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
) -> tuple[ModelCheck, ...]:
    """Check each model on the released records, suppressed ones left out.

    Distributions are compared with those of the original file. With `wildcard` a missing
    quasi-identifier matches every value, as local suppression counts; with `starred` suppressed
    records were kept with stars for their keys.
    """
    if wildcard:
        from discreet.microdata.search.wildcard import wildcard_check

        return tuple(wildcard_check(released, model, keys) for model in models)
    visible = _without_starred(released, keys) if starred else released
    return tuple(model.check(visible, quasi=keys, reference=original) for model in models)


def _without_starred(released: Dataset, keys: Sequence[str]) -> Dataset:
    """Leave out the records that say nothing: all of their keys are starred."""
    from sqlglot import exp

    from discreet.data.engines import sql

    starred = exp.and_(
        *(exp.NullSafeEQ(this=sql.column(name), expression=sql.text(STAR)) for name in keys)
    )
    return released.where(exp.Not(this=starred))
