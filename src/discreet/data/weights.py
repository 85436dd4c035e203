"""Sampling weights: each says for how many people a record stands."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.errors import InputError

if TYPE_CHECKING:
    from discreet.data.engines.base import Relation

__all__ = ["require_weights"]


def require_weights(rows: Relation, name: str) -> None:
    """Refuse sampling weights that are negative, infinite or missing."""
    import pyarrow as pa

    from discreet.data.engines import sql

    kind = rows.schema.field(name).type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise _bad_weight(name, "it holds no numbers")
    own = sql.column(name)
    wanted = {
        "n": exp.Count(this=exp.Star()),
        "k": exp.Count(this=own),
        "low": exp.Min(this=sql.double(own.copy())),
        "high": exp.Max(this=sql.double(own.copy())),
    }
    query = sql.select(sql.subquery(rows.query, "t"), [sql.alias(v, n) for n, v in wanted.items()])
    found = rows.engine.fetch(query).to_pylist()[0]
    ends = [value for value in (found["low"], found["high"]) if value is not None]
    wrong = (
        "missing"
        if found["n"] != found["k"]
        else "infinite"
        if not all(map(math.isfinite, ends))
        else "negative"
        if ends and ends[0] < 0
        else None
    )
    if wrong is not None:
        raise _bad_weight(name, f"some are {wrong}")


def _bad_weight(name: str, why: str) -> InputError:
    return InputError(
        f"column {name!r} is said to hold sampling weights, and {why}",
        code="bad-weight",
        hint="a weight says for how many people a record stands: correct it or leave out weight",
        column=name,
    )
