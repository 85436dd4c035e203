"""Questions that arrive together are answered in one pass over memory."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence

__all__ = ["Batcher"]


@dataclasses.dataclass
class _Waiting:
    questions: Sequence[bytes]
    done: threading.Event
    answers: list[bytes] | None = None


class Batcher:
    """Collects questions while one pass runs, and answers all of them in the next.

    Whoever finds nobody at work does the work, for all that wait.

    Examples
    --------
    >>> batcher = Batcher(lambda questions: [question.upper() for question in questions])
    >>> batcher.answer([b"a", b"b"])
    [b'A', b'B']
    """

    def __init__(self, answer: Callable[[Sequence[bytes]], list[bytes]], most: int = 64) -> None:
        self._answer = answer
        self._most = most
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: list[_Waiting] = []
        #: Passes over memory so far.
        self.passes = 0

    def answer(self, questions: Sequence[bytes]) -> list[bytes]:
        """Return the answers to some questions, perhaps made together with those of others."""
        mine = _Waiting(questions, threading.Event())
        with self._lock:
            self._waiting.append(mine)
        with self._turn:
            if not mine.done.is_set():
                self._work()
        mine.done.wait()
        if mine.answers is None:
            # Somebody else's question failed in the same pass: this one alone.
            return self._answer(questions)
        return mine.answers

    def _work(self) -> None:
        with self._lock:
            taken: list[_Waiting] = []
            size = 0
            while self._waiting and (
                not taken or size + len(self._waiting[0].questions) <= self._most
            ):
                taken.append(self._waiting.pop(0))
                size += len(taken[-1].questions)
        self.passes += 1
        try:
            answers = self._answer([question for one in taken for question in one.questions])
            for one in taken:
                one.answers, answers = answers[: len(one.questions)], answers[len(one.questions) :]
        finally:
            for one in taken:
                one.done.set()
