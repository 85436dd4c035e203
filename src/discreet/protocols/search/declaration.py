"""Where searches go and how they are disguised: the section `search` of a policy."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from discreet.errors import InputError
from discreet.protocols.search._base import Disguise, Vocabulary
from discreet.protocols.search.backends import Backend, FullTextIndex, SearchService
from discreet.protocols.search.goopir import Goopir
from discreet.protocols.search.proxy import Proxy
from discreet.registry import Record, parameter

__all__ = ["SearchPolicy", "read_vocabulary"]


@dataclasses.dataclass(frozen=True)
class SearchPolicy(Record):
    """A proxy on this machine that sends searches in disguise.

    Examples
    --------
    >>> SearchPolicy(vocabulary="words.csv", index="articles.db").disguise.name
    'goopir'
    """

    vocabulary: str = parameter(
        help="file with the columns term and count: what can be searched for", file="read"
    )
    index: str | None = parameter(
        None, help="SQLite file with an FTS5 table to search in", file="read"
    )
    table: str | None = parameter(None, help="the FTS5 table, where the file has several")
    url: str | None = parameter(
        None, help="or a service, with {query} where the search belongs", file="host"
    )
    disguise: Disguise = parameter(Goopir(), help="how searches are disguised")
    port: int = parameter(8434, help="port on this machine", low=0, high=65535)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.index is None) == (self.url is None):
            raise InputError(
                "a search goes to an index or to a service",
                code="contradicting-options",
                hint="write `index:` or `url:`, one of them",
            )

    def open(self) -> Proxy:
        """Return the proxy; its files are read now."""
        words = read_vocabulary(self.vocabulary)
        backend: Backend
        if self.index is not None:
            backend = FullTextIndex(self.index, self.table)
        else:
            backend = SearchService(str(self.url))
        try:
            return Proxy(backend, self.disguise, words)
        except BaseException:
            backend.close()
            raise


def read_vocabulary(file: str | Path) -> Vocabulary:
    """Return the vocabulary of a file with the columns term and count."""
    from discreet.data.dataset import read

    rows = read(file, types={"term": "nominal"}).arrow(["term", "count"])
    counts = zip(rows.column("term").to_pylist(), rows.column("count").to_pylist(), strict=True)
    return Vocabulary.of({str(term): float(count or 0) for term, count in counts})
