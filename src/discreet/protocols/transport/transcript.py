"""What passed between a party and the others, as digests: evidence that discloses nothing."""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from collections.abc import Mapping
from typing import Any

__all__ = ["Channel", "Transcript"]


class Channel:
    """The messages of one direction to or from one party: number, bytes, chained digest."""

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self._digest = hashlib.sha256()

    def add(self, *parts: Any) -> None:
        """Take in one message. Any: whatever has a buffer."""
        for part in parts:
            self._digest.update(part)
            self.bytes += len(part)
        self.messages += 1

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {"messages": self.messages, "bytes": self.bytes, "digest": self._digest.hexdigest()}


@dataclasses.dataclass(frozen=True, eq=False)
class Transcript:
    """Everything one party sent and received in one session, and what was opened to it.

    Two parties agree when what one says it sent has the digest of what the other says it received.

    Examples
    --------
    >>> a, b = Transcript("a"), Transcript("b")
    >>> a.sent("b").add(b"message")
    >>> b.received("a").add(b"message")
    >>> a.to_dict()["sent"]["b"] == b.to_dict()["received"]["a"]
    True
    """

    party: str
    rounds: list[str] = dataclasses.field(default_factory=list)
    opened: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    _channels: dict[tuple[str, str], Channel] = dataclasses.field(default_factory=dict)
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def sent(self, peer: str) -> Channel:
        """Return the direction to a party."""
        return self._channel("sent", peer)

    def received(self, peer: str) -> Channel:
        """Return the direction from a party."""
        return self._channel("received", peer)

    def _channel(self, direction: str, peer: str) -> Channel:
        with self._lock:
            return self._channels.setdefault((direction, peer), Channel())

    def open(self, meaning: str, content: bytes, **facts: Any) -> None:
        """Note that something was opened: its meaning, its size and its digest."""
        digest = hashlib.sha256(content).hexdigest()
        self.opened.append({"meaning": meaning, "bytes": len(content), "digest": digest, **facts})

    def to_dict(self) -> dict[str, Any]:
        """Return the transcript as plain data, parties in order."""
        ways: Mapping[str, dict[str, Any]] = {"sent": {}, "received": {}}
        for (direction, peer), channel in sorted(self._channels.items()):
            ways[direction][peer] = channel.to_dict()
        return {
            "party": self.party,
            **ways,
            "rounds": len(self.rounds),
            "opened": list(self.opened),
        }
