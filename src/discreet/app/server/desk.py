"""The desk: takes a user's statement, has it answered, and says what the answer is.

Both protocols come here. It knows users and roles, limits their rate, answers what clients ask about
the session and the catalog, and hands everything else to the gateway. It never sees a record.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from discreet.errors import RefusedError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Rate", "Reply", "Speaker", "User"]


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

    def ask(self, sql: str, user: User, parameters: Sequence[Any] = ()) -> Reply:
        """Answer one statement, or raise."""

    def describe(self, sql: str, user: User, parameters: Sequence[Any] = ()) -> pa.Schema | None:
        """Return the columns an answer would have, without asking; None if that cannot be told."""

    def relations(self, user: User) -> dict[str, dict[str, str]]:
        """Return the relations the user may ask about: columns and their types."""


class Rate:
    """Tokens per user: so many statements a second, with a reserve for bursts."""

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
