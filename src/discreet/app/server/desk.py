"""The desk: takes a user's statement, has it answered, and says what the answer is.

Both protocols come here. It knows users and roles, limits their rate, answers what clients ask about
the session and the catalog, and hands everything else to the gateway. It never sees a record.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Protocol

from discreet.data.engines.interruption import Interruption, interruptible
from discreet.errors import EngineError, RefusedError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Attempts", "Rate", "Reply", "Running", "Speaker", "User"]


@dataclasses.dataclass(frozen=True)
class User:
    """Somebody who may ask: how they prove it and what they are."""

    name: str
    roles: tuple[str, ...]
    #: Argon2 hash, for HTTP.
    password: str | None = None
    #: SCRAM-SHA-256 verifier, for PostgreSQL's protocol.
    scram: str | None = None

    def require(self, role: str) -> None:
        """Refuse whoever lacks a role."""
        if role not in self.roles and "curator" not in self.roles:
            raise RefusedError(
                f"this needs the role {role!r}",
                code="role-missing",
                hint="ask the curator for it",
            )


@dataclasses.dataclass(frozen=True)
class Reply:
    """An answer on its way out."""

    table: pa.Table
    #: "exact", "interval", "noisy", "refused" or "session".
    kind: str
    #: What the client should know beside the rows: kind, cost, what is left, error to expect.
    notices: tuple[str, ...] = ()
    tag: str = "SELECT"
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)


class Speaker(Protocol):
    """What a protocol needs of the desk."""

    def ask(
        self, sql: str, user: User, parameters: Sequence[Any] = (), *, errors: bool = False
    ) -> Reply:
        """Answer one statement, or raise; with `errors`, in columns of their own."""

    def recall(
        self, sql: str, user: User, parameters: Sequence[Any] = (), *, errors: bool = False
    ) -> Reply | None:
        """Return an answer that is at hand because it was given before; must not block."""

    def describe(
        self, sql: str, user: User, parameters: int = 0, *, errors: bool = False
    ) -> pa.Schema | None:
        """Return the columns an answer would have, without asking; None if there are none."""

    def parameter_kinds(self, sql: str, user: User, count: int) -> tuple[str, ...]:
        """Return what each parameter has to be: integer, number, text, date, … or a list of them."""

    def budget(self, user: User) -> pa.Table:
        """Return what is left of the user's budgets, by relation."""

    def relations(self, user: User) -> dict[str, dict[str, str]]:
        """Return the relations the user may ask about: columns and their types."""


class Running:
    """One statement in a thread of its own, which can be ended: by its asker, or by a limit."""

    def __init__(
        self,
        pool: Executor,
        speaker: Speaker,
        sql: str,
        user: User,
        parameters: Sequence[Any],
        *,
        errors: bool = False,
    ) -> None:
        self._interruption = Interruption()

        def work() -> Reply:
            with interruptible(self._interruption):
                return speaker.ask(sql, user, tuple(parameters), errors=errors)

        self._future = asyncio.get_running_loop().run_in_executor(pool, work)

    def cancel(self) -> None:
        """End it: what waits for a thread never starts, what runs in the engine is stopped."""
        self._future.cancel()
        self._end()

    def _end(self) -> None:
        # A server elsewhere is told over the network, which must not hold up the others.
        asyncio.get_running_loop().run_in_executor(None, self._interruption.interrupt)

    async def reply(self, seconds: float | None) -> Reply:
        """Return the answer, if there is one within so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                return await self._future
        except TimeoutError:
            self._end()
            raise EngineError(
                "canceling statement due to statement timeout",
                code="statement-timeout",
                hint="ask a simpler question, or the curator for more time",
            ) from None


class Rate:
    """Tokens per user: so many statements a second, with a reserve for bursts.

    A statement of many aggregates and groups costs as many tokens as it is worth.
    """

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second, self._burst = per_second, burst
        self._tokens: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def take(self, user: str) -> None:
        """Use a token, or refuse until there is one again."""
        now = time.monotonic()
        with self._lock:
            tokens, then = self._tokens.get(user, (float(self._burst), now))
            tokens = min(self._burst, tokens + (now - then) * self._per_second)
            if tokens < 1:
                self._tokens[user] = (tokens, now)
                raise RefusedError(
                    "too many statements",
                    code="rate-limited",
                    hint=f"ask at most {self._per_second:g} a second",
                )
            self._tokens[user] = (tokens - 1, now)

    def spend(self, user: str, tokens: float) -> None:
        """Use tokens for what an answer took; the next statement waits until there are some again."""
        with self._lock:
            left, then = self._tokens.get(user, (float(self._burst), time.monotonic()))
            self._tokens[user] = (left - tokens, then)


class Attempts:
    """Failed proofs of who somebody is: after some, the name waits, from that address only.

    Known and unknown names are treated alike, and the memory of failures is bounded.
    """

    def __init__(self, most: int = 10, seconds: float = 60.0, remembered: int = 10_000) -> None:
        self._most, self._seconds, self._remembered = most, seconds, remembered
        self._failures: dict[tuple[str, str], tuple[int, float]] = {}
        self._lock = threading.Lock()

    def allowed(self, host: str, name: str) -> bool:
        """Whether another attempt may be made now."""
        key = host, name[:63]
        with self._lock:
            count, since = self._failures.get(key, (0, 0.0))
            return count < self._most or time.monotonic() - since > self._seconds

    def failed(self, host: str, name: str) -> None:
        """Remember a failure; they are counted from the first one in a minute."""
        now, key = time.monotonic(), (host, name[:63])
        with self._lock:
            count, since = self._failures.pop(key, (0, now))
            if now - since > self._seconds:
                count, since = 0, now
            self._failures[key] = count + 1, since
            while len(self._failures) > self._remembered:
                self._failures.pop(next(iter(self._failures)))

    def succeeded(self, host: str, name: str) -> None:
        """Forget earlier failures."""
        with self._lock:
            self._failures.pop((host, name[:63]), None)
