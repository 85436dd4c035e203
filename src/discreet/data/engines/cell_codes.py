"""Codes of attributes: which the records have, and where they stand in the hierarchies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.data.engines.cell_queries import Demand
from discreet.data.engines.results import code_text
from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Dimension
from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ancestors", "climbs_of", "codes_of", "dimensions_of", "places_of", "radix"]

Ints = npt.NDArray[np.int64]


def dimensions_of(demand: Demand, rows: pa.Table) -> tuple[list[Dimension], Ints]:
    """Return the attributes with all their codes, and the places of the cells' codes in them."""
    dimensions = []
    for key, (name, hierarchies) in zip(demand.keys, demand.by.items(), strict=True):
        found = sorted(
            {_code(demand, name, value) for value in rows.column(key).unique().to_pylist()}
        )
        if hierarchies:
            dimension = Dimension.of(name, list(hierarchies))
            _require_covered(dimension, found)
        else:
            if demand.total in found:
                raise InputError(
                    f"column {name!r} holds the value {demand.total!r}, which stands for the total",
                    code="code-is-total",
                    hint="give the total another name",
                    column=name,
                )
            dimension = Dimension.of(name, Hierarchy.flat(found, total=demand.total))
        dimensions.append(dimension)
    return dimensions, places_of(demand, dimensions, rows)


def _code(demand: Demand, name: str, value: Any) -> str:
    if value is not None:
        text = code_text(value)
        if text == "":
            raise InputError(
                f"column {name!r} holds an empty text, which cannot be a code",
                code="empty-code",
                hint="recode it, or read empty texts as missing",
                column=name,
            )
        return text
    if demand.missing is None:
        raise InputError(
            f"column {name!r} has missing values",
            code="missing-code",
            hint="pass missing='NA' to make them a code of their own",
            column=name,
        )
    return demand.missing


def places_of(demand: Demand, dimensions: Sequence[Dimension], rows: pa.Table) -> Ints:
    """Return the places of the cells' codes, one column for each attribute."""
    places = np.zeros((rows.num_rows, len(dimensions)), dtype=np.int64)
    for place, (key, dimension) in enumerate(zip(demand.keys, dimensions, strict=True)):
        encoded = rows.column(key).combine_chunks().dictionary_encode(null_encoding="encode")
        index = [
            dimension.index[_code(demand, dimension.name, value)]
            for value in encoded.dictionary.to_pylist()
        ]
        places[:, place] = np.array(index, dtype=np.int64)[encoded.indices.to_numpy()]
    return places


def _require_covered(dimension: Dimension, found: Sequence[str]) -> None:
    for hierarchy in dimension.hierarchies:
        hierarchy.require_covers(found, column=dimension.name)
    inner = [code for code in found if not dimension.is_leaf[dimension.index[code]]]
    if inner:
        raise InputError(
            f"column {dimension.name!r} has {len(inner)} values that stand for others in its "
            "hierarchy, such as " + ", ".join(repr(code) for code in inner[:3]),
            code="hierarchy-inner-value",
            hint="give them a value of their own below that code",
            column=dimension.name,
            values=inner[:100],
        )


def ancestors(dimension: Dimension) -> tuple[Ints, Ints]:
    """Return for each code all the codes it counts into, itself included, as (start, codes)."""
    lists: list[list[int]] = []
    for code in range(len(dimension.codes)):
        found = {code}
        for parents in dimension.parents:
            place = int(parents[code])
            while place >= 0:
                found.add(place)
                place = int(parents[place])
        lists.append(sorted(found))
    start = np.concatenate([[0], np.cumsum([len(found) for found in lists])]).astype(np.int64)
    return start, np.array([place for found in lists for place in found], dtype=np.int64)


def radix(dimensions: Sequence[Dimension], place: int) -> int:
    """Return what one step in an attribute adds to the number of a cell."""
    return math.prod(len(dimension.codes) for dimension in dimensions[place + 1 :])


def codes_of(demand: Demand, dimension: Dimension) -> pa.Table:
    """Return the values of an attribute that the data has, with the places of their codes."""
    import pyarrow as pa

    found = demand.engine.frequencies(demand.relation, [dimension.name]).column(0).drop_null()
    places = [dimension.index[code_text(value)] for value in found.to_pylist()]
    return pa.table({"value": found, "place": pa.array(places, pa.int64())})


def climbs_of(dimension: Dimension, radix: int) -> pa.Table:
    """Return for each code what it adds to the numbers of the cells that it counts into."""
    import pyarrow as pa

    start, above = ancestors(dimension)
    place = np.repeat(np.arange(len(dimension.codes), dtype=np.int64), np.diff(start))
    return pa.table({"place": place, "step": above * radix})
