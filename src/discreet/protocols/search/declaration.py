"""Where searches go and how they are disguised: the section `search` of a policy."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from discreet.errors import InputError
from discreet.protocols.search._base import Disguise, Vocabulary
from discreet.protocols.search.backends import Backend, FullTextIndex, SearchService
from discreet.protocols.search.goopir import Goopir
from discreet.protocols.search.member import MemberEntry, SearchMember
from discreet.protocols.search.proxy import Proxy
from discreet.protocols.transport import Identity
from discreet.registry import Record, parameter

__all__ = ["Connect", "SearchPolicy", "kept_beside", "read_vocabulary"]

#: Makes the line to the gateway that a policy names.
Connect = Callable[["SearchPolicy"], Backend]


@dataclasses.dataclass(frozen=True)
class SearchPolicy(Record):
    """A proxy on this machine that sends searches in disguise.

    Examples
    --------
    >>> SearchPolicy(vocabulary="words.csv", index="articles.db").disguise.name
    'goopir'
    """

    vocabulary: str | None = parameter(
        None, help="file with the columns term and count: what can be searched for", file="read"
    )
    index: str | None = parameter(
        None, help="SQLite file with an FTS5 table to search in", file="read"
    )
    table: str | None = parameter(None, help="the FTS5 table, where the file has several")
    url: str | None = parameter(
        None, help="or a service, with {query} where the search belongs", file="host"
    )
    gateway: str | None = parameter(
        None, help="or a server of this product's gateways, https://host:port", file="host"
    )
    user: str | None = parameter(None, help="for a gateway: who asks")
    certificate: str | None = parameter(
        None,
        help="for a gateway: its certificate (PEM), if this machine does not know it",
        file="read",
    )
    statement: str | None = parameter(
        None, help="for a gateway: the statement, with {terms} where the terms belong"
    )
    disguise: Disguise = parameter(Goopir(), help="how searches are disguised")
    members: Mapping[str, MemberEntry] = parameter(
        {}, help="for crowds and peers: every member, with address and certificate"
    )
    port: int = parameter(8434, help="port on this machine", low=0, high=65535)

    def __post_init__(self) -> None:
        super().__post_init__()
        if [self.index, self.url, self.gateway].count(None) != 2:
            raise InputError(
                "a search goes to an index, to a service or to a gateway",
                code="contradicting-options",
                hint="write `index:`, `url:` or `gateway:`, one of them",
            )
        if self.gateway is not None and (self.user is None or self.statement is None):
            raise InputError(
                "a gateway is asked by a user, with a statement",
                code="missing-parameter",
                hint="write `user: ana` and `statement: SELECT drug, COUNT(*) FROM people WHERE drug "
                "IN ({terms}) GROUP BY drug`",
            )

    def further_files(self, name: str) -> Iterable[Path]:
        """Return the file that keeps a disguise."""
        return () if self.vocabulary is None else (kept_beside(self.vocabulary),)

    def open(self, connect: Connect | None = None) -> Proxy:
        """Return the proxy; its files are read now. `connect` makes the line to a gateway."""
        if self.vocabulary is None:
            raise InputError(
                "a disguise chooses among the terms of a vocabulary, and none is named",
                code="missing-parameter",
                hint="write `vocabulary: words.csv`, a file with the columns term and count",
            )
        words = read_vocabulary(self.vocabulary)
        with self._backend(connect) as backend:
            return Proxy(backend, self.disguise, words, kept=kept_beside(self.vocabulary))

    def join(self, name: str, key: str | Path, connect: Connect | None = None) -> SearchMember:
        """Return a member at work, with the key file that belongs to its certificate."""
        if name not in self.members:
            raise InputError(
                f"the policy names no member {name!r}",
                code="unknown-member",
                hint="list it under `members:`, with `disguise: crowds` or `disguise: peers`",
            )
        identity = Identity.read(self.members[name].certificate, key)
        with self._backend(connect) as backend:
            return self.disguise.join(name, self.members, backend, identity=identity)

    @contextlib.contextmanager
    def _backend(self, connect: Connect | None) -> Iterator[Backend]:
        """Give the engine; it is closed again if nothing comes of it."""
        backend: Backend
        if self.index is not None:
            backend = FullTextIndex(self.index, self.table)
        elif self.gateway is not None:
            if connect is None:
                raise InputError("a gateway needs a line to it", code="missing-parameter")
            backend = connect(self)
        else:
            backend = SearchService(str(self.url))
        try:
            yield backend
        except BaseException:
            backend.close()
            raise


def kept_beside(vocabulary: str | Path) -> Path:
    """Return the file in which a disguise of a vocabulary is kept."""
    return Path(f"{vocabulary}.buckets")


def read_vocabulary(file: str | Path) -> Vocabulary:
    """Return the vocabulary of a file with the columns term and count."""
    from discreet.data.dataset import read

    rows = read(file, types={"term": "nominal"}).arrow(["term", "count"])
    pairs = zip(rows.column("term").to_pylist(), rows.column("count").to_pylist(), strict=True)
    counts: dict[str, float] = {}
    for number, (term, count) in enumerate(pairs, start=1):
        try:
            if term is None or not str(term).strip():
                raise ValueError
            counts[str(term)] = counts.get(str(term), 0.0) + float(count or 0)
        except ValueError:
            raise InputError(
                f"record {number} of {file} has no term, or a count that is no number",
                code="vocabulary-counts",
                hint="write a term and how often it is searched for, such as flu,120",
                file=file,
            ) from None
    return Vocabulary.of(counts)
