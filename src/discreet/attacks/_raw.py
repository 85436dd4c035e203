"""The raw database as a target: what happens without a guard."""

from __future__ import annotations

import dataclasses
from typing import Any

import sqlglot
from sqlglot import exp

from discreet.data.dataset import Dataset

__all__ = ["RawDatabase"]


@dataclasses.dataclass(frozen=True)
class _Exact:
    kind: str
    table: Any


@dataclasses.dataclass(frozen=True)
class RawDatabase:
    """Answers everything exactly.

    Examples
    --------
    >>> from discreet.demo import salaries
    >>> RawDatabase(salaries()).ask("SELECT COUNT(*) AS n FROM people", user="x").table.to_pylist()
    [{'n': 15}]
    """

    dataset: Dataset

    def ask(self, sql: str, *, user: str = "") -> _Exact:
        """Run the statement on the records."""
        tree = sqlglot.parse_one(sql, dialect="postgres")
        assert isinstance(tree, exp.Query)
        return _Exact("exact", self.dataset.aggregate(tree))
