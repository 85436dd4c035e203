"""Addresses of Spark: the master, where its tables are, and settings of Spark's own.

    spark://host:7077?warehouse=/data/warehouse#people
    spark://host:7077?metastore=thrift://meta:9083&spark.executor.memory=4g#stats.people
    spark://local#parquet:/data/people

What stands behind the # is a table of the catalogue, a table of the warehouse, or a path that the
workers see.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from discreet.errors import InputError, nearest

__all__ = ["Location", "SparkAddress", "location"]

_WORDS = ("warehouse", "metastore", "catalog")
_CATALOGS = ("hive", "in-memory")
_FORMATS = ("parquet", "delta", "iceberg", "orc")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclasses.dataclass(frozen=True)
class Location:
    """Files that the workers read: their format, and their place as Spark takes it."""

    format: str
    place: str

    @property
    def folder(self) -> Path | None:
        """The place as a path of this machine; none where it is on another file system."""
        if self.place.startswith("file://"):
            return Path(self.place.removeprefix("file://"))
        return None if _SCHEME.match(self.place) else Path(self.place)


@dataclasses.dataclass(frozen=True)
class SparkAddress:
    """What an address says of Spark.

    >>> found = SparkAddress.of("spark://host:7077?warehouse=/data&spark.executor.memory=4g")
    >>> found.master, found.warehouse, found.settings["spark.executor.memory"]
    ('spark://host:7077', '/data', '4g')
    >>> SparkAddress.of("spark://host:7077?warehose=/data")
    Traceback (most recent call last):
    discreet.errors.InputError: an address of Spark has no option 'warehose'; write 'warehouse' ...
    """

    #: `spark://host:port`, `spark://local`, or `sc://host:port` for Spark Connect.
    master: str
    #: The folder whose folders are tables, on any file system that all workers see.
    warehouse: str | None = None
    #: Spark's own settings by their names.
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, url: str, options: Mapping[str, Any] | None = None) -> SparkAddress:
        """Read an address; options given besides count more. Any: settings are written as text."""
        address, _, query = url.partition("#")[0].partition("?")
        said: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
        said |= options or {}
        for name in said:
            if name not in _WORDS and not name.startswith("spark."):
                guess = nearest(name, _WORDS)
                raise InputError(
                    f"an address of Spark has no option {name!r}",
                    code="unknown-option",
                    hint=f"write {guess!r}"
                    if guess
                    else "write warehouse, metastore, catalog, or "
                    "a setting of Spark such as spark.executor.memory",
                )
        settings = {name: str(value) for name, value in said.items() if name not in _WORDS}
        warehouse = said.get("warehouse", settings.get("spark.sql.warehouse.dir"))
        place = None if warehouse is None else _absolute(str(warehouse))
        if place is not None:
            settings["spark.sql.warehouse.dir"] = place
        return cls(address.rstrip("/"), place, settings | _catalog(said, place))

    @property
    def is_connect(self) -> bool:
        """Whether the address speaks Spark Connect."""
        return urlsplit(self.master).scheme.lower() == "sc"

    @property
    def identity(self) -> str:
        """The address without what says only how Spark is to work."""
        telling = (
            "spark.hadoop.hive.metastore.uris",
            "spark.hadoop.javax.jdo.option.ConnectionURL",
        )
        found = [self.warehouse, *(self.settings.get(name) for name in telling)]
        return "?".join([self.master.lower(), *(place for place in found if place is not None)])


def _catalog(said: Mapping[str, Any], warehouse: str | None) -> dict[str, str]:
    """Return the settings of a metastore: one on a network, or Hive's own beside the warehouse."""
    catalog, metastore = said.get("catalog"), said.get("metastore")
    if catalog is not None and catalog not in _CATALOGS:
        raise InputError(
            f"Spark has no catalogue {catalog!r}",
            code="unknown-option",
            hint="write catalog=hive or catalog=in-memory",
        )
    if metastore is not None:
        return {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": str(metastore),
        }
    if catalog != "hive":
        return {}
    found = {"spark.sql.catalogImplementation": "hive"}
    if warehouse is not None and not _SCHEME.match(warehouse):
        file = f"{warehouse}/metastore_db"
        found["spark.hadoop.javax.jdo.option.ConnectionURL"] = (
            f"jdbc:derby:;databaseName={file};create=true"
        )
    return found


def _absolute(place: str) -> str:
    if not place:
        raise InputError(
            "the address names no folder for the warehouse",
            code="unknown-option",
            hint="write warehouse=/folder",
        )
    return place if _SCHEME.match(place) else str(Path(place).absolute())


def location(name: str) -> Location | None:
    """Return the files that stand for a table; none where it is the name of one.

    >>> location("/data/people"), location("stats.people")
    (Location(format='parquet', place='/data/people'), None)
    >>> location("delta:s3a://bucket/people")
    Location(format='delta', place='s3a://bucket/people')
    """
    word, colon, rest = name.partition(":")
    kind = word.lower() if colon and word.lower() in _FORMATS else None
    place = rest if kind else name
    if not place.startswith("/") and not _SCHEME.match(place):
        if kind is None:
            return None
        raise InputError(
            f"{place[:80]!r} is no path that every worker finds",
            code="bad-path",
            hint=f"write it from the root, {kind}:/folder/{place[:40]}, or with its file system, "
            f"{kind}:hdfs://host/folder",
        )
    return Location(kind or _kind(place), place)


def _kind(place: str) -> str:
    """Return the format that the files at a place tell by themselves."""
    folder = Location("", place).folder
    if folder is not None and (folder / "_delta_log").is_dir():
        return "delta"
    if folder is not None and any((folder / "metadata").glob("*.metadata.json")):
        return "iceberg"
    return "orc" if place.lower().endswith(".orc") else "parquet"
