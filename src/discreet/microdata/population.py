"""How many people of the population are like a released record, counted in a file of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import InputError
from discreet.microdata.columns import Numbers, Places, codes, combined

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["counted"]


def counted(
    everyone: Dataset,
    before: Mapping[str, pa.Array],
    after: Mapping[str, pa.Array],
    origin: Places,
    class_size: Places,
) -> Numbers:
    """Return for each released record the number of people whose keys look the same.

    Where the release recoded a key the population is recoded alike; a value of the population that
    the file never had stays as it is. There are never fewer people than records.

    Parameters
    ----------
    before, after
        The keys of the file and of the release.
    origin
        For each released record the place of its original.
    class_size
        The number of released records with the same keys as each.
    """
    import pyarrow as pa

    size = len(origin)
    rows = everyone.frequencies(list(after))
    own, there = [], []
    for name, column in after.items():
        told = column.cast(pa.string())
        known = before[name].take(pa.array(origin))
        other = _recoded(name, rows.column(name).combine_chunks(), known, told)
        places, _ = codes(pa.concat_arrays([told, other]))
        own.append(places[:size])
        there.append(places[size:])
    joint = combined(
        [np.concatenate(both) for both in zip(own, there, strict=True)], size + rows.num_rows
    )
    weight = np.asarray(rows.column(len(after)).to_numpy(), dtype=np.float64)
    people = np.bincount(joint[size:], weight, minlength=int(joint.max()) + 1)
    found: Numbers = np.maximum(people[joint[:size]], class_size)
    return found


def _recoded(name: str, column: pa.Array, known: pa.Array, released: pa.Array) -> pa.Array:
    """Return a key of the population as the release tells it, as text.

    `known` has the released records' key as it was, `released` as it is told.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        column = column.cast(known.type).cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            f"column {name!r} of the population has another type than that of the file",
            code="unlike-population",
            hint="spell its values as the file does",
            column=name,
        ) from None
    own = known.cast(pa.string())
    same = pc.fill_null(pc.equal(own, released), False)  # pyarrow's own signature
    if pc.all(same).as_py():
        return column
    pairs = pa.table({"from": own, "to": released}).group_by(["from", "to"]).aggregate([])
    if len(pc.unique(pairs.column("from"))) < pairs.num_rows:
        raise InputError(
            f"the release changed column {name!r} record by record, so the population cannot be "
            "changed alike",
            code="unlike-population",
            hint="give the size of the population instead, or generalise by hierarchies",
            column=name,
        )
    place = pc.index_in(column, value_set=pairs.column("from"))
    return pc.if_else(place.is_null(), column, pairs.column("to").combine_chunks().take(place))
