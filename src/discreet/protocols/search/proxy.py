"""A proxy before a search engine: disguised searches go out, the wanted documents come back."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from discreet.protocols.search._base import Disguise, Vocabulary, folded
from discreet.protocols.search.backends import Backend, Document, Found
from discreet.randomness import Randomness

__all__ = ["Proxy"]


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
    """

    def __init__(
        self,
        backend: Backend,
        disguise: Disguise,
        vocabulary: Vocabulary,
        *,
        rng: Randomness | None = None,
    ) -> None:
        self._backend = backend
        self._prepared = disguise.prepare(vocabulary)
        self._rng = rng or Randomness.secure()

    def search(self, term: str) -> Found:
        """Return the documents with a term; nothing is sent for a term that nothing hides."""
        term = term.strip()
        sent = self._prepared.searches(term, self._rng)
        kept: list[Document] = []
        is_found = False
        for terms in sent:
            documents = self._backend.search(terms)
            # Decoys are answered in full, too: only the reader's own machine tells them apart.
            if not is_found and folded(term) in map(folded, terms):
                kept, is_found = self._backend.matching(documents, term), True
        return Found(kept, len(sent), sum(map(len, sent)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._backend.close()
