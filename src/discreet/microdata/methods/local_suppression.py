"""Local suppression: single values removed until every record looks like k records."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.errors import InputError
from discreet.microdata.frequency_set import owner
from discreet.microdata.methods._base import (
    Anonymization,
    Judge,
    Outcome,
    require_records_suffice,
)
from discreet.microdata.models import Model
from discreet.microdata.models._base import require_enough
from discreet.microdata.models.k_anonymity import KAnonymity
from discreet.microdata.search.local_suppression import Preferences, Suppressed, suppress_keys
from discreet.progress import Progress, silent
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset
    from discreet.microdata.classes import Integers
    from discreet.microdata.frequency_set import FrequencySet
    from discreet.microdata.models._base import Booleans
    from discreet.microdata.search.wildcard import Keys

__all__ = ["LocalSuppression"]


@dataclasses.dataclass(frozen=True)
class LocalSuppression(Anonymization):
    """Remove the fewest or cheapest single key values so that every record looks like k records.

    A removed value is missing in the release. Missing values can be read in two ways, and the
    report counts both. *wildcard*: a missing key matches every value, on either side, as
    sdcMicro counts. *category*: a missing key is a value of its own, as in generalisation; this
    takes more removals and leaves no class below k for any reader. Values missing from the start
    are read in the same way and cost nothing. Models other than k-anonymity look at whole classes
    and are enforced in the second reading: classes that break one give up keys too.

    Each record that needs it gives up the cheapest set of its own keys that suffices; with
    `spare`, of records that look alike but for those keys only as many as it takes for the others
    to match enough: far fewer cells, but the spared records stay visible in full.

    Examples
    --------
    >>> LocalSuppression(importance=("sex", "age")).missing
    'wildcard'
    """

    name: ClassVar[str] = "local-suppression"
    reference: ClassVar[str] = (
        "Hundepool and others: Statistical disclosure control, Wiley 2012, section 3.5"
    )

    missing: str = parameter(
        "wildcard",
        help="whether a missing key matches every value or is a value of its own",
        choices=("wildcard", "category"),
    )
    importance: tuple[str, ...] = parameter(
        (), help="keys from the one to keep most to the one to give up first"
    )
    costs: Mapping[str, float] = parameter({}, help="cost of removing a value of a key, else 1")
    key_sets: tuple[tuple[str, ...], ...] = parameter(
        (), help="sets of keys that an intruder may know together; by default all of them"
    )
    spare: bool = parameter(False, help="spare records that match enough through others' removals")

    def __post_init__(self) -> None:
        for name in ("importance", "key_sets"):
            given = getattr(self, name)
            if isinstance(given, list | tuple):
                fixed = tuple(tuple(i) if isinstance(i, list) else i for i in given)
                object.__setattr__(self, name, fixed)
        super().__post_init__()
        self._wish()

    def _wish(self) -> Preferences:
        return Preferences(self.missing, self.importance, self.costs, self.key_sets, self.spare)

    def covered(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Return the keys that a set names: a key that none names leaves as it is."""
        named = {name for chosen in self.key_sets for name in chosen}
        return tuple(name for name in keys if name in named or not named)

    def anonymize(
        self,
        dataset: Dataset,
        models: Sequence[Model],
        *,
        quasi: Sequence[str],
        progress: Progress = silent,
    ) -> Outcome:
        """Return the dataset with values removed."""
        k = self._require_readable(models)
        self._require_keys(dataset, quasi)
        self._require_people(dataset)
        held = dataset.numbered()
        rows = held.arrow(list(quasi))
        require_enough(rows.num_rows, models)
        done = suppress_keys(
            rows, k, self._wish(), failing=_judged(held, quasi, models), progress=progress
        )
        return self._outcome(held, rows, done, k)

    def rehearse(self, dataset: Dataset, models: Sequence[Model], *, table: FrequencySet) -> None:
        """Refuse models and columns that the reading of missing keys has no classes for."""
        self._require_readable(models)
        self._require_keys(dataset, [coded.name for coded in table.quasi])
        self._require_people(dataset)

    def _require_people(self, dataset: Dataset) -> None:
        if self.missing == "wildcard" and owner(dataset) is not None:
            raise InputError(
                "where a missing key matches every value, records are counted and not people, and "
                f"somebody in {dataset.unit!r} owns several",
                code="model-not-supported",
                hint="write LocalSuppression(missing='category'), or use Generalization(…) or "
                "Mondrian(…)",
                column=dataset.unit,
            )

    def _require_readable(self, models: Sequence[Model]) -> int:
        """Return the fewest records a class needs; refuse models the reading has no classes for."""
        require_records_suffice("local suppression", models)
        for model in models:
            if self.missing == "wildcard" and not isinstance(model, KAnonymity):
                raise InputError(
                    f"{model.name} looks at classes, and where a missing key matches every value "
                    "there are none",
                    code="model-not-supported",
                    hint="write LocalSuppression(missing='category'), or use Generalization(…) or "
                    "Mondrian(…)",
                )
        return max(model.smallest for model in models)

    def _require_keys(self, dataset: Dataset, quasi: Sequence[str]) -> None:
        for name in self._wish().named:
            dataset.schema[name]
            if name not in quasi:
                raise InputError(
                    f"column {name!r} is not a quasi-identifier",
                    code="not-a-quasi-identifier",
                    hint="give it the role quasi, or leave it out",
                    column=name,
                )

    def _outcome(self, held: Dataset, rows: pa.Table, done: Suppressed, k: int) -> Outcome:
        cells = {name: int(done.gone(name).sum()) for name in done.names}
        changed = done.changed(rows)
        total = sum(cells.values())
        cost = sum(self._wish().cost(name) * count for name, count in cells.items())
        below = int((done.keys.classes() < k).sum())
        note = (
            f"{total:,} cells removed. Read with a missing key as a value of its own, {below:,} "
            f"records are in classes of fewer than {k}."
        )
        return Outcome(
            held.with_columns(changed) if changed else held,
            cost,
            "cost" if self.costs else "cells",
            losses={"cells": float(total), **{f"cells of {n}": float(c) for n, c in cells.items()}},
            notes=(note,),
            work={"cells": total, "below_as_category": below},
            wildcard=self.missing == "wildcard",
            key_sets=tuple(tuple(done.names[j] for j in chosen) for chosen in done.sets),
        )


def _judged(
    dataset: Dataset, quasi: Sequence[str], models: Sequence[Model]
) -> Callable[[Integers], Callable[[Keys], Booleans]] | None:
    """Return what says which records break a model; None where their number says it all."""
    if owner(dataset) is None and all(isinstance(model, KAnonymity) for model in models):
        return None
    judge = Judge.of(dataset, quasi, models)

    def by_place(order: Integers) -> Callable[[Keys], Booleans]:
        def failing(keys: Keys) -> Booleans:
            label = keys.class_of()
            by_record = np.empty_like(label)
            by_record[order] = label
            return judge.failing(by_record)[label]

        return failing

    return by_place
