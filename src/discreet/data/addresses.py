"""Addresses of databases: which file a DuckDB address names, and an address without its password."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

__all__ = ["database_file", "duckdb_address", "without_passwords"]

# The last @ ends a password: passwords may hold an @ themselves.
_PASSWORD = re.compile(r"(?P<start>\b[a-z][a-z0-9+.-]*://[^\s:/?#@'\"]*):[^\s'\"]*@", re.IGNORECASE)
_PARAMETER = re.compile(
    r"(?P<name>[?&](?:(?:ssl)?password|spark\.[^=&#\s]*(?:password|secret|token|key|credential)[^=&#\s]*)=)"
    r"[^\s&#'\"]*",
    re.IGNORECASE,
)


def database_file(address: str) -> str | None:
    """Return the file that a DuckDB address names; none for a database in memory.

    Three slashes start from the folder where one is, four from the root.

    >>> database_file("duckdb:///people.db"), database_file("duckdb:////data/a.db#people")
    ('people.db', '/data/a.db')
    >>> database_file("duckdb://") is None
    True
    """
    parts = urlsplit(address.partition("#")[0])
    path = unquote(parts.netloc or parts.path[1:])
    return None if path in ("", ":memory:") else path


def duckdb_address(file: str | Path, table: str = "", *, settings: str = "") -> str:
    """Return the address of a table in a DuckDB file, with settings of DuckDB.

    >>> duckdb_address("/data/a b.db", "people", settings="access_mode=read_only")
    'duckdb:////data/a%20b.db?access_mode=read_only#people'
    """
    ending = (f"?{settings}" if settings else "") + (f"#{table}" if table else "")
    return f"duckdb:///{quote(str(file))}{ending}"


def without_passwords(text: str) -> str:
    """Return a text in which no address has a password.

    >>> without_passwords("source: postgresql://ana:s3cr@t@host/stats#people")
    'source: postgresql://ana@host/stats#people'
    """
    return _PARAMETER.sub(r"\g<name>", _PASSWORD.sub(r"\g<start>@", text))
