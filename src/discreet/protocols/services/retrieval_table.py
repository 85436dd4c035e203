"""A table for private retrieval, as a policy declares it."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from discreet.data.dataset import Dataset
from discreet.data.file_names import no_file_name
from discreet.data.service import Service
from discreet.data.source import Source
from discreet.errors import InputError
from discreet.protocols.retrieval.asking import Retrieval
from discreet.protocols.retrieval.building import chosen_columns, require_publishable
from discreet.protocols.retrieval.choosing import asked_servers
from discreet.protocols.retrieval.published import versions
from discreet.protocols.retrieval.records import require_width
from discreet.protocols.retrieval.serving import Serving
from discreet.protocols.retrieval.table import RetrievalTable
from discreet.protocols.retrieval.trusting import (
    CERTIFICATES,
    KEY,
    PUBLIC,
    PUBLISHED,
    publisher_of,
    require_kept_back,
    trusted_publisher,
)
from discreet.protocols.transport import Identity, Server, answer_requests
from discreet.protocols.transport.client import address_of
from discreet.protocols.transport.identity import certificate_pin, read_certificate
from discreet.registry import names_of, parameter

__all__ = ["RetrievalTableService", "serve_tables"]

#: As many as any scheme asks.
_MOST_SERVERS = 5
#: The newest version that a user of this folder has seen.
_SEEN = "seen-version.txt"


@dataclasses.dataclass(frozen=True)
class RetrievalTableService(Service):
    """Publishes rows that users look up by key while servers learn nothing but the table's size.

    Examples
    --------
    >>> RetrievalTableService(key="id", columns=("name",)).schemes
    ('dpf',)
    """

    name: ClassVar[str] = "retrieval-table"
    reference: ClassVar[str] = "Chor, Goldreich, Kushilevitz and Sudan (1995), FOCS"
    section: ClassVar[str] = "retrieval"

    key: str = parameter(help="the column that rows are looked up by; its values are unique")
    columns: tuple[str, ...] = parameter(
        (), help="what is published besides the key; nothing else leaves"
    )
    secondary: dict[str, int] = parameter(
        {}, help="further columns to look up by, and how many rows a value may have at most"
    )
    schemes: tuple[str, ...] = parameter(
        ("dpf",), help="for which schemes the table is built", choices=names_of("scheme")
    )
    layout: Literal["balanced", "small-hint", "small-query"] = parameter(
        "balanced", help="for simple-pir, which of hint and question is kept small"
    )
    publishable: bool = parameter(
        False, help="vouch that confidential columns among them may be published"
    )
    width: int | None = parameter(None, help="bytes of a row; what the longest needs", low=64)
    expires: float | None = parameter(
        600.0, help="seconds that an old version is served beside a newer one", low=0
    )
    servers: dict[str, str] = parameter({}, help="servers by name, each with its host:port")
    folder: str = parameter(PUBLISHED, help="where versions are written", file="ledger")
    publisher: str = parameter(
        KEY, help="key file that signs; made by the first build", file="ledger"
    )
    certificates: str = parameter(
        CERTIFICATES, help="folder with a certificate for each server", file="ledger"
    )
    rate: float = parameter(1000.0, help="questions per second that a server answers", above=0)
    rate_each: float | None = parameter(
        None, help="questions per second that one address may ask; half of `rate`", above=0
    )

    @classmethod
    def examples(cls, **offered: Any) -> tuple[Self, ...]:
        """Return one that the people of the laws suffice for. Any: as in every family."""
        key = offered.get("key", "name")  # identifying, so that it is vouched for
        return (cls(key=key, columns=("region", "job"), publishable=True),)

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_servers(self.servers)
        if self.width is not None:
            require_width(self.width)
        for option in ("rate", "rate_each", "expires"):
            value = getattr(self, option)
            if value is not None and not math.isfinite(value):
                raise InputError(
                    f"{option} must be a number, found {value}",
                    code="parameter-range",
                    parameter=option,
                    hint=f"write a number such as {option}: 1000",
                )

    def further_files(self, name: str) -> Iterable[Path]:
        """Return the versions of a table, what lies beside them, and the keys of the servers."""
        place = self.place("", name)
        yield from (place, *place.glob("*"), *place.glob("v*/*"))
        for server in self.servers:
            yield from _identity_files(Path(self.certificates), server)

    def check(self, dataset: Dataset) -> None:
        """Raise an error if columns are missing, or may not be published."""
        for secret in (self.publisher, self.certificates):
            require_kept_back(secret, self.folder)
        names = chosen_columns(dataset, self.key, self.columns, self.secondary)
        require_publishable(dataset, names, publishable=self.publishable)
        if len(set(self.servers.values())) != len(self.servers):
            raise InputError(
                "two servers have one address, so they are one server",
                code="retrieval-servers",
                hint="give each server of `servers:` its own host:port",
            )

    def build(self, dataset: Dataset, folder: str | Path = ".", *, name: str) -> RetrievalTable:
        """Publish the records under the next version; the first time, write the publisher's key."""
        self.check(dataset)
        return RetrievalTable.build(
            dataset,
            key=self.key,
            columns=self.columns,
            secondary=self.secondary,
            schemes=self.schemes,
            layout=self.layout,
            publishable=self.publishable,
            width=self.width,
            expires=self.expires,
            folder=self.place(folder, name),
            publisher=publisher_of(Path(folder) / self.publisher),
            name=name,
        )

    def update(
        self,
        source: Source,
        changed: Path | None,
        deleted: tuple[str, ...],
        folder: str | Path = ".",
        *,
        name: str,
    ) -> RetrievalTable:
        """Publish changed rows and deleted keys under the next version.

        Columns that may not be published, or no longer, do not leave with the changes either.
        """
        table = RetrievalTable.open(self.place(folder, name))
        published = [column for column, _ in table.statement.columns]
        if (published[0], set(published)) != (self.key, {self.key, *self.columns}):
            raise InputError(
                f"the table has the columns {', '.join(published)}, and the policy names "
                + ", ".join(dict.fromkeys((self.key, *self.columns))),
                code="retrieval-columns",
                hint="build the table again: discreet retrieve build",
            )
        rows = None
        if changed is not None:
            rows = source.open_like(changed, published)
            self.check(rows)
        return table.update(
            rows,
            deleted=deleted,
            publisher=Path(folder) / self.publisher,
            publishable=self.publishable,
        )

    def open(self, dataset: Dataset, folder: str | Path = ".") -> Serving:
        """Return what answers questions about the table, which is built if it was not."""
        place = self.place(folder, dataset.name)
        if not versions(place):
            self.build(dataset, folder, name=dataset.name)
        return Serving({dataset.name: place}, rate=self.rate, rate_each=self.rate_each)

    def place(self, folder: str | Path, name: str) -> Path:
        """Return where the versions of the table are."""
        return Path(folder) / self.folder / name

    @contextlib.contextmanager
    def asking(
        self, folder: str | Path = ".", *, name: str, scheme: str = "auto", library: str = "pandas"
    ) -> Iterator[Retrieval]:
        """Give what looks rows up at the servers that the policy names."""
        if not self.servers:
            raise InputError(
                f"the table {name!r} names no servers",
                code="retrieval-servers",
                hint="write servers: {a: 'localhost:7001', b: 'localhost:7002'}",
            )
        # A scheme for one server asks the first: it need not trust any of them.
        chosen = list(self.servers)[: asked_servers(scheme, len(self.servers))]
        pins = [
            certificate_pin(
                read_certificate(_identity_files(Path(folder) / self.certificates, server)[0])
            )
            for server in chosen
        ]
        public = self.place(folder, name) / PUBLIC
        with Retrieval(
            [self.servers[server] for server in chosen],
            table=name,
            pins=pins,
            publisher=trusted_publisher(public),
            scheme=scheme,
            library=library,
            seen=public.with_name(_SEEN),
        ) as retrieval:
            yield retrieval


def _identity_files(folder: Path, server: str) -> tuple[Path, Path]:
    """Return where certificate and key of a server are."""
    return folder / f"{server}.crt", folder / f"{server}.key"


def _require_servers(servers: Mapping[str, str]) -> None:
    """Refuse names that are no names of files, addresses that are none, and too many servers."""
    for server, address in servers.items():
        wrong = no_file_name(server)
        if wrong:
            raise InputError(
                f"server {wrong}",
                code="retrieval-servers",
                hint="the certificate of a server is a file of its name: write a: 'localhost:7001'",
            )
        address_of(address)
    if len(servers) > _MOST_SERVERS:
        raise InputError(
            f"{len(servers)} servers are named, and at most {_MOST_SERVERS} can be asked",
            code="retrieval-servers",
            hint=f"name up to {_MOST_SERVERS} that do not collude",
        )


def serve_tables(
    tables: dict[str, RetrievalTableService], server: str, folder: str | Path = "."
) -> tuple[Server, Identity]:
    """Start a server of all tables that name it; its certificate is made the first time."""
    mine = {name: table for name, table in tables.items() if server in table.servers}
    addresses = {table.servers[server] for table in mine.values()}
    if len(addresses) != 1:
        known = sorted({one for table in tables.values() for one in table.servers})
        raise InputError(
            f"the server {server!r} has {'several addresses' if addresses else 'no table'}",
            code="retrieval-servers",
            hint=f"servers of this policy: {', '.join(known) or 'none'}",
        )
    first = next(iter(mine.values()))
    place = Path(folder) / first.certificates
    files = _identity_files(place, server)
    identity = Identity.read(*files) if files[0].exists() else Identity.new(place, server)
    serving = Serving(
        {name: table.place(folder, name) for name, table in mine.items()},
        rate=first.rate,
        rate_each=first.rate_each,
    )
    started = Server(
        addresses.pop(),
        identity=identity,
        clients=None,
        handle=answer_requests(serving.answer, limit=serving.limit),
    )
    return started, identity
