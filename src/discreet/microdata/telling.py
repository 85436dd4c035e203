"""Columns that leave as they are and tell a key: a year of birth beside ages in classes.

A class hides nobody's age where every record also says when its owner was born. A column tells a key
where records that agree in the column agree in the key, more often than chance allows, or where both
rise together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["require_untold", "tells"]

Ints = npt.NDArray[np.int64]

#: Records looked at; what is found in them is counted in all.
_SAMPLE = 20_000
#: A column tells a key where so many of the records that repeat one of its values agree in the key.
_AGREE = 0.98
#: Columns that rise or fall together tell each other from this correlation of ranks on.
_TOGETHER = 0.995
#: How improbable that agreement must be for columns that have nothing to do with each other.
_CHANCE = 1e-4


def require_untold(dataset: Dataset, keys: Sequence[str]) -> None:
    """Refuse columns that would leave as they are and tell what a key is, unless vouched for."""
    hidden = {*dataset.schema.identifiers, *keys, dataset.unit}
    others = [n for n in dataset.columns if n not in hidden and not dataset.schema[n].vouched]
    if not others or not keys or not len(dataset):
        return
    engine, relation = dataset.engine, dataset.relation
    names = [*others, *keys]
    rows = engine.fetch(engine.project(relation, names).query.limit(_SAMPLE))
    codes = {name: _codes(rows.column(name)) for name in names}
    for name in others:
        for key in keys:
            if not tells(codes[name], codes[key]) or not _in_all(dataset, name, key):
                continue
            raise InputError(
                f"column {name!r} would leave as it is and tells {key!r}, which is to be hidden",
                code="telling-column",
                hint=f"give it the role quasi or identifier, or vouch for it by name: vouch=[{name!r}]",
                column=name,
                key=key,
            )


def _in_all(dataset: Dataset, name: str, key: str) -> bool:
    """Whether what a sample showed is so in all records: a file may be sorted."""
    if len(dataset) <= _SAMPLE:
        return True
    engine, relation = dataset.engine, dataset.relation
    alone = engine.combinations(relation, [name])
    return engine.combinations(relation, [name, key]) <= alone * (2 - _AGREE)


def _codes(column: pa.ChunkedArray) -> Ints:
    """Return the values as whole numbers in their order; missing ones are −1."""
    import pyarrow.compute as pc

    values = column.combine_chunks()
    present = pc.drop_null(values)
    order = pc.unique(present.take(pc.sort_indices(present)))
    found = pc.index_in(values, value_set=order)
    return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), dtype=np.int64)


def tells(column: Ints, key: Ints) -> bool:
    """Whether the codes of a column tell those of a key.

    >>> age = np.arange(60) % 7
    >>> tells(100 - age, age), tells(np.arange(60) % 4, age), tells(np.arange(60) * 3, age)
    (True, False, False)
    """
    known = (column >= 0) & (key >= 0)
    column, key = column[known], key[known]
    size = len(key)
    if size < 2 or len(np.unique(key)) < 2 or len(np.unique(column)) < 2:
        return False
    return _agree(column, key, size) or _rise_together(column, key, size)


def _agree(column: Ints, key: Ints, size: int) -> bool:
    _, groups = np.unique(column, return_inverse=True)
    _, values = np.unique(key, return_inverse=True)
    pairs, counts = np.unique(groups * (values.max() + 1) + values, return_counts=True)
    most = np.zeros(groups.max() + 1, dtype=np.int64)
    np.maximum.at(most, pairs // (values.max() + 1), counts)
    repeats = size - len(most)
    alike = int(most.sum()) - len(most)
    if 2 * repeats < size or alike < _AGREE * repeats:  # what hardly repeats agrees with anything
        return False
    by_chance = float(np.max(np.bincount(values)) / size)
    return bool(alike * np.log(by_chance) < np.log(_CHANCE))


def _rise_together(column: Ints, key: Ints, size: int) -> bool:
    if size < 20 or len(np.unique(key)) < 10 or len(np.unique(column)) < 10:
        return False
    found = np.corrcoef(_ranks(column), _ranks(key))[0, 1]
    return bool(abs(found) >= _TOGETHER)


def _ranks(codes: Ints) -> npt.NDArray[np.float64]:
    """Return the middle rank of each code."""
    _, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]
