"""A server of published tables: it answers questions that tell it nothing."""

from __future__ import annotations

import dataclasses
import functools
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from discreet.errors import InputError
from discreet.protocols.retrieval.batching import Batcher
from discreet.protocols.retrieval.published import STATEMENT, Published, versions
from discreet.protocols.retrieval.rate_limit import RateLimit
from discreet.protocols.retrieval.schemes import FAMILY
from discreet.protocols.retrieval.schemes._base import Bytes, Scheme
from discreet.protocols.retrieval.statement import BLOCKS, ROUNDS, Arithmetic, Part
from discreet.protocols.transport import Message

__all__ = ["LARGEST_BATCH", "Serving", "question_size"]

#: What is asked where a message does not say: one question by the table's own key.
MAIN = "main"
#: Questions in one message.
LARGEST_BATCH = 64
#: Seconds between looks for a new version.
_LOOK = 1.0
#: Seconds for which the same counts are told.
_COUNTED = 60.0
#: Bytes of a hint that one message carries.
PIECE = 8 << 20


def question_size(scheme: Scheme, part: Part, blocks: Sequence[str] = BLOCKS) -> int:
    """Return the bytes of a look-up's questions: one for each block."""
    shapes = part.shapes(scheme.arithmetic)
    return sum(scheme.question_size(shapes[block]) for block in blocks)


#: Blocks in memory, by device and number of their files, for as long as a version uses them.
Memory = weakref.WeakValueDictionary[tuple[int, int], Bytes]


class _Version:
    """One version of one table at work."""

    def __init__(self, table: Published, memory: Memory) -> None:
        self.table = table
        self._memory = memory
        self.statement = table.statement
        self._held: dict[str, Bytes] = {}
        self.signed = (table.folder / STATEMENT).read_bytes()
        self._batchers: dict[tuple[str, str, int], Batcher] = {}
        self._wholes: dict[tuple[str, int], memoryview] = {}
        self._lock = threading.Lock()

    def answer(
        self, scheme: Scheme, part: Part, turn: int, questions: Sequence[bytes]
    ) -> Sequence[bytes | memoryview]:
        if scheme.sends_block:
            return [self._whole(scheme, part, turn)]
        key = (scheme.name, part.name, turn)
        with self._lock:
            if key not in self._batchers:
                self._batchers[key] = Batcher(functools.partial(self._pass, scheme, part, turn))
        return self._batchers[key].answer(questions)

    @property
    def passes(self) -> int:
        """Passes over memory; fewer than questions, where some were answered together."""
        return sum(batcher.passes for batcher in list(self._batchers.values()))

    def _block(self, part: Part, block: str, arithmetic: Arithmetic) -> Bytes:
        """Return a block, held in memory.

        A copy lies in large pages, which are read twice as fast as a mapped file. Versions that share
        a file share the copy.
        """
        file = part.file(block, arithmetic, self.statement.base, self.statement.version)
        if file not in self._held:
            found = (self.table.folder / file).stat()
            key = (found.st_dev, found.st_ino)
            held = self._memory.get(key)
            if held is None:
                held = self._memory[key] = np.array(self.table.map(file))
            self._held[file] = held
        return self._held[file]

    def _whole(self, scheme: Scheme, part: Part, turn: int) -> memoryview:
        """Return the blocks of a round, one after another; everybody is sent the same memory."""
        with self._lock:
            if (part.name, turn) not in self._wholes:
                held = [self._block(part, one, scheme.arithmetic) for one in ROUNDS[turn]]
                whole = held[0] if len(held) == 1 else np.concatenate([b.reshape(-1) for b in held])
                self._wholes[part.name, turn] = whole.reshape(-1).data.toreadonly()
            return self._wholes[part.name, turn]

    def _pass(
        self, scheme: Scheme, part: Part, turn: int, questions: Sequence[bytes]
    ) -> list[bytes]:
        answers = [b"" for _ in questions]
        shapes = part.shapes(scheme.arithmetic)
        start = 0
        for block in ROUNDS[turn]:
            size = scheme.question_size(shapes[block])
            held = self._block(part, block, scheme.arithmetic)
            pieces = [question[start : start + size] for question in questions]
            found = scheme.answer(shapes[block], held, pieces)
            answers = [before + one for before, one in zip(answers, found, strict=True)]
            start += size
        return answers


@dataclasses.dataclass
class Counters:
    """What a server counts: nothing that is asked."""

    messages: int = 0
    questions: int = 0
    refused: int = 0
    seconds: float = 0.0


class Serving:
    """Answers the messages of users about published tables.

    Parameters
    ----------
    tables
        Folders of published tables, by name.
    rate, burst
        Questions per second that are answered, over all users, and how many may come at once.
    rate_each
        Questions per second that one user may ask, told apart by address; half of `rate` by default.
    """

    def __init__(
        self,
        tables: Mapping[str, str | Path],
        *,
        rate: float = 1000.0,
        burst: int = 2000,
        rate_each: float | None = None,
    ) -> None:
        self._folders = {name: Path(folder) for name, folder in tables.items()}
        self._versions: dict[str, dict[int, _Version]] = {name: {} for name in tables}
        self._expiry: dict[tuple[str, int], float] = {}
        self._memory: Memory = weakref.WeakValueDictionary()
        self._looked = 0.0
        self._lock = threading.Lock()
        each = rate / 2 if rate_each is None else rate_each
        self._limit = RateLimit(
            rate=rate, burst=burst, each=each, each_burst=max(burst * each / rate, LARGEST_BATCH)
        )
        self.counters = Counters()
        self._counts: dict[str, Any] = {}
        self._counted = -_COUNTED
        self.look(force=True)
        for name, folder in self._folders.items():
            if not self._versions[name]:
                raise InputError(
                    f"there is no published version of {name!r} in {folder}",
                    code="unknown-version",
                    hint="run `discreet retrieve build` first",
                )

    @property
    def limit(self) -> int:
        """Largest body of a message that can be right."""
        sizes = [
            question_size(scheme(), part)
            for held in self._versions.values()
            for version in held.values()
            for part in version.statement.parts
            for scheme in FAMILY.members().values()
            if scheme.arithmetic in version.statement.arithmetics
        ]
        return LARGEST_BATCH * max(sizes, default=0)

    def close(self) -> None:
        """Let go of all versions."""
        self._versions = {name: {} for name in self._folders}

    def look(self, *, force: bool = False) -> None:
        """Take up new versions, and drop old ones whose time is over."""
        now = time.monotonic()
        with self._lock:
            if not force and now - self._looked < _LOOK:
                return
            self._looked = now
            for name, folder in self._folders.items():
                held = self._versions[name]
                for number in versions(folder):
                    if number not in held and (name, number) not in self._expiry:
                        held[number] = _Version(Published.open(folder, number), self._memory)
                for number in sorted(held)[:-1]:
                    life = held[number].statement.expires
                    if life is not None and (name, number) not in self._expiry:
                        self._expiry[name, number] = now + life
                    if now >= self._expiry.get((name, number), float("inf")):
                        del held[number]

    def answer(self, peer: str, message: Message) -> Message:
        """Answer one message of a user: `peer` is a name or an address."""
        started = time.process_time()
        self.look()
        self.counters.messages += 1
        try:
            handlers = {
                "statement": self._statement,
                "ask": self._ask,
                "hint": self._hint,
                "metrics": self._metrics,
            }
            if message.label not in handlers:
                raise InputError(
                    f"{message.label!r} is not something to ask a server of retrieval",
                    code="message-unexpected",
                )
            return handlers[message.label](peer, message)
        except Exception:
            self.counters.refused += 1
            raise
        finally:
            self.counters.seconds += time.process_time() - started

    def _table(self, message: Message) -> dict[int, _Version]:
        held = self._versions.get(str(message.fields.get("t")))
        if not held:
            raise InputError(
                "this server has no such table",
                code="unknown-table",
                hint="ask its operator which tables it serves",
            )
        return held

    def _version(self, message: Message) -> _Version:
        held = self._table(message)
        number = message.fields.get("v")
        if not isinstance(number, int) or number not in held:
            raise InputError(
                "this server has not, or no longer, this version of the table",
                code="unknown-version",
                hint="ask for the newest statement",
            )
        return held[number]

    def _statement(self, peer: str, message: Message) -> Message:
        held = self._table(message)
        self._limit.pay(peer, 1)
        number = message.fields.get("v", max(held))
        version = held.get(number) if isinstance(number, int) else None
        if version is None:
            return Message("none", {"newest": max(held)})
        return Message("statement", {"newest": max(held)}, version.signed)

    def _ask(self, peer: str, message: Message) -> Message:
        version = self._version(message)
        part = _one(version.statement.parts, message.fields.get("p", MAIN))
        name = message.fields.get("s")
        scheme = FAMILY.get(name if isinstance(name, str) else "")()
        if scheme.arithmetic not in version.statement.arithmetics:
            raise InputError(
                f"the table was not built for {scheme.name}",
                code="scheme-not-built",
                hint="name the scheme under `schemes` of the table and build it again",
            )
        turn = message.fields.get("r")
        if not isinstance(turn, int) or not 0 <= turn < len(ROUNDS):
            raise InputError("a look-up has two messages, 0 and 1", code="retrieval-round")
        size = question_size(scheme, part, ROUNDS[turn])
        many = message.fields.get("n", 1)
        # One answer that is everything answers all questions: more would only cost the server.
        most = 1 if scheme.sends_block else LARGEST_BATCH
        if not isinstance(many, int) or not 1 <= many <= most:
            raise InputError(f"a message holds 1 to {most} questions", code="retrieval-length")
        if len(message.body) != many * size:
            raise InputError(
                f"{many} questions of {size} bytes are {many * size} bytes, not {len(message.body)}",
                code="retrieval-length",
            )
        self._limit.pay(peer, many)
        asked = bytes(message.body)
        questions = [asked[n * size : (n + 1) * size] for n in range(many)]
        answers = version.answer(scheme, part, turn, questions)
        self.counters.questions += many
        newest = max(self._versions[version.statement.table], default=0)
        body = answers[0] if many == 1 else b"".join(answers)
        return Message("answer", {"newest": newest, "root": version.statement.root}, body)

    def _hint(self, peer: str, message: Message) -> Message:
        version = self._version(message)
        file, start = message.fields.get("f"), message.fields.get("o")
        known = isinstance(file, str) and file.endswith((".hint", ".changes"))
        if not known or file not in version.statement.files or not isinstance(start, int):
            raise InputError("there is no such hint", code="unknown-hint")
        size = version.statement.files[cast("str", file)][1]
        if not 0 <= start < size:
            raise InputError("the hint ends before that", code="unknown-hint")
        self._limit.pay(peer, 1)
        held = version.table.map(cast("str", file))
        return Message("hint", {}, held[start : start + PIECE].tobytes())

    def _metrics(self, _peer: str, _message: Message) -> Message:
        """Return what was counted up to the last minute: anybody may ask, and nobody sees who looks up when."""
        with self._lock:
            now = time.monotonic()
            if now - self._counted >= _COUNTED:
                self._counted = now
                held = [one for table in self._versions.values() for one in list(table.values())]
                passes = sum(version.passes for version in held)
                self._counts = {**dataclasses.asdict(self.counters), "passes": passes}
            return Message("metrics", self._counts)


def _one(parts: Sequence[Part], name: Any) -> Part:
    # Any: what a stranger sent.
    for part in parts:
        if part.name == name:
            return part
    raise InputError("the table has no such key", code="unknown-part")
