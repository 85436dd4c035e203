"""A gateway that refuses differences, but remembers them by name and ledger: what not to build."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

from discreet.data.dataset import read

__all__ = ["Forgetful"]

#: Fewest records that two answers may differ in.
_FEWEST = 3


@dataclasses.dataclass(frozen=True)
class _Answer:
    kind: str
    table: Any = None


class Forgetful:
    """Answers sums exactly unless two of them differ in few records; by the name of the relation.

    It looks at nothing but the ledger it is given: not at the records that earlier answers were
    about, not at where they came from, not at whether the ledger is the newest.
    """

    def __init__(self, source: Path, *, name: str, ledger: Path, head: Path) -> None:
        self._dataset = read(source, name=name)
        self._ledger, self._name = ledger, name
        kept = json.loads(ledger.read_text(encoding="utf-8")) if ledger.exists() else {}
        self._history: dict[str, dict[str, list[int]]] = kept

    def ask(self, sql: str, *, user: str = "") -> _Answer:
        """Answer a sum."""
        tree = sqlglot.parse_one(sql, dialect="postgres")
        assert isinstance(tree, exp.Query)
        where = tree.args["where"].this
        chosen = self._dataset.numbered().where(where).arrow(["__row"]).column(0).to_pylist()
        answered = self._history.setdefault(self._name, {})
        for question, earlier in answered.items():
            # The same question again tells nothing new, if the records are the same.
            if question != sql and 0 < len(set(earlier) ^ set(chosen)) < _FEWEST:
                return _Answer("refused")
        answered[sql] = chosen
        self._ledger.write_text(json.dumps(self._history), encoding="utf-8")
        return _Answer("exact", self._dataset.aggregate(tree))

    def close(self) -> None:
        """There is nothing to let go of."""
