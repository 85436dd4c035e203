"""Search engines that a disguised search goes to: a SQLite full-text index, or a service by its URL.

An engine gets terms joined by OR and returns whole documents; which of them hold the wanted term is
found out at home.
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import http.client
import json
import re
import sqlite3
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from discreet.errors import EngineError, InputError

__all__ = ["Backend", "Document", "Found", "FullTextIndex", "SearchService", "any_of"]

# Any: a document is what the engine holds of it, field by field.
Document = dict[str, Any]

#: Documents that one search may bring; more would have to be cut, and a cut shows what was cut.
_MOST = 200_000
_BYTES = 1 << 26
_SECONDS = 30.0
_FIELD = "discreet_rowid"
_TOKENIZER = re.compile(r"tokenize\s*=\s*('(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\w+)", re.IGNORECASE)


def any_of(terms: Sequence[str]) -> str:
    """Return a search for any of some terms, as full-text engines read it.

    >>> any_of(["flu", "gout"])
    '"flu" OR "gout"'
    """
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)


#: Tables whose documents cannot be looked through at home as the index itself does.
_APART = re.compile(r"""\bunindexed\b|\bcontent\s*=\s*(''|"")""", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Found:
    """What was found, and how many terms and searches the engine saw for it."""

    documents: list[Document]
    searches: int
    terms: int


class Backend(abc.ABC):
    """A search engine, and how it would find a term in documents."""

    @abc.abstractmethod
    def search(self, terms: Sequence[str]) -> list[Document]:
        """Return all documents with any of the terms."""

    @abc.abstractmethod
    def matching(self, documents: Sequence[Document], term: str) -> list[Document]:
        """Return those of the documents that the engine would have found for a term alone."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of the engine."""


class FullTextIndex(Backend):
    """An FTS5 table of a SQLite file, opened for reading only.

    Parameters
    ----------
    file
        The database.
    table
        The name of the table; the only full-text table of the file if left out.
    """

    def __init__(self, file: str | Path, table: str | None = None) -> None:
        place = Path(file)
        if not place.is_file():
            raise InputError("there is no such index", code="missing-file", file=place)
        self._file = place
        address = f"file:{urllib.parse.quote(str(place.absolute()))}?mode=ro"
        # One connection is shared by the threads of a server; it only reads.
        self._base = sqlite3.connect(address, uri=True, check_same_thread=False)
        try:
            self._table, self._tokenizer = self._chosen(table)
            described = self._asked(f"SELECT * FROM {_quoted(self._table)} LIMIT 0")  # noqa: S608  # quoted
            self._fields = [str(item[0]) for item in described.description]
        except BaseException:
            self._base.close()
            raise

    def _chosen(self, table: str | None) -> tuple[str, str]:
        rows = self._asked(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql LIKE '%using%fts5%'"
        ).fetchall()
        known = {str(name): str(made) for name, made in rows}
        chosen = table or (next(iter(known)) if len(known) == 1 else None)
        if chosen is None or chosen not in known:
            raise InputError(
                f"the file has {len(known)} full-text tables"
                if table is None
                else f"the file has no full-text table {table!r}",
                code="unknown-table",
                hint=f"name one of {', '.join(map(repr, known)) or 'none'}",
                file=self._file,
            )
        if _APART.search(known[chosen]):
            raise InputError(
                f"the full-text table {chosen!r} keeps no documents, or does not index all columns",
                code="unsuitable-index",
                hint="search in a table that keeps its documents and indexes every column",
                file=self._file,
            )
        told = _TOKENIZER.search(known[chosen])
        return chosen, f", tokenize={told.group(1)}" if told else ""

    def _asked(self, statement: str, values: Sequence[str] = ()) -> sqlite3.Cursor:
        try:
            return self._base.execute(statement, values)
        except sqlite3.Error:
            # The text of an error may hold the search.
            raise EngineError(
                "the index cannot be searched",
                code="cannot-search",
                hint="check that the file is a SQLite database with an FTS5 table",
                file=self._file,
            ) from None

    def search(self, terms: Sequence[str]) -> list[Document]:
        """Return all documents with any of the terms, by their number."""
        name = _quoted(self._table)
        rows = self._asked(
            f"SELECT rowid, * FROM {name} WHERE {name} MATCH ? ORDER BY rowid LIMIT {_MOST + 1}",  # noqa: S608  # quoted
            [any_of(terms)],
        ).fetchall()
        if len(rows) > _MOST:
            raise _too_many()
        return [dict(zip([_FIELD, *self._fields], row, strict=True)) for row in rows]

    def matching(self, documents: Sequence[Document], term: str) -> list[Document]:
        """Return those that hold the term, found by the same kind of index in memory."""
        with contextlib.closing(sqlite3.connect(":memory:")) as base:
            fields = [f"c{place}" for place in range(len(self._fields))]
            base.execute(f"CREATE VIRTUAL TABLE t USING fts5({', '.join(fields)}{self._tokenizer})")
            marks = ", ".join("?" * (len(fields) + 1))
            base.executemany(
                f"INSERT INTO t(rowid, {', '.join(fields)}) VALUES ({marks})",  # noqa: S608  # names of our own
                ([row[_FIELD], *(row[name] for name in self._fields)] for row in documents),
            )
            found = base.execute("SELECT rowid FROM t WHERE t MATCH ?", [any_of([term])])
            kept = {number for (number,) in found}
        return [
            {name: row[name] for name in self._fields} for row in documents if row[_FIELD] in kept
        ]

    def close(self) -> None:
        """Close the file."""
        self._base.close()


def _read_in_time(answer: http.client.HTTPResponse, seconds: float) -> bytes:
    """Return what a service answers; one that sends byte by byte may not hold up a reader."""
    until, parts, size = time.monotonic() + seconds, [], 0
    while size <= _BYTES and (part := answer.read1(1 << 16)):
        parts.append(part)
        size += len(part)
        if time.monotonic() > until:
            raise TimeoutError
    return b"".join(parts)


class SearchService(Backend):
    """A service that answers searches as JSON: a list of documents, or hits as OpenSearch does.

    Parameters
    ----------
    url
        With `{query}` where the search belongs, such as "https://host/search?q={query}". No
        redirection is followed.
    seconds
        How long an answer may take.
    """

    def __init__(self, url: str, *, seconds: float = _SECONDS) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "{query}" not in url:
            raise InputError(
                "the address of a search service is https://…{query}…",
                code="bad-address",
                hint="write {query} where the search belongs, such as https://host/find?q={query}",
            )
        if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise InputError(
                "a search over http can be read by everybody on the way",
                code="bad-address",
                hint="write https://",
            )
        self._url, self._seconds = url, seconds
        self._opener = urllib.request.build_opener(_NoRedirection())

    def search(self, terms: Sequence[str]) -> list[Document]:
        """Return all documents with any of the terms, as the service orders them."""
        url = self._url.replace("{query}", urllib.parse.quote(any_of(terms), safe=""))
        try:
            with self._opener.open(url, timeout=self._seconds) as answer:
                body = _read_in_time(answer, self._seconds)
        except (OSError, urllib.error.URLError):
            # The text of an error may hold the search.
            raise EngineError(
                "the search service does not answer",
                code="cannot-search",
                hint="check its address, and that it is up",
            ) from None
        if len(body) > _BYTES:
            raise _too_many()
        try:
            found = list(_documents(json.loads(body)))
        except (ValueError, RecursionError):
            found = None
        if found is None or len(found) > _MOST:
            raise EngineError(
                "the search service answers something else than documents",
                code="cannot-search",
                hint="it must answer JSON: a list of objects, or hits as OpenSearch does",
            )
        return found

    def matching(self, documents: Sequence[Document], term: str) -> list[Document]:
        """Return those in which the term's words stand side by side, whatever their case."""
        wanted = _words(term)
        return [row for row in documents if any(_holds(_words(t), wanted) for t in _texts(row))]

    def close(self) -> None:
        """Nothing is held open between searches."""


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    """A service that sends searches elsewhere would show them to others."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow nothing."""


def _documents(found: Any) -> Iterator[Document]:
    # Any: a stranger's JSON.
    if isinstance(found, dict):
        inner = found.get("hits", found.get("results"))
        found = inner.get("hits") if isinstance(inner, dict) else inner
    if not isinstance(found, list):
        raise ValueError("no list of documents")
    for item in found:
        row = item.get("_source", item) if isinstance(item, dict) else None
        if not isinstance(row, dict):
            raise ValueError("no document")
        yield row


def _texts(value: Any) -> Iterator[str]:
    # Any: a value of a stranger's JSON.
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _holds(words: list[str], wanted: list[str]) -> bool:
    size = len(wanted)
    return size > 0 and any(
        words[place : place + size] == wanted for place in range(len(words) - size + 1)
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _too_many() -> EngineError:
    return EngineError(
        "the search brings more than can be looked through",
        code="too-many-documents",
        hint="use buckets of rarer terms: raise the cap, or lower k",
    )
