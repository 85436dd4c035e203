"""Memory spaces that peers share, as the member who keeps them sees them: sealed posts by number.

The keeper of a space is not one of its users. It knows who posts, reads and claims, and cannot open
a post; a user opens every post, and is not told who wrote it.
"""

from __future__ import annotations

import dataclasses
import secrets
import threading
import time
from collections.abc import Mapping
from typing import Any

from discreet.errors import RefusedError
from discreet.protocols.transport import Message

__all__ = ["SharedSpaces", "keeper_of"]

#: Posts that one user may have in a space; more would fill the keeper's memory.
_POSTS = 16
_SEARCH = 1 << 14
#: Seconds after which a search that somebody claimed may be claimed by another user.
_CLAIMED = 30.0
#: Seconds after which a post is forgotten, whatever became of it.
_KEPT = 600.0


def keeper_of(space: int, users: tuple[int, ...], members: int) -> int:
    """Return which member keeps a space: the first from its own number on that does not use it.

    >>> keeper_of(0, (0, 1, 3), 7)
    2
    """
    return next(n % members for n in range(space, space + members) if n % members not in users)


@dataclasses.dataclass
class _Post:
    author: str
    sealed: bytes
    posted: float
    reader: str | None = None
    claimed: float = 0.0
    is_answer: bool = False


class SharedSpaces:
    """The spaces that one member keeps for others.

    Parameters
    ----------
    users
        Names of the users of each space that is kept.
    most
        Bytes that a sealed answer may have.
    """

    def __init__(self, users: Mapping[int, frozenset[str]], *, most: int) -> None:
        self._users = dict(users)
        self._most = most
        self._posts: dict[int, dict[str, _Post]] = {space: {} for space in users}
        self._lock = threading.Lock()

    def answer(self, peer: str, message: Message) -> Message:
        """Do what a user of a space asks: post, read, claim, reply, drop."""
        space = message.fields.get("space")
        step = {
            "post": self._post,
            "read": self._read,
            "claim": self._claim,
            "reply": self._reply,
            "drop": self._drop,
        }.get(message.label)
        if step is None or not isinstance(space, int) or peer not in self._users.get(space, ()):
            raise RefusedError("this space is not yours", code="message-malformed")
        with self._lock:
            posts = self._posts[space]
            now = time.monotonic()
            for number in [n for n, post in posts.items() if now - post.posted > _KEPT]:
                del posts[number]
            return step(peer, posts, message)

    def _post(self, peer: str, posts: dict[str, _Post], message: Message) -> Message:
        if len(message.body) > _SEARCH or sum(p.author == peer for p in posts.values()) >= _POSTS:
            raise RefusedError("the space takes no more of your posts", code="space-full")
        number = secrets.token_hex(16)
        posts[number] = _Post(peer, bytes(message.body), time.monotonic())
        return Message("posted", {"number": number})

    def _read(self, peer: str, posts: dict[str, _Post], message: Message) -> Message:
        """Return the searches nobody claimed yet, and the answers to the reader's own searches."""
        now = time.monotonic()
        shown = [
            (number, post)
            for number, post in posts.items()
            if (post.author == peer if post.is_answer else now - post.claimed > _CLAIMED)
        ]
        listed = [[number, post.is_answer, len(post.sealed)] for number, post in shown]
        return Message("posts", {"posts": listed}, b"".join(post.sealed for _, post in shown))

    def _claim(self, peer: str, posts: dict[str, _Post], message: Message) -> Message:
        post, now = posts.get(_number(message)), time.monotonic()
        granted = post is not None and not post.is_answer and now - post.claimed > _CLAIMED
        if post is not None and granted:
            post.reader, post.claimed = peer, now
        return Message("claimed", {"granted": granted})

    def _reply(self, peer: str, posts: dict[str, _Post], message: Message) -> Message:
        post = posts.get(_number(message))
        if post is None or post.reader != peer or post.is_answer or len(message.body) > self._most:
            raise RefusedError("there is no such search of yours to answer", code="bad-post")
        post.sealed, post.is_answer = bytes(message.body), True
        return Message("replied", {})

    def _drop(self, peer: str, posts: dict[str, _Post], message: Message) -> Message:
        post = posts.get(_number(message))
        if post is not None and post.author == peer:
            del posts[_number(message)]
        return Message("dropped", {})


def _number(message: Message) -> str:
    # Any: a stranger's field.
    number: Any = message.fields.get("number")
    if not isinstance(number, str) or len(number) != 32:
        raise RefusedError("a post is named by its number", code="message-malformed")
    return number
