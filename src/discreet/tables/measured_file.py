"""Noisy measurements as a file: what a consistent table was estimated from, for anybody to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.dp.hierarchical.basis import Basis, Query
from discreet.dp.hierarchical.budget import Budget, Measure
from discreet.dp.hierarchical.measurement import Measurements
from discreet.errors import InputError
from discreet.tables.methods._places import Places
from discreet.tables.methods._shares import query_name, read_query

__all__ = ["MEASUREMENTS", "read_measurements", "write_measurements"]

#: The name of the file in a folder of a release.
MEASUREMENTS = "measurements.parquet"
#: How marginals that are published exactly are called there: "exact total".
_EXACT = "exact "


def write_measurements(
    measured: Measurements, places: Places, levels: Sequence[str], path: Path
) -> None:
    """Write one row per measured number: level, query, place, number of the cell, noisy count."""
    import pyarrow as pa
    from pyarrow import parquet

    codes = np.array(places.dimensions[places.place].codes, dtype=object)
    names = [dimension.name for dimension in places.attributes]
    schema = pa.schema(
        [
            ("level", pa.string()),
            ("query", pa.string()),
            ("place", pa.string()),
            ("cell", pa.int32()),
            ("noisy", pa.int64()),
        ]
    )

    def batch(level: int, query: str, answers: Any) -> Any:
        # Any: arrays of numbers, and a table of pyarrow.
        nodes, width = answers.shape
        return pa.table(
            {
                "level": [levels[level]] * answers.size,
                "query": [query] * answers.size,
                "place": np.repeat(codes[places.nodes[level]], width).tolist(),
                "cell": np.tile(np.arange(width, dtype=np.int32), nodes),
                "noisy": answers.reshape(-1),
            },
            schema=schema,
        )

    with parquet.ParquetWriter(path, schema) as writer:
        for level, queries in enumerate(measured.noisy):
            for query, answers in queries.items():
                writer.write_table(batch(level, query_name(query, names), answers))
            if level in measured.exact:
                exact, answers = measured.exact[level]
                writer.write_table(batch(level, _EXACT + query_name(exact, names), answers))


def read_measurements(
    path: Path, places: Places, facts: Mapping[str, Any], records: int
) -> Measurements:
    """Return measurements as a folder of a release states them. Any: facts of its evidence."""
    from pyarrow import parquet

    names = [dimension.name for dimension in places.attributes]
    levels = [str(level) for level in facts["levels"]]
    measures = tuple(
        Measure(
            levels.index(str(one["level"])),
            read_query(str(one["query"]), names),
            float(one["scale"]),
            float(one["rho"]),
        )
        for one in facts["measurements"]
    )
    table = parquet.read_table(path)
    level_column = np.array(table.column("level").to_pylist(), dtype=object)
    query_column = np.array(table.column("query").to_pylist(), dtype=object)
    place_column = np.array(table.column("place").to_pylist(), dtype=object)
    cell_column = table.column("cell").to_numpy()
    noisy_column = table.column("noisy").to_numpy()
    index = places.dimensions[places.place].index

    def answers(level: int, query: str, width: int) -> Any:
        mine = np.flatnonzero((level_column == levels[level]) & (query_column == query))
        rank = {int(code): row for row, code in enumerate(places.nodes[level])}
        size = (len(rank), width)
        found, seen = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool)
        rows = [rank.get(index.get(place, -1), -1) for place in place_column[mine]]
        cells = cell_column[mine]
        if len(mine) != found.size or min(rows, default=0) < 0 or cells.max(initial=0) >= width:
            raise InputError(
                f"the measurements of level {levels[level]} are not complete",
                code="bad-measurements",
                file=path,
            )
        found[rows, cells], seen[rows, cells] = noisy_column[mine], True
        if not seen.all():
            raise InputError(
                f"the measurements of level {levels[level]} name a number twice",
                code="bad-measurements",
                file=path,
            )
        return found

    noisy: list[dict[Query, Any]] = [{} for _ in levels]
    for one in measures:
        width = _width(places.basis, one.query)
        noisy[one.level][one.query] = answers(one.level, query_name(one.query, names), width)
    exact = {}
    for name, text in facts["invariants"].items():
        level, query = levels.index(str(name)), read_query(str(text), names)
        width = _width(places.basis, query)
        exact[level] = query, answers(level, _EXACT + query_name(query, names), width)
    return Measurements(places.spine, places.basis, Budget(measures, records), tuple(noisy), exact)


def _width(basis: Basis, query: Query) -> int:
    return int(np.prod([basis.sizes[attribute] for attribute in query], dtype=np.int64))
