"""A proxy before a search engine: disguised searches go out, the wanted documents come back."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from discreet.errors import DiscreetError
from discreet.protocols.search._base import Disguise, Vocabulary, folded
from discreet.protocols.search.backends import Backend, Document, Found
from discreet.protocols.search.terms import require_text
from discreet.randomness import Randomness

__all__ = ["Proxy"]

#: Made searches that wait to be sent, at most.
_PLANNED = 10_000


class Proxy:
    """Searches that an engine sees in disguise.

    Parameters
    ----------
    backend
        The engine.
    disguise
        A disguise that needs no others: goopir, or track-me-not.
    vocabulary
        The terms that can be searched for, with how often people do.
    kept
        A file that keeps the disguise over changes of the vocabulary.
    """

    def __init__(
        self,
        backend: Backend,
        disguise: Disguise,
        vocabulary: Vocabulary,
        *,
        kept: Path | None = None,
        rng: Randomness | None = None,
    ) -> None:
        self._backend = backend
        self._prepared = (
            disguise.prepare(vocabulary) if kept is None else disguise.resume(vocabulary, kept)
        )
        self._rng = rng or Randomness.secure()
        self._later: list[tuple[float, tuple[str, ...]]] = []
        self._wake = threading.Condition()
        self._closed = False
        self._sender: threading.Thread | None = None

    def search(self, term: str) -> Found:
        """Return the documents with a term; nothing is sent for a term that nothing hides."""
        term = require_text(term).strip()
        sent = self._prepared.searches(term, self._rng)
        self._follow()
        kept: list[Document] = []
        is_found = False
        for terms in sent:
            documents = self._backend.search(terms)
            # Decoys are answered in full, too: only the reader's own machine tells them apart.
            if not is_found and folded(term) in map(folded, terms):
                kept, is_found = self._backend.matching(documents, term), True
        return Found(kept, len(sent), sum(map(len, sent)))

    def _follow(self) -> None:
        """Plan the made searches that follow a real one."""
        now = time.monotonic()
        planned = [(now + delay, terms) for delay, terms in self._prepared.later(self._rng)]
        if not planned:
            return
        with self._wake:
            # An hour of very many searches must not fill the memory.
            self._later = sorted([*self._later, *planned])[:_PLANNED]
            if self._sender is None:
                self._sender = threading.Thread(target=self._send, name="made", daemon=True)
                self._sender.start()
            self._wake.notify()

    def _send(self) -> None:
        while True:
            with self._wake:
                if self._closed:
                    return
                wait = self._later[0][0] - time.monotonic() if self._later else None
                if wait is None or wait > 0:
                    self._wake.wait(wait)
                    continue
                _, terms = self._later.pop(0)
            with contextlib.suppress(DiscreetError):
                self._backend.search(terms)  # nobody waits for what it finds

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._wake:
            self._closed = True
            self._wake.notify()
        if self._sender is not None:
            self._sender.join()
        self._backend.close()
