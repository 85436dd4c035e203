"""A statistical gateway as a search engine: one statement asks for all terms of a bucket."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from discreet.errors import InputError
from discreet.protocols.search.backends import Backend, Document

__all__ = ["Ask", "StatisticalGateway"]

#: Asks a gateway a statement with parameters, and returns the rows of its answer.
Ask = Callable[[str, Sequence[str]], list[Document]]
_TERMS = "{terms}"


class StatisticalGateway(Backend):
    """A gateway of this product, which answers statistics by groups.

    Parameters
    ----------
    ask
        Asks the gateway.
    statement
        With `{terms}` where the terms belong; its first column must be what they are compared with,
        such as "SELECT drug, COUNT(*) AS n FROM people WHERE drug IN ({terms}) GROUP BY drug".
    close
        Hangs up.

    Examples
    --------
    >>> counts = {"flu": 40, "gout": 7}
    >>> def ask(statement, terms):
    ...     return [{"illness": term, "n": counts[term]} for term in terms]
    >>> gateway = StatisticalGateway(
    ...     ask,
    ...     "SELECT illness, COUNT(*) AS n FROM people WHERE illness IN ({terms}) GROUP BY illness",
    ... )
    >>> gateway.matching(gateway.search(["flu", "gout"]), "gout")
    [{'illness': 'gout', 'n': 7}]
    """

    def __init__(
        self, ask: Ask, statement: str, *, close: Callable[[], None] | None = None
    ) -> None:
        if statement.count(_TERMS) != 1:
            raise InputError(
                "the statement does not say where the terms belong",
                code="missing-terms",
                hint="write WHERE column IN ({terms}), once, and GROUP BY column",
            )
        self._ask, self._statement, self._close = ask, statement, close
        # A line to a gateway carries one question at a time; the proxy is asked by several threads.
        self._line = threading.Lock()

    def search(self, terms: Sequence[str]) -> list[Document]:
        """Return one row for each term that the gateway tells something of."""
        places = ", ".join(f"${number}" for number in range(1, len(terms) + 1))
        with self._line:
            return self._ask(self._statement.replace(_TERMS, places), terms)

    def matching(self, documents: Sequence[Document], term: str) -> list[Document]:
        """Return the rows of a term: those whose first column it is."""
        return [row for row in documents if next(iter(row.values()), None) == term]

    def close(self) -> None:
        """Hang up."""
        if self._close is not None:
            self._close()
