"""What is done to released rows: arithmetic on aggregates, HAVING, ORDER BY, LIMIT, labels.

Everything here sees only what a guard has released, so it costs nothing and can leak nothing. An
interval stays an interval: arithmetic on it is interval arithmetic, and comparisons and sorting
use its middle.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.data.sql.query import Output, Query, Sort

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["computed_type", "finish"]

#: A released value: both ends of what is known, or None.
Interval = tuple[Any, Any] | None


def finish(query: Query, rows: pa.Table) -> pa.Table:
    """Return the table the asker sees.

    The released rows have the columns `k0`, `k1` … for keys and `m0`, `m1` … for measures. A measure may come as `m0_lower` and `m0_upper`; its output then has the same two ends.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.data.sql import Catalog, Field, parse
    >>> catalog = Catalog("people", (Field("sector", "text"),))
    >>> sql = "SELECT sector, COUNT(*) AS n FROM people GROUP BY sector ORDER BY n DESC LIMIT 1"
    >>> finish(parse(sql, catalog), pa.table({"k0": ["IT", "HC"], "m0": [3, 5]})).to_pylist()
    [{'sector': 'HC', 'n': 5}]
    """
    import pyarrow as pa

    kept = _kept(query, rows)
    if kept is not None:
        rows = rows.take(pa.array(kept, type=pa.int64()))
    columns: dict[str, Any] = {}
    for output in query.outputs:
        columns |= _column(output, rows)
    return pa.table(columns)


def _column(output: Output, rows: pa.Table) -> dict[str, Any]:
    import pyarrow as pa

    reference = output.reference
    ends = {"": output.label, "_lower": f"{output.label}_lower", "_upper": f"{output.label}_upper"}
    if reference is not None:
        return {
            label: rows.column(reference + end)
            for end, label in ends.items()
            if reference + end in rows.column_names
        }
    values = [evaluate(output.expression, row) for row in rows.to_pylist()]
    is_interval = any(name.endswith("_lower") for name in _names(output.expression, rows))
    if not is_interval:
        plain = [None if v is None else v[0] for v in values]
        return {output.label: pa.array(plain, computed_type(output.kind))}
    return {
        ends[end]: pa.array([None if v is None else float(v[place]) for v in values], pa.float64())
        for place, end in enumerate(("_lower", "_upper"))
    }


def computed_type(kind: str) -> pa.DataType:
    """Return the type of a column that is computed from released values, or is a constant."""
    import pyarrow as pa

    types = {"text": pa.string(), "boolean": pa.bool_(), "date": pa.date32()}
    return types.get(kind, pa.timestamp("us") if kind == "timestamp" else pa.float64())


def _names(tree: exp.Expression, rows: pa.Table) -> list[str]:
    used = {column.name for column in tree.find_all(exp.Column)}
    return [name for name in rows.column_names if name.split("_")[0] in used]


def _kept(query: Query, rows: pa.Table) -> list[int] | None:
    """Return the places of the rows that stay, in their order; None for all as they are."""
    if query.having is None and not query.order and query.limit is None and not query.offset:
        return None
    records = rows.to_pylist()
    places = [
        n for n, row in enumerate(records) if query.having is None or _holds(query.having, row)
    ]
    for sort in reversed(query.order):
        places = _sorted(places, records, sort)
    stop = None if query.limit is None else query.offset + query.limit
    return places[query.offset : stop]


def _sorted(places: list[int], records: Sequence[dict[str, Any]], sort: Sort) -> list[int]:
    values = {n: _middle(evaluate(sort.expression, records[n])) for n in places}
    known = [n for n in places if values[n] is not None]
    unknown = [n for n in places if values[n] is None]
    known.sort(key=lambda n: values[n], reverse=sort.descending)
    return unknown + known if sort.nulls_first else known + unknown


def _middle(value: Interval) -> Any:
    if value is None:
        return None
    low, high = value
    return low if low == high else (low + high) / 2


def evaluate(tree: exp.Expression, row: dict[str, Any]) -> Interval:
    """Return the value of an expression over released values, as an interval."""
    if isinstance(tree, exp.Column):
        return _released(tree.name, row)
    if isinstance(tree, exp.Literal):
        value = str(tree.this) if tree.is_string else _number(str(tree.this))
        return value, value
    if isinstance(tree, exp.Boolean):
        return bool(tree.this), bool(tree.this)
    if isinstance(tree, exp.Null):
        return None
    if isinstance(tree, exp.Cast):
        return _dated(tree) or evaluate(tree.this, row)
    if isinstance(tree, exp.Paren):
        return evaluate(tree.this, row)
    inner = evaluate(tree.this, row)
    if inner is None:
        return None
    if isinstance(tree, exp.Neg):
        return -inner[1], -inner[0]
    if isinstance(tree, exp.Round):
        places = int(tree.args["decimals"].this)
        return _rounded(inner[0], places), _rounded(inner[1], places)
    other = evaluate(tree.expression, row)
    return None if other is None else _combined(tree, inner, other)


def _rounded(value: float, places: int) -> float:
    """Return a number with so many decimals; halves go away from zero, as in PostgreSQL."""
    if not math.isfinite(value) or abs(value) >= 1e15:
        return value
    step = decimal.Decimal(1).scaleb(-places)
    return float(decimal.Decimal(repr(value)).quantize(step, decimal.ROUND_HALF_UP))


def _dated(tree: exp.Cast) -> Interval:
    """Return the date or time that a literal stands for."""
    if not isinstance(tree.this, exp.Literal) or not tree.this.is_string:
        return None
    value: Any = datetime.datetime.fromisoformat(str(tree.this.this))
    value = value.date() if tree.to.this == exp.DType.DATE else value
    return value, value


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


def _released(name: str, row: dict[str, Any]) -> Interval:
    if name in row:
        value = row[name]
        return None if value is None else (value, value)
    low, high = row[f"{name}_lower"], row[f"{name}_upper"]
    return None if low is None or high is None else (low, high)


def _combined(tree: exp.Expression, left: tuple[Any, Any], right: tuple[Any, Any]) -> Interval:
    if isinstance(tree, exp.Div | exp.IntDiv) and right[0] <= 0 <= right[1]:
        return None
    operations: dict[type[Any], Callable[[Any, Any], Any]] = {
        exp.Add: lambda a, b: a + b,
        exp.Sub: lambda a, b: a - b,
        exp.Mul: lambda a, b: a * b,
        exp.Div: lambda a, b: a / b,
        exp.IntDiv: lambda a, b: float(math.trunc(a / b)),
    }
    operation = operations[type(tree)]
    ends = [operation(float(a), float(b)) for a in set(left) for b in set(right)]
    return (min(ends), max(ends)) if all(map(math.isfinite, ends)) else None


def _holds(tree: exp.Expression, row: dict[str, Any]) -> bool:
    return _truth(tree, row) is True


def _truth(tree: exp.Expression, row: dict[str, Any]) -> bool | None:
    """Return the three-valued truth of a condition on released values."""
    if isinstance(tree, exp.Paren):
        return _truth(tree.this, row)
    if isinstance(tree, exp.Not):
        inner = _truth(tree.this, row)
        return None if inner is None else not inner
    if isinstance(tree, exp.And | exp.Or):
        pair = _truth(tree.this, row), _truth(tree.expression, row)
        decisive = isinstance(tree, exp.Or)
        if decisive in pair:
            return decisive
        return None if None in pair else not decisive
    if isinstance(tree, exp.Between):
        value, low, high = (
            _middle(evaluate(tree.args[part], row)) for part in ("this", "low", "high")
        )
        return _compare(lambda: low <= value <= high, value, low, high)
    left, right = _middle(evaluate(tree.this, row)), _middle(evaluate(tree.expression, row))
    test = _COMPARISONS[type(tree)]
    return _compare(functools.partial(test, left, right), left, right)


def _compare(test: Callable[[], bool], *values: Any) -> bool | None:
    if any(value is None for value in values):
        return None
    try:
        return bool(test())
    except TypeError:  # a date against a text: neither larger nor smaller
        return None


_COMPARISONS: dict[type[Any], Callable[[Any, Any], bool]] = {
    exp.EQ: lambda a, b: bool(a == b),
    exp.NEQ: lambda a, b: bool(a != b),
    exp.GT: lambda a, b: bool(a > b),
    exp.GTE: lambda a, b: bool(a >= b),
    exp.LT: lambda a, b: bool(a < b),
    exp.LTE: lambda a, b: bool(a <= b),
}
