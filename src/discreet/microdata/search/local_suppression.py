"""Local suppression of a whole file: which keys go, one set of keys after the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import InputError
from discreet.microdata.classes import Integers
from discreet.microdata.models._base import Booleans
from discreet.microdata.search.cell_suppression import suppress_as_category, suppress_as_wildcard
from discreet.microdata.search.wildcard import Keys, keys_of_table
from discreet.progress import Progress, silent

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Preferences", "Suppressed", "suppress_keys"]

#: Says of keys, in the order they are given, which records break a model.
Failing = Callable[[Keys], Booleans]


@dataclasses.dataclass(frozen=True)
class Preferences:
    """How missing keys are read, and which keys are given up first."""

    missing: str = "wildcard"
    importance: tuple[str, ...] = ()
    costs: Mapping[str, float] = dataclasses.field(default_factory=dict)
    key_sets: tuple[tuple[str, ...], ...] = ()
    spare: bool = False

    def __post_init__(self) -> None:
        for column, cost in self.costs.items():
            if not (isinstance(cost, int | float) and 0 < cost < float("inf")):
                raise InputError(
                    f"the cost of {column!r} must be a number above 0, found {cost!r}",
                    code="parameter-range",
                    column=column,
                    parameter="costs",
                )

    @property
    def named(self) -> frozenset[str]:
        """Every key that some preference is about."""
        return frozenset(
            (*self.importance, *self.costs, *(name for keys in self.key_sets for name in keys))
        )

    def cost(self, name: str) -> float:
        """Return what removing one value of a key costs."""
        return float(self.costs.get(name, 1.0))


@dataclasses.dataclass(frozen=True, eq=False)
class Suppressed:
    """The keys of a file after local suppression, records in the order of the file."""

    names: tuple[str, ...]
    keys: Keys
    #: For each record the set of keys that were missing from the start, as bits.
    before: Integers
    #: The sets of keys, by place, that an intruder may know together.
    sets: tuple[tuple[int, ...], ...]

    def gone(self, name: str) -> Booleans:
        """Return which records lost a key."""
        lost = (self.keys.missing & ~self.before) >> self.names.index(name)
        return np.asarray(lost & 1, dtype=bool)

    def changed(self, rows: pa.Table) -> dict[str, pa.Array]:
        """Return the columns of the file that lost values."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = {}
        for name in self.names:
            gone = self.gone(name)
            if gone.any():
                column = rows.column(name).combine_chunks()
                if pa.types.is_dictionary(column.type):
                    column = column.cast(column.type.value_type)
                found[name] = pc.if_else(pa.array(gone), pa.scalar(None, column.type), column)
        return found


def suppress_keys(
    rows: pa.Table,
    k: int,
    wish: Preferences,
    *,
    failing: Callable[[Integers], Failing | None] | None = None,
    progress: Progress = silent,
) -> Suppressed:
    """Remove values of the columns of `rows` until every record looks like k records.

    Parameters
    ----------
    failing
        Given the record at each place of the keys, returns what says which of them break a model;
        without it the number of records that look alike says it all.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = pa.table({"sex": ["f", "f", "f", "m"], "age": [20, 20, 30, 20]})
    >>> done = suppress_keys(rows, 2, Preferences(importance=("sex",)))
    >>> {name: column.null_count for name, column in done.changed(rows).items()}
    {'age': 1, 'sex': 1}
    """
    given = rows.column_names
    names, whole, order = _cheapest_first(
        given, keys_of_table([rows.column(name) for name in given], given), wish
    )
    before = whole.missing.copy()
    sets = _sets(names, wish)
    broken = None if failing is None else failing(order)
    costs = [wish.cost(name) for name in names]
    for _ in range(1 + len(names) * len(sets)):
        changed = whole.missing.copy()
        for chosen in sets:
            part = Keys(
                whole.codes[:, chosen],
                [whole.sizes[j] for j in chosen],
                _gathered(whole.missing, chosen),
            )
            own = [costs[j] for j in chosen]
            if wish.missing == "wildcard":
                suppress_as_wildcard(part, k, own, spare=wish.spare, progress=progress)
            else:
                suppress_as_category(part, k, own, failing=broken, progress=progress)
            whole.missing |= _scattered(part.missing, chosen)
        # A removal for one set can only help the others when missing keys match everything.
        if wish.missing == "wildcard" or (changed == whole.missing).all():
            break
    back = np.argsort(order)
    return Suppressed(
        tuple(names),
        Keys(whole.codes[back], whole.sizes, whole.missing[back]),
        before[back],
        tuple(tuple(chosen) for chosen in sets),
    )


def _cheapest_first(
    names: Sequence[str], keys: Keys, wish: Preferences
) -> tuple[list[str], Keys, Integers]:
    """Order keys from the one to give up first: least important, then most values.

    Of sets of keys that cost the same the first is taken. Records come in the order of their keys,
    so that the order of the file plays no part.
    """
    place = {name: p for p, name in enumerate(wish.importance)}
    order = sorted(
        range(len(names)),
        key=lambda j: (-place.get(names[j], len(place)), -keys.sizes[j], names[j]),
    )
    missing = _gathered(keys.missing, order)
    codes = keys.codes[:, order]
    records = np.lexsort((*codes.T, missing))
    made = Keys(codes[records], [keys.sizes[j] for j in order], missing[records])
    return [names[j] for j in order], made, records


def _sets(names: Sequence[str], wish: Preferences) -> list[list[int]]:
    if not wish.key_sets:
        return [list(range(len(names)))]
    return [[j for j, name in enumerate(names) if name in keys] for keys in wish.key_sets]


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
