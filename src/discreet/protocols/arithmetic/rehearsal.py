"""All three nodes in one process, for tests and examples; nothing is hidden from anybody there."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from discreet.protocols.arithmetic.node import Node
from discreet.randomness import Randomness

__all__ = ["QueueRing", "rehearse"]

Result = TypeVar("Result")
_PATIENCE = 60.0


class QueueRing:
    """Neighbours reached through queues; keeps what it received, for attacks on one node's view."""

    def __init__(self, index: int, queues: dict[tuple[int, int], queue.Queue[bytes]]) -> None:
        self._index = index
        self._queues = queues
        self.view: list[tuple[str, bytes]] = []
        self.sent = 0

    def back(self, label: str, body: bytes) -> bytes:
        """Send to the node before, receive from the node after."""
        return self._pass(label, body, -1)

    def forward(self, label: str, body: bytes) -> bytes:
        """Send to the node after, receive from the node before."""
        return self._pass(label, body, 1)

    def _pass(self, label: str, body: bytes, step: int) -> bytes:
        i = self._index
        self._queues[i, (i + step) % 3].put(body)
        found = self._queues[(i - step) % 3, i].get(timeout=_PATIENCE)
        self.view.append((label, found))
        self.sent += len(body)
        return found


def rehearse(
    work: Callable[[Node], Result], *, rng: Randomness | None = None
) -> tuple[list[Result], list[QueueRing]]:
    """Run the same work at three nodes; return their results and rings.

    Examples
    --------
    >>> from discreet.protocols.arithmetic import less, split
    >>> a = split([1, 5], rng=Randomness.secure())
    >>> b = split([3, -5], rng=Randomness.secure())
    >>> def work(node):
    ...     return node.open(numbers(node, less(node, a[node.index], b[node.index])), "flags")
    >>> from discreet.protocols.arithmetic.comparison import numbers
    >>> results, rings = rehearse(work)
    >>> [found.tolist() for found in results], len(rings[0].view)
    ([[1, 0], [1, 0], [1, 0]], 12)
    """
    queues: dict[tuple[int, int], queue.Queue[bytes]] = {
        (i, j): queue.Queue() for i in range(3) for j in range(3)
    }
    rings = [QueueRing(i, queues) for i in range(3)]
    sources = [(rng or Randomness.secure()).spawn() for _ in range(3)]
    results: list[Any] = [None] * 3
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            results[index] = work(Node(index, rings[index], rng=sources[index]))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_PATIENCE)
    if errors:
        raise errors[0]
    return results, rings
