"""How many people of the population are like a released record, counted in a file of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.microdata.masking._base import codes

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset
    from discreet.microdata.pair import Pair

__all__ = ["counted"]


def counted(pair: Pair, everyone: Dataset) -> npt.NDArray[np.float64]:
    """Return for each released record the number of people whose keys look the same.

    Where the release recoded a key the population is recoded alike; a value of the population that
    the file never had stays as it is. There are never fewer people than records.
    """
    import pyarrow as pa

    from discreet.microdata.pair import combined

    names = pair.released_keys
    rows = everyone.frequencies(list(names))
    after, there = [], []
    for name in names:
        own = pair.after(name).cast(pa.string())
        other = _recoded(pair, name, rows.column(name).combine_chunks())
        places, _ = codes(pa.concat_arrays([own, other]))
        after.append(places[: pair.size])
        there.append(places[pair.size :])
    joint = combined(
        [np.concatenate(both) for both in zip(after, there, strict=True)],
        pair.size + rows.num_rows,
    )
    weight = np.asarray(rows.column("count").to_numpy(), dtype=np.float64)
    people = np.bincount(joint[pair.size :], weight, minlength=int(joint.max()) + 1)
    found: npt.NDArray[np.float64] = np.maximum(people[joint[: pair.size]], pair.class_size)
    return found


def _recoded(pair: Pair, name: str, column: pa.Array) -> pa.Array:
    """Return a key of the population as the release tells it, as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    before = pair.before(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        column = column.cast(before.type).cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            f"column {name!r} of the population has another type than that of the file",
            code="unlike-population",
            hint="spell its values as the file does",
            column=name,
        ) from None
    own = before.cast(pa.string()).take(pa.array(pair.origin))
    released = pair.after(name).cast(pa.string())
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
