"""Where records were read from: the same source has the same origin, whatever it is called."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from discreet.data.addresses import database_file
from discreet.registry import is_address

__all__ = ["Origin", "origin_of"]


@dataclasses.dataclass(frozen=True)
class Origin:
    """A file or a table, without any password."""

    #: "file", also for a table in a DuckDB file, or "table".
    kind: str
    #: The file with all links followed, or the database.
    place: str
    table: str = ""


def origin_of(source: Any) -> Origin | None:
    """Return where a source is; none for frames, which are nowhere but in memory.

    Any: a path, an address or a frame of any library.

    >>> origin_of("postgresql://ana:secret@db.example:5432/stats#people")
    Origin(kind='table', place='postgresql://db.example:5432/stats', table='people')
    """
    if isinstance(source, Path) or (isinstance(source, str) and not is_address(source)):
        return Origin("file", str(Path(source).resolve()))
    if not isinstance(source, str):
        return None
    address, _, table = source.partition("#")
    scheme = address.partition("://")[0].lower()
    if scheme == "duckdb":
        file = database_file(address)
        return None if file is None else Origin("file", str(Path(file).resolve()), table)
    if scheme in ("postgresql", "postgres"):
        from discreet.data.engines.postgres import parameters

        said = parameters(address)
        host, port = said.get("host", ""), said.get("port", "5432")
        return Origin("table", f"postgresql://{host}:{port}/{said.get('dbname', '')}", table)
    if scheme in ("spark", "sc"):
        from discreet.data.engines.spark_address import SparkAddress, location

        files = location(table)
        if files is None:
            return Origin("table", SparkAddress.of(address).identity, table)
        folder = files.folder
        return Origin("file", files.place if folder is None else str(folder.resolve()))
    return Origin("table", address, table)
