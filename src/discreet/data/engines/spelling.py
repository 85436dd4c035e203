"""How an engine spells the names of columns that it cannot take as they are.

PostgreSQL cuts names after 63 bytes, DuckDB takes `Age` and `age` for the same name, no engine
takes an empty one. Such names are spelt differently inside the engine and come back as they were.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from discreet.errors import InputError

__all__ = ["Spelling", "require_distinct"]


class Spelling:
    """A one-to-one map between names and what an engine calls them.

    >>> spell = Spelling(limit=63)
    >>> len(spell("x" * 200))
    57
    >>> spell.back(spell("x" * 200)) == "x" * 200
    True
    >>> spell = Spelling(fold_case=True)
    >>> spell("Age"), spell("age") == "age"
    ('Age', False)
    """

    def __init__(self, *, limit: int | None = None, fold_case: bool = False) -> None:
        self._limit = limit
        self._fold = fold_case
        self._taken: dict[str, str] = {}
        self._spelt: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        """Return the engine's spelling of a name."""
        if name in self._spelt:
            return self._spelt[name]
        folded = name.casefold() if self._fold else name
        too_long = self._limit is not None and len(name.encode()) > self._limit
        clash = self._fold and self._taken.get(folded, name) != name
        spelt = _coined(name) if too_long or clash or not name else name
        self._taken.setdefault(folded, name)
        self._spelt[name], self._back[spelt] = spelt, name
        return spelt

    def back(self, spelt: str) -> str:
        """Return the name that an engine's spelling stands for."""
        return self._back.get(spelt, spelt)


def _coined(name: str) -> str:
    # A prefix for people who read the SQL, a digest that tells names apart.
    start = name.encode()[:40].decode(errors="ignore")
    return f"{start}~{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:16]}"


def require_distinct(names: Sequence[str], *, file: str | Path | None = None) -> None:
    """Refuse two columns of one name."""
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise InputError(
            "two columns have the name " + ", ".join(repr(name) for name in twice),
            code="duplicate-columns",
            hint="give each column its own name",
            file=file,
            column=twice[0],
        )
