"""The canonical text of expressions, and the dialect they are read in."""

from __future__ import annotations

import threading

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.generator import Generator

__all__ = ["POSTGRES", "spelled"]

#: Looked up once: by name, each use would make another.
POSTGRES = Dialect.get_or_raise("postgres")


def spelled(tree: exp.Expression) -> str:
    """Return the canonical text of an expression.

    >>> spelled(exp.EQ(this=exp.column("n"), expression=exp.Literal.number(5)))
    'n = 5'
    """
    return _OWN.generator.generate(tree)


class _Own(threading.local):
    """What writes expressions for one thread: it notes things while it writes."""

    def __init__(self) -> None:
        self.generator: Generator = POSTGRES.generator(comments=False)


_OWN = _Own()
