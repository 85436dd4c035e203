"""What every connection of the PostgreSQL front end shares."""

from __future__ import annotations

import dataclasses
import ssl
from collections.abc import Mapping
from concurrent.futures import Executor

from discreet.app.server.desk import Attempts, Speaker, User
from discreet.app.server.postgres.scram import Strangers

__all__ = ["Setting"]


@dataclasses.dataclass(frozen=True)
class Setting:
    """What every connection shares."""

    speaker: Speaker
    users: Mapping[str, User]
    pool: Executor
    tls: ssl.SSLContext | None = None
    #: Hash of the server's certificate, for channel binding.
    binding: bytes | None = None
    require_tls: bool = True
    #: A statement that takes longer is ended, whatever the client allows; None for no limit.
    statement_seconds: float | None = None
    idle_seconds: float = 3600.0
    #: How long a client may leave an answer unread.
    unread_seconds: float = 60.0
    attempts: Attempts = dataclasses.field(default_factory=Attempts)
    #: What unknown users are shown.
    strangers: Strangers = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        strangers = Strangers(user.scram for user in self.users.values())
        object.__setattr__(self, "strangers", strangers)
