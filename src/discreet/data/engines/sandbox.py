"""A database in memory for SQL that is not trusted, over rows that may be shown.

It holds nothing but the tables it is given, reads no file, loads no extension, writes nothing to
disk, and ends a statement that takes too long or too much memory. Each statement gets a database
of its own, so that nothing of one is left for the next.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.data.engines.base import connect
from discreet.errors import EngineError, RefusedError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MOST_ROWS", "compute"]

SECONDS = 5.0
MEMORY = "128MB"
#: A result with more rows than this is refused.
MOST_ROWS = 100_000
_SETTINGS = {
    "enable_external_access": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "temp_directory": "",
    "memory_limit": MEMORY,
    "threads": 1,
    "lock_configuration": True,
}


def compute(
    query: exp.Query, tables: Mapping[str, pa.Table] | None = None, *, seconds: float = SECONDS
) -> pa.Table:
    """Return what a query gives over some tables; refuse one that fails or takes too long.

    The caller has checked every node of the query. What it may name are the tables.

    >>> import pyarrow as pa
    >>> from sqlglot import parse_one
    >>> rows = {"r": pa.table({"n": [1, 3]})}
    >>> compute(parse_one("SELECT SUM(n) AS total FROM r"), rows).to_pylist()
    [{'total': Decimal('4')}]
    """
    engine: Any = connect("duckdb://", **_SETTINGS)  # Any: DuckDB alone can be interrupted
    timer = threading.Timer(seconds, engine.interrupt)
    try:
        for name, table in (tables or {}).items():
            engine.load(table, name=name)
        timer.start()
        bounded = exp.select("*").from_(exp.Subquery(this=query.copy(), alias=_named("bounded")))
        found: pa.Table = engine.fetch(bounded.limit(MOST_ROWS + 1))
    except EngineError as error:
        raise _refusal(error) from None
    finally:
        timer.cancel()
        engine.close()
    if found.num_rows > MOST_ROWS:
        raise RefusedError(
            f"the outer query gives more than {MOST_ROWS:,} rows",
            code="outer-too-large",
            hint="aggregate the released rows, or add LIMIT",
        )
    return found


def _named(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name))


def _refusal(error: EngineError) -> RefusedError:
    """Return why released rows could not be computed with; their values may be named."""
    if error.code in ("interrupted", "out-of-memory"):
        return RefusedError(
            "the outer query takes too long or too much memory",
            code="outer-too-large",
            hint="ask for the protected answer alone, and compute the rest where you are",
        )
    reason = re.sub(r"^DuckDB (failed|no longer has what was opened): ", "", error.message)
    reason = re.sub(r"^[A-Z][a-z]+ Error: ", "", reason)
    return RefusedError(
        f"the outer query cannot be computed on the released rows: {reason}",
        code="outer-failed",
        hint="check the names and types of its columns",
    )
