"""The user's side: look rows up, check everything, show nothing."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from discreet.data.frames import to_library
from discreet.errors import DiscreetError, EngineError, InputError, RefusedError
from discreet.protocols.retrieval.checking import Target, aimed, find, is_proven, proven
from discreet.protocols.retrieval.choosing import chosen
from discreet.protocols.retrieval.entries import decode_value, key_of
from discreet.protocols.retrieval.hints import old_table, packed, packed_size, patched, unpacked
from discreet.protocols.retrieval.schemes._base import Asked, Public, Scheme
from discreet.protocols.retrieval.seen_version import SeenVersion
from discreet.protocols.retrieval.serving import LARGEST_BATCH, MAIN
from discreet.protocols.retrieval.signing import Reader
from discreet.protocols.retrieval.statement import ROUNDS, Part, Statement, changes_file, hint_file
from discreet.protocols.retrieval.trusting import (
    CERTIFICATES,
    PUBLIC,
    PUBLISHED,
    trusted_pins,
    trusted_publisher,
)
from discreet.protocols.transport import Link, Message, connect, request
from discreet.protocols.transport.client import raise_error
from discreet.randomness import Randomness

__all__ = ["Retrieval"]

Found = TypeVar("Found")

#: A statement lists up to 4,096 changed keys for each of its parts.
_STATEMENT_LIMIT = 16 << 20
_PIECE = 8 << 20
#: Seconds after which a connection is made anew: servers end those that are silent for 300.
_IDLE = 240.0
#: Seconds between answers and the next message, for each question and once more: longer than a client
#: takes to check them, which could tell a server what they said.
_PAUSE = 0.002


class Retrieval:
    """Looks rows of a published table up by key; the servers learn that somebody looks, no more.

    Threads may share one: their look-ups follow one another.

    Parameters
    ----------
    servers
        Addresses, `host:port`; two or more that do not collude, or one.
    table
        Name of the table.
    pins
        For each server the pin of its certificate, `sha256:…`. By default each must show one of the
        certificates in `certificates`, no two the same.
    publisher
        The publisher's key, `ed25519:…`: nothing else is believed. By default that in
        `published/TABLE/publisher.pub`.
    scheme
        How to ask; by default what suits the number of servers and the size of the table.
    batch
        Questions in a message of `get_many`; always as many, whatever is asked.
    library
        Which frames come back: pandas, polars or pyarrow.
    seen
        A file that remembers the newest version, so that no older one is believed later either.
    """

    def __init__(
        self,
        servers: Sequence[str],
        *,
        table: str,
        pins: Sequence[str] | None = None,
        publisher: str | None = None,
        scheme: Scheme | str = "auto",
        batch: int = 16,
        library: str = "pandas",
        seen: str | Path | None = None,
        time_limit: float = 60.0,
    ) -> None:
        if not 1 <= batch <= LARGEST_BATCH:
            raise InputError(
                f"a message holds 1 to {LARGEST_BATCH} questions, and batch is {batch}",
                code="retrieval-batch",
                hint="write batch=16",
            )
        trusted = trusted_pins(Path(CERTIFICATES), len(servers)) if pins is None else ()
        if not servers or (pins is not None and len(pins) != len(servers)):
            raise InputError(
                f"{len(servers)} servers have {len(pins or ())} pins",
                code="retrieval-pins",
                hint="give the pin of each server's certificate, in the same order",
            )
        if pins is not None and len(set(pins)) != len(pins):
            raise InputError(
                "two servers have one certificate, so they are one server",
                code="retrieval-pins",
                hint="ask servers of different operators, each with its own certificate",
            )
        self.servers = tuple(servers)
        self.table = table
        #: The pin of each server, once it is known, and pins that others may have.
        self._pins = dict(enumerate(pins or ()))
        self._trusted = trusted
        if publisher is None:
            publisher = trusted_publisher(Path(PUBLISHED) / table / PUBLIC)
        self._reader = Reader(publisher)
        self._wanted = scheme
        self._batch = batch
        self._library = library
        self._time_limit = time_limit
        #: One look-up at a time: a connection carries one question and its answer.
        self._lock = threading.RLock()
        self._links: dict[int, Link] = {}
        #: When the next message may leave.
        self._next = 0.0
        self._used: dict[int, float] = {}
        self._rng = Randomness.secure()
        self._hints: dict[tuple[str, str], _Hint] = {}
        self._state: Statement | None = None
        self._newest = 0
        self._seen = None if seen is None else SeenVersion(Path(seen))
        self.scheme: Scheme
        #: Why the scheme was chosen.
        self.why = ""
        #: Bytes sent and received, over all servers.
        self.sent = self.received = 0

    def get(self, key: Any) -> dict[str, Any] | None:
        """Return the row of a key as a mapping; None if it is proven that there is none.

        Any: of the key's type.
        """

        def found() -> dict[str, Any] | None:
            state, part = self._prepared("main")
            wanted = key_of(key, part.kind, part.column)
            (value,) = self._fetch(part, [wanted], 1)
            return None if value is None else self._row(state, wanted, value)

        return self._alone(found)

    def get_many(self, keys: Sequence[Any]) -> Any:
        """Return the rows of keys as a frame; keys that are proven absent have no row.

        Questions travel in messages of a fixed size, filled up with questions about nothing. Keys in
        a series of pandas or polars or an array of pyarrow bring a frame of that library. Any: keys,
        and a frame of the chosen library.
        """
        if isinstance(keys, (str, bytes)):
            raise InputError(
                f"{keys!r} is one key, and get_many takes several",
                code="retrieval-key",
                hint="write get(key), or get_many([key])",
            )
        library = type(keys).__module__.partition(".")[0]
        listed = keys.to_pylist() if library == "pyarrow" else list(keys)  # type: ignore[attr-defined]  # an array of it

        def found() -> Any:
            state, part = self._prepared("main")
            wanted = [key_of(key, part.kind, part.column) for key in listed]
            values = self._fetch(part, wanted, max(-(-len(wanted) // self._batch), 1) * self._batch)
            rows = [
                self._row(state, key, value)
                for key, value in zip(wanted, values, strict=True)
                if value is not None
            ]
            return self._frame(state, rows, library)

        return self._alone(found)

    def where(self, **condition: Any) -> Any:
        """Return the rows with a value of a secondary key as a frame.

        The number of questions is the same for every value, present or not. Any: the value, and a
        frame of the chosen library.
        """
        if len(condition) != 1:
            raise InputError(
                "one secondary key at a time",
                code="retrieval-where",
                hint="write where(city='TGN')",
            )
        ((column, value),) = condition.items()
        return self._alone(lambda: self._where(column, value))

    def _alone(self, look_up: Callable[[], Found]) -> Found:
        """Look up while no other thread does."""
        with self._lock:
            return _again_if_gone(look_up)

    def _where(self, column: str, value: Any) -> Any:
        state, part = self._prepared(None, column)
        wanted = key_of(value, part.kind, part.column)
        failed: DiscreetError | None = None
        keys: list[Any] = []
        try:
            keys = self._fetch(part, [wanted], 1)[0] or []
        except RefusedError as error:
            # The second round happens all the same: stopping would tell the servers something.
            failed = error
        main = state.part("main")
        many = -(-part.limit // self._batch) * self._batch
        # Time enough for as many keys as there may be.
        self._next = time.monotonic() + _PAUSE * (1 + many)
        values = self._fetch(main, keys, many)
        if failed is not None:
            raise failed
        rows = [self._row(state, key, row) for key, row in zip(keys, values, strict=True) if row]
        place = [name for name, _ in state.columns][1:].index(column)
        if len(rows) != len(keys) or any(row[place] != wanted for row in values):
            raise RefusedError("a secondary key and its rows disagree", code="bad-answer")
        return self._frame(state, rows)

    def close(self) -> None:
        """End the connections."""
        with self._lock:
            for link in self._links.values():
                link.close()
            self._links.clear()

    def __enter__(self) -> Retrieval:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def statement(self) -> Statement:
        """What the publisher says of the version that is asked."""
        with self._lock:
            return self._prepared("main")[0]

    def _row(self, state: Statement, key: Any, value: Sequence[Any]) -> dict[str, Any]:
        return {
            name: decode_value(one, kind)
            for (name, kind), one in zip(state.columns, [key, *value], strict=True)
        }

    def _frame(self, state: Statement, rows: Sequence[Mapping[str, Any]], library: str = "") -> Any:
        types = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
        types |= {"text": pa.string(), "date": pa.date32(), "time": pa.timestamp("us")}
        types["instant"] = pa.timestamp("us", tz="UTC")
        columns = {}
        for name, kind in state.columns:
            columns[name] = pa.array([row[name] for row in rows], types.get(kind))
        known = library in ("pandas", "polars", "pyarrow")
        return to_library(pa.table(columns), library if known else self._library)

    def _link(self, server: int) -> Link:
        now = time.monotonic()
        if now - self._used.get(server, now) > _IDLE:
            self._drop(server)
        self._used[server] = now
        if server not in self._links:
            self._links[server] = self._connected(server)
        return self._links[server]

    def _connected(self, server: int) -> Link:
        """Connect to a server, which must show its certificate or one that no other has shown."""
        known = self._pins.get(server)
        free = [pin for pin in self._trusted if pin not in self._pins.values()]
        address, refused = self.servers[server], None
        for pin in free if known is None else [known]:
            try:
                link = connect(address, pin=pin, peer=address, time_limit=self._time_limit)
            except RefusedError as error:  # another certificate: perhaps the next one
                refused = error
            else:
                self._pins[server] = pin
                return link
        assert refused is not None  # there are as many certificates as servers
        raise refused

    def _request(
        self, server: int, label: str, fields: Mapping[str, Any], *, limit: int
    ) -> Message:
        try:
            return request(self._link(server), label, fields, limit=limit)
        except (EngineError, RefusedError):
            # What was refused half-read would be taken for the beginning of the next answer.
            self._drop(server)
            raise

    def _drop(self, server: int) -> None:
        link = self._links.pop(server, None)
        if link is not None:
            link.abort()
            link.close()

    def _prepared(self, name: str | None, column: str = "") -> tuple[Statement, Part]:
        """Return statement and part, from all servers if there may be a newer version."""
        if self._state is None or self._newest > self._state.version:
            self._agree()
        state = self._state
        assert state is not None
        for part in state.parts:
            if part.name == name or (name is None and part.column == column != state.columns[0][0]):
                return state, part
        known = [part.column for part in state.parts[1:]]
        raise InputError(
            f"{column!r} is not a secondary key of {self.table!r}",
            code="retrieval-where",
            column=column,
            hint=f"choose of {', '.join(known)}" if known else "the table has none; use get(key)",
        )

    def _agree(self) -> None:
        """Take the newest version that all servers have; it must not be older than the last one."""
        offers = [
            self._request(n, "statement", {"t": self.table}, limit=_STATEMENT_LIMIT)
            for n in range(len(self.servers))
        ]
        states = [Statement.read(bytes(one.body), self.table, self._reader) for one in offers]
        common = min(state.version for state in states)
        for number, state in enumerate(states):
            if state.version != common:  # a server that is ahead still has the version before
                fields = {"t": self.table, "v": common}
                held = self._request(number, "statement", fields, limit=_STATEMENT_LIMIT)
                if held.label != "statement":
                    raise _different(self.table)
                states[number] = Statement.read(bytes(held.body), self.table, self._reader)
        if len({state.root for state in states}) != 1:
            raise _different(self.table)
        if any(part.is_old for part in states[0].parts):
            raise old_table(repr(self.table))
        before, root = (0, "") if self._state is None else (self._state.version, self._state.root)
        if self._seen is not None:
            before, root = max((before, root), self._seen.read())
        if common < before:
            raise RefusedError(
                f"the servers offer version {common} of {self.table!r}, older than {before}, which "
                "was there before",
                code="stale-version",
                hint="tell the publisher" + self._forgetting(),
            )
        if common == before and root and states[0].root != root:
            raise RefusedError(
                f"the servers offer another version {common} of {self.table!r} than was there before",
                code="another-table",
                hint="tell the publisher" + self._forgetting(),
            )
        if self._seen is not None:
            self._seen.write(common, states[0].root)
        self._state = states[0]
        self._newest = common
        self.scheme, self.why = chosen(self._wanted, len(self.servers), self._state)

    def _forgetting(self) -> str:
        """Return how a user follows a publisher who began a table anew."""
        return "" if self._seen is None else f"; if it was begun anew, delete {self._seen.file}"

    def _public(self, part: Part, block: str) -> Public | None:
        """Return the hint of a block, fetched once for each version in which the block changed.

        After an update it is patched from the list of changes, if the client holds that of the
        version before; either way it must be the one that the publisher signed.
        """
        if not self.scheme.needs_hint:
            return None
        state = self._state
        assert state is not None
        file, shape = part.file(block, "add", state.base, state.version), part.shapes("add")[block]
        digest, size = state.files[hint_file(file)]
        if size != packed_size(shape):
            raise old_table(repr(self.table))
        held = self._hints.get((part.name, block))
        if held is None or held.digest != digest:
            public = None
            changes = changes_file(file)
            if held is not None and changes in state.files and held.precedes(state):
                public = patched(held.public, shape, self._file(state, changes))
            if public is None or not _is_file(packed(public).tobytes(), digest, size):
                words = np.frombuffer(self._file(state, hint_file(file)), np.uint32)
                public = unpacked(state.seed_of(part, block), words, shape)
            held = _Hint(state.base, state.version, digest, public)
        self._hints[part.name, block] = dataclasses.replace(held, version=state.version)
        return held.public

    def _file(self, state: Statement, name: str) -> bytes:
        """Fetch a file of hints or changes, in pieces; it must be the one that was published."""
        digest, size = state.files[name]
        held = bytearray()
        while len(held) < size:
            fields = {"t": self.table, "v": state.version, "f": name, "o": len(held)}
            piece = self._request(0, "hint", fields, limit=_PIECE).body
            if not piece:
                break
            held += piece
            self.received += len(piece)
        if not _is_file(bytes(held), digest, size):
            raise RefusedError(
                "the hint is not the one that was published",
                code="bad-hint",
                hint="tell the publisher",
            )
        return bytes(held)

    def _fetch(self, part: Part, keys: Sequence[Any], many: int) -> list[Any]:
        """Fetch keys with exactly so many questions; return the proven value of each.

        Two rounds of messages: whether there are such keys, then an entry for each, a decoy's if there
        is none. What a server sees next, and when, never depends on what its answers said or whether they
        were right, and all of them are checked, those to questions about nothing too.
        """
        state = self._state
        assert state is not None
        arithmetic = self.scheme.arithmetic
        fill = [secrets.token_hex(16) for _ in range(many - len(keys))]
        targets = [find(part, key, arithmetic, self._rng) for key in [*keys, *fill]]
        assert part.decoys  # others are refused when the statement is read
        decoys = [find(part, part.decoys[0], arithmetic, self._rng) for _ in targets]
        told = self._turn(state, part, targets, 0)
        standings = [
            is_proven(state, part, target, found.sums, self._reader)
            for target, found in zip(targets, told, strict=True)
        ]
        aims = [
            aimed(target, standing, decoy, arithmetic)
            for target, standing, decoy in zip(targets, standings, decoys, strict=True)
        ]
        told = self._turn(state, part, aims, 1)
        values = [
            proven(
                state, part, target, standing, aim, found.sums["filter"], found.beside, self._reader
            )
            for target, standing, aim, found in zip(targets, standings, aims, told, strict=True)
        ]
        return values[: len(keys)]

    def _turn(
        self, state: Statement, part: Part, targets: Sequence[Target], turn: int
    ) -> list[_Told]:
        """Send the messages of a round, and return what is told for each target."""
        # Who fetches everything fetches it once, for however many keys.
        step = len(targets) if self.scheme.sends_block else min(self._batch, len(targets))
        told: list[_Told] = []
        for start in range(0, len(targets), step):
            told += self._exchange(state, part, targets[start : start + step], turn)
        return told

    def _exchange(
        self, state: Statement, part: Part, targets: Sequence[Target], turn: int
    ) -> list[_Told]:
        """Send one message to each server, and return what their answers tell."""
        blocks = ROUNDS[turn]
        shapes = part.shapes(self.scheme.arithmetic)
        publics = {block: self._public(part, block) for block in blocks}
        asked: list[dict[str, Asked]] = [
            {
                block: self.scheme.ask(
                    shapes[block], target.slots[block], rng=self._rng, public=publics[block]
                )
                for block in blocks
            }
            for target in targets
        ]
        fields = {"t": self.table, "v": state.version, "s": self.scheme.name, "r": turn}
        if part.name != MAIN:
            fields["p"] = part.name
        many = 1 if self.scheme.sends_block else len(targets)
        if many > 1:
            fields["n"] = many
        bodies = [
            b"".join(one[block].questions[server] for one in asked[:many] for block in blocks)
            for server in range(self.scheme.parties)
        ]
        size = sum(self.scheme.answer_size(shapes[block]) for block in blocks)
        self._wait()
        replies = self._all(fields, bodies, size * many)
        self._next = time.monotonic() + _PAUSE * (1 + len(targets))
        found = [_Told() for _ in targets]
        start = 0
        for block in blocks:
            end = start + self.scheme.answer_size(shapes[block])
            file = part.file(block, self.scheme.arithmetic, state.base, state.version)
            is_whole = not self.scheme.sends_block or all(
                _is_file(reply[start:end], *state.files[file]) for reply in replies
            )
            for number, one in enumerate(asked):
                told, first = found[number], number * size if many > 1 else 0
                parts = [reply[first + start : first + end] for reply in replies]
                given = (shapes[block], one[block], parts, publics[block])
                told.sums[block] = self.scheme.read(*given)
                told.beside.update(self.scheme.beside(*given))
                if not (is_whole and self.scheme.is_untouched(*given)):
                    told.sums[block] = bytes(shapes[block].width)  # which nobody signed
            start = end
        return found

    def _wait(self) -> None:
        """Let the same time pass between answers and the next message, whatever they said."""
        time.sleep(max(self._next - time.monotonic(), 0.0))

    def _all(self, fields: Mapping[str, Any], bodies: Sequence[bytes], size: int) -> list[bytes]:
        """Send every server its message, then await all answers."""
        assert self._state is not None
        servers = range(len(bodies))
        failed: DiscreetError | None = None
        replies: list[bytes] = []
        for server in servers:  # connect to all before one learns that something is asked
            self._link(server)
        for server in servers:
            try:
                self._link(server).send(Message("ask", fields, bodies[server]))
            except EngineError as error:
                self._drop(server)
                failed = failed or error
        for server in servers:
            if server not in self._links:
                continue
            try:
                reply = self._links[server].receive(limit=size)
                self.sent += len(bodies[server])
                self.received += len(reply.body)
                if reply.label == "error":
                    raise_error(reply.fields, self.servers[server])
                self._newest = max(self._newest, _whole(reply.fields.get("newest")))
                if reply.fields.get("root") != self._state.root or len(reply.body) != size:
                    failed = failed or _different(self.table)
                replies.append(bytes(reply.body))
            except DiscreetError as error:
                if error.code == "unknown-version":
                    self._newest = max(self._newest, self._state.version + 1)
                elif not isinstance(error, InputError):
                    self._drop(server)
                failed = failed or error
        if failed is not None:
            raise failed
        return replies


@dataclasses.dataclass(frozen=True)
class _Hint:
    """The hint of a block, and of which version it is."""

    base: int
    version: int
    digest: str
    public: Public

    def precedes(self, state: Statement) -> bool:
        """Whether the changes of a version are those since this hint."""
        return (self.base, self.version + 1) == (state.base, state.version)


@dataclasses.dataclass(frozen=True)
class _Told:
    """What answers tell for one target: the sum of each block, and other entries by number."""

    sums: dict[str, bytes] = dataclasses.field(default_factory=dict)
    beside: dict[int, bytes] = dataclasses.field(default_factory=dict)


def _again_if_gone(look_up: Callable[[], Found]) -> Found:
    """Look up, once more if the servers meanwhile dropped the version or the connection.

    That they do depends on nothing that the client wants, and all questions are drawn anew.
    """
    try:
        return look_up()
    except (InputError, EngineError) as error:
        if error.code not in ("unknown-version", "party-gone"):
            raise
    return look_up()


def _is_file(content: bytes, digest: str, size: int) -> bool:
    return len(content) == size and hashlib.sha256(content).hexdigest() == digest


def _whole(value: Any) -> int:
    # Any: what a server sent; a statement is only believed with its signature.
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else 0


def _different(table: str) -> RefusedError:
    return RefusedError(
        f"the servers do not hold the same version of {table!r}",
        code="servers-differ",
        hint="tell the publisher; both servers must serve the same files",
    )
