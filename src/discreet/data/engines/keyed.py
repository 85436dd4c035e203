"""Random numbers for each row, computed where the rows are.

A row's numbers are taken from the SHA-256 of a secret of the run and the row's own number
(`__row`): a keyed function of fixed length, so without the secret nobody tells them from drawn ones,
and whoever computes them twice gets the same. The secret is 32 bytes from a source of randomness, is
used for one column of one run, and is kept nowhere. A database that logs its statements with their
values logs it too; whoever reads such a log has the records beside it.
"""

from __future__ import annotations

import math

from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.base import ROW, Engine, Relation
from discreet.randomness import Randomness

__all__ = ["drawn", "mark", "normal", "uniform"]

#: Hexadecimal digits of one uniform number: 52 bits, exact in a double.
_DIGITS = 13
#: Those of a mark that puts rows in an order drawn by lot.
_MARK = 15


def drawn(relation: Relation, names: list[str], rng: Randomness, *, times: int = 1) -> Relation:
    """Return some columns of numbered rows, with texts `__drawn0`, … to take numbers from.

    Each text has its own secret and gives two uniform numbers, one normal one, or one mark.

    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> rows = read(pd.DataFrame({"a": [1, 2, 1]})).numbered().relation
    >>> found = drawn(rows, ["a"], Randomness.seeded(1))
    >>> [len(text) for text in rows.engine.fetch(found)["__drawn0"].to_pylist()]
    [64, 64, 64]
    """
    engine = relation.engine
    relation.require(ROW, *names)
    row = exp.cast(sql.column(ROW), "text")
    texts = [
        sql.alias(
            engine.digest(exp.DPipe(this=sql.text(rng.bytes(32).hex()), expression=row.copy())),
            f"__drawn{place}",
        )
        for place in range(times)
    ]
    kept = [sql.column(name) for name in dict.fromkeys([*names, ROW])]
    return engine.relation(sql.select(sql.subquery(relation.query, "t"), [*kept, *texts]))


def uniform(engine: Engine, text: exp.Expr, place: int = 0) -> exp.Expr:
    """Return a number in the open interval (0, 1), the first or second of a text."""
    digits = sql.call(
        "substr", text, exp.Literal.number(1 + place * _DIGITS), exp.Literal.number(_DIGITS)
    )
    # The middle of each of 2**52 equal steps: neither end is ever drawn.
    middle = exp.Add(
        this=sql.double(engine.from_hexadecimal(_padded(digits))), expression=_exact(0.5)
    )
    return exp.Mul(this=exp.Paren(this=middle), expression=_exact(2.0**-52))


def normal(engine: Engine, text: exp.Expr) -> exp.Expr:
    """Return a normal number with mean 0 and deviation 1 (Box and Muller)."""
    logarithm = sql.call("ln", uniform(engine, text.copy(), 0))
    radius = sql.call("sqrt", exp.Mul(this=_exact(-2.0), expression=logarithm))
    angle = exp.Mul(this=_exact(2 * math.pi), expression=uniform(engine, text.copy(), 1))
    return exp.Mul(this=radius, expression=sql.call("cos", angle))


def mark(engine: Engine, text: exp.Expr) -> exp.Expr:
    """Return a whole number of 60 bits; rows in the order of their marks are in a drawn order."""
    digits = sql.call("substr", text, exp.Literal.number(1), exp.Literal.number(_MARK))
    return sql.bigint(engine.from_hexadecimal(digits))


def _padded(digits: exp.Expr) -> exp.Expr:
    """Return digits with as many zeros before them as engines expect."""
    return exp.DPipe(this=sql.text("0" * (_MARK - _DIGITS)), expression=digits)


def _exact(value: float) -> exp.Expr:
    return sql.double(sql.number(value))
