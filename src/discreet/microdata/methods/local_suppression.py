"""Local suppression: single values removed until every record looks like k records."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.errors import InputError
from discreet.microdata.methods._base import (
    Anonymization,
    Judge,
    Outcome,
    require_enough,
    require_records_suffice,
)
from discreet.microdata.models import Model
from discreet.microdata.models.k_anonymity import KAnonymity
from discreet.progress import Progress, silent
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset
    from discreet.microdata.classes import Integers
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
        for column, cost in self.costs.items():
            if not (isinstance(cost, int | float) and 0 < cost < float("inf")):
                raise InputError(
                    f"the cost of {column!r} must be a number above 0, found {cost!r}",
                    code="parameter-range",
                    column=column,
                    parameter="costs",
                )

    def anonymize(
        self,
        dataset: Dataset,
        models: Sequence[Model],
        *,
        quasi: Sequence[str],
        progress: Progress = silent,
    ) -> Outcome:
        """Return the dataset with values removed."""
        from discreet.microdata.search import cell_suppression as search
        from discreet.microdata.search.wildcard import Keys, keys_of_table

        k = self._require_readable(models)
        names = self._ordered(dataset, quasi)
        held = dataset.numbered()
        rows = held.arrow(names)
        require_enough(rows.num_rows, models)
        # Keys to give up first come first: of sets that cost the same the first is taken.
        whole = keys_of_table([rows.column(name) for name in names], names)
        names, whole, order = self._cheapest_first(names, whole)
        before = whole.missing.copy()
        sets = self._sets(names)
        failing = _failing(held, quasi, models, order)
        costs = [float(self.costs.get(name, 1.0)) for name in names]
        for _ in range(1 + len(names) * len(sets)):
            changed = whole.missing.copy()
            for chosen in sets:
                part = Keys(
                    whole.codes[:, chosen],
                    [whole.sizes[j] for j in chosen],
                    _gathered(whole.missing, chosen),
                )
                own = [costs[j] for j in chosen]
                if self.missing == "wildcard":
                    search.suppress_as_wildcard(part, k, own, spare=self.spare, progress=progress)
                else:
                    search.suppress_as_category(part, k, own, failing=failing, progress=progress)
                whole.missing |= _scattered(part.missing, chosen)
            # A removal for one set can only help the others when missing keys match everything.
            if self.missing == "wildcard" or (changed == whole.missing).all():
                break
        back = np.argsort(order)
        whole = Keys(whole.codes[back], whole.sizes, whole.missing[back])
        return self._outcome(held, rows, names, whole, before[back], k, sets)

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

    def _ordered(self, dataset: Dataset, quasi: Sequence[str]) -> list[str]:
        asked = {*self.importance, *self.costs, *(n for keys in self.key_sets for n in keys)}
        for name in asked:
            dataset.schema[name]
            if name not in quasi:
                raise InputError(
                    f"column {name!r} is not a quasi-identifier",
                    code="not-a-quasi-identifier",
                    hint="give it the role quasi, or leave it out",
                    column=name,
                )
        return list(quasi)

    def _cheapest_first(self, names: list[str], keys: Keys) -> tuple[list[str], Keys, Integers]:
        """Order keys from the one to give up first: least important, then most values.

        Records come in the order of their keys, so that the order of the file plays no part.
        """
        from discreet.microdata.search.wildcard import Keys as Made

        place = {name: p for p, name in enumerate(self.importance)}
        order = sorted(
            range(len(names)),
            key=lambda j: (-place.get(names[j], len(place)), -keys.sizes[j], names[j]),
        )
        missing = _gathered(keys.missing, order)
        codes = keys.codes[:, order]
        records = np.lexsort((*codes.T, missing))
        made = Made(codes[records], [keys.sizes[j] for j in order], missing[records])
        return [names[j] for j in order], made, records

    def _sets(self, names: Sequence[str]) -> list[list[int]]:
        if not self.key_sets:
            return [list(range(len(names)))]
        return [[j for j, name in enumerate(names) if name in keys] for keys in self.key_sets]

    def _outcome(
        self,
        held: Dataset,
        rows: pa.Table,
        names: Sequence[str],
        keys: Keys,
        before: Integers,
        k: int,
        sets: Sequence[Sequence[int]],
    ) -> Outcome:
        import pyarrow as pa
        import pyarrow.compute as pc

        changed, cells = {}, {}
        for j, name in enumerate(names):
            gone = ((keys.missing & ~before) >> j & 1).astype(bool)
            cells[name] = int(gone.sum())
            if gone.any():
                column = rows.column(name).combine_chunks()
                if pa.types.is_dictionary(column.type):
                    column = column.cast(column.type.value_type)
                changed[name] = pc.if_else(pa.array(gone), pa.scalar(None, column.type), column)
        total = sum(cells.values())
        cost = sum(float(self.costs.get(name, 1.0)) * count for name, count in cells.items())
        below = int((keys.classes() < k).sum())
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
            key_sets=tuple(tuple(names[j] for j in chosen) for chosen in sets),
        )


def _failing(
    dataset: Dataset, quasi: Sequence[str], models: Sequence[Model], order: Integers
) -> Callable[[Keys], Booleans] | None:
    """Return what says which records break a model; None where their number says it all.

    `order` has the record at each place of the keys.
    """
    if all(isinstance(model, KAnonymity) for model in models):
        return None
    judge = Judge.of(dataset, quasi, models)

    def failing(keys: Keys) -> Booleans:
        label = keys.class_of()
        by_record = np.empty_like(label)
        by_record[order] = label
        return judge.failing(by_record)[label]

    return failing


def _gathered(missing: Integers, order: Sequence[int]) -> Integers:
    """Return sets of missing keys, as bits, in another order of the keys."""
    found = np.zeros_like(missing)
    for place, j in enumerate(order):
        found |= (missing >> j & 1) << place
    return found


def _scattered(missing: Integers, order: Sequence[int]) -> Integers:
    """Undo `_gathered`."""
    found = np.zeros_like(missing)
    for place, j in enumerate(order):
        found |= (missing >> place & 1) << j
    return found
