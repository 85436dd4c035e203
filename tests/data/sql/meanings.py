"""Random conditions and keys over values on which engines disagree, and what each makes of them."""

from __future__ import annotations

import datetime
import decimal
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
from sqlglot import exp

from discreet.data.sql import parse
from discreet.data.sql.query import Catalog, Query, fields_of, from_clause
from discreet.data.sql.total import total
from discreet.errors import EngineError, RefusedError

NAME = "odd"
_UTC = datetime.UTC
_WHOLE = (0, 1, -1, 2, 3, 7, -7, 10, 40, 2**31, -(2**31), 2**53 + 1, -(2**53) - 1, 10**15, 2**63 - 1, -(2**63))  # fmt: skip
_DOUBLES = (0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.1, 1 / 3, 0.49999999999999994, 1e-300,
            5e-324, 1e15 + 0.5, 2.0**53, 1e19, -1e300, 1.005, 7.0, math.inf, -math.inf, math.nan)  # fmt: skip
_TEXTS = ("", " ", "a", "A", "b", "Z", "z", "aa", "a b", " a ", "\u00a0a\u00a0", "\ta\n", "straße", "STRASSE", "ß", "ẞ",
          "İ", "ı", "i", "I", "istanbul", "İSTANBUL", "é", "e\u0301", "É", "E\u0301", "Ä", "ä", "Å", "\u212b", "ﬁ",
          "Ωμέγας", "ΩΜΈΓΑΣ", "жук", "ЖУК", "ǆ", "ǅ", "日本", "🦆", "👩‍👩‍👧", "a%b", "a_b", "10", "9", "ÿ", "Ÿ", "µ", "ſ",
          "O'Neill", "a\u0308a", "Ab", "aB", "é" * 3, "\u1e9e\u00df")  # fmt: skip
_DAYS = ("0001-01-01", "1582-10-10", "1899-12-31", "1969-12-31", "1970-01-01", "2000-02-29", "2020-12-31",
         "2021-01-01", "2021-01-03", "2021-01-04", "2024-02-29", "2024-03-31", "9999-12-31")  # fmt: skip
_CLOCKS = ("00:00:00", "23:59:59.999999", "12:30:00", "01:30:00.5", "02:00:00")


def table(rng, records=120):
    """Return rows of all of these values, each also missing somewhere."""

    def drawn(values, kind):
        some = [values[int(place)] for place in rng.integers(0, len(values), records)]
        some[: min(len(values), records)] = values[:records]
        order = rng.permutation(records)
        return pa.array([None if rng.random() < 0.08 else some[place] for place in order], kind)

    days = [datetime.date.fromisoformat(day) for day in _DAYS]
    times = [
        datetime.datetime.combine(day, datetime.time.fromisoformat(clock))
        for day in days
        for clock in _CLOCKS
    ]
    small = [value for value in _WHOLE if abs(value) < 100]
    cents = [Decimal(text) for text in ("0.00", "-0.50", "0.50", "1.15", "1.25", "2.50", "-2.50", "10.10", "7.00", "9999999999.99")]  # fmt: skip
    fine = [Decimal(text) for text in ("0.0000", "0.1000", "-0.3333", "9.9999", "2.5000")]
    return pa.table(
        {
            "rid": pa.array(range(records), pa.int64()),
            "n": drawn(_WHOLE, pa.int64()),
            "s": drawn(small, pa.int16()),
            "x": drawn(_DOUBLES, pa.float64()),
            "r": drawn([0.0, -0.0, 0.1, 0.5, -2.5, 16777216.0, math.nan, math.inf], pa.float32()),
            "d": drawn(cents, pa.decimal128(12, 2)),
            "e": drawn(fine, pa.decimal128(5, 4)),
            "t": drawn(_TEXTS, pa.string()),
            "w": drawn(
                [
                    Decimal("0.1"),
                    Decimal("123456789012345678.00000000000000000001"),
                    Decimal(-7),
                    Decimal("9007199254740993.5"),
                    Decimal("0.30000000000000000001"),
                ],
                pa.decimal128(38, 20),
            ),
            "u": drawn(_TEXTS[:24], pa.string()),
            "day": drawn(days, pa.date32()),
            "at": drawn(times, pa.timestamp("us")),
            "z": drawn([time.replace(tzinfo=_UTC) for time in times], pa.timestamp("us", "UTC")),
            "b": drawn([True, False], pa.bool_()),
        }
    )


def catalog(relation):
    """Return the columns as the parser sees them."""
    from discreet.data.schema import Column, Schema

    names = relation.schema.names
    schema = Schema(tuple(Column(name, "quasi") for name in names))
    return Catalog(NAME, fields_of(schema, relation.schema))


# -- statements ------------------------------------------------------------------------------------
def _one(rng, *choices):
    return choices[int(rng.integers(len(choices)))]


def _quoted(text):
    return "'" + text.replace("'", "''") + "'"


def _literal(rng):
    return _one(rng, "0", "1", "-1", "2", "2.5", "-0.5", "0.1", "7", "1.15", "100", "1000000", "2147483648",
                "999999999999999", "-999999999999999", "0.3333", "1e3")  # fmt: skip


def _plain_number(rng):
    return _one(rng, "n", "n", "s", "x", "x", "r", "d", "d", "e", "w")


def number(rng, depth):
    """Return a random number of a row."""
    if depth <= 0:
        return _plain_number(rng)
    a = number(rng, depth - 1)
    b = _one(rng, _literal(rng), number(rng, 0))
    return _one(
        rng, a, f"({a} + {b})", f"({a} - {b})", f"({_plain_number(rng)} * {b})",
        f"({a} / {_one(rng, '3', '2', '-7', '0.1', '10.0', '2.5')})", f"(n / {_one(rng, '2', '-3', '10')})",
        f"({_one(rng, 'n', 's', '(s + 3)', '(n - 1)')} % {_one(rng, '7', '-3', '10', '2')})",
        f"ROUND({a})", f"ROUND({_plain_number(rng)})", f"ROUND({a}, {_one(rng, '0', '1', '2', '3')})",
        f"ROUND({_plain_number(rng)}, {_one(rng, '1', '2')})", f"FLOOR({a})", f"CEIL({a})",
        f"TRUNC({a})", f"ABS({a})", f"(-{a})", f"COALESCE({a}, {b})", f"NULLIF({a}, {_literal(rng)})",
        f"CAST({a} AS INTEGER)", f"CAST({a} AS BIGINT)", f"CAST({a} AS DOUBLE PRECISION)", f"CAST({a} AS NUMERIC)",
        f"CAST({a} AS NUMERIC(10, 1))", f"CAST({a} AS REAL)",
        f"LENGTH({text(rng, depth - 1)})", f"EXTRACT({_part(rng)} FROM {time(rng, depth - 1)})",
        f"EXTRACT(EPOCH FROM {time(rng, 0)})",
        f"YEAR({_one(rng, 'day', 'at', 'z')})", f"CAST({_one(rng, 'b', condition(rng, 0))} AS INTEGER)",
        f"CASE WHEN {condition(rng, depth - 1)} THEN {a} ELSE {b} END",
        f"WIDTH_BUCKET({a}, 0, 10, 5)",
        f"CASE s WHEN 1 THEN 10 WHEN 2 THEN {_one(rng, '20', 's', '2.5')} ELSE 0 END",
    )  # fmt: skip


def _part(rng):
    return _one(rng, "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "DOW", "ISODOW", "DOY")  # fmt: skip


def text(rng, depth):
    """Return a random text of a row."""
    if depth <= 0:
        return _one(rng, "t", "t", "u")
    a = text(rng, depth - 1)
    return _one(
        rng, a, f"UPPER({a})", f"LOWER({a})", f"UPPER({_one(rng, 't', 'u')})", f"LOWER({_one(rng, 't', 'u')})",
        f"TRIM({a})", f"({a} || {text(rng, 0)})", f"({a} || '-' || n)",
        f"SUBSTRING({a}, {_one(rng, '0', '1', '2', '3')}, {_one(rng, '0', '1', '2')})",
        f"SUBSTRING({a}, {_one(rng, '0', '1', '2')})", f"LEFT({a}, {_one(rng, '0', '1', '2')})",
        f"COALESCE({a}, 'none')", f"NULLIF({a}, '')", "CAST(n AS TEXT)", "CAST(s AS TEXT)", "CAST(day AS TEXT)",
        "CAST(s + 1 AS TEXT)", f"CASE WHEN {condition(rng, depth - 1)} THEN {a} ELSE 'other' END",
    )  # fmt: skip


def time(rng, depth):
    """Return a random date or time of a row."""
    if depth <= 0:
        return _one(rng, "day", "at", "z")
    a = time(rng, depth - 1)
    unit = _one(rng, "year", "quarter", "month", "week", "day", "hour", "minute")
    span = _one(rng, "1 month", "1 day", "-1 year", "36 hour", "90 minute", "11 month", "1000 year", "1 week", "3 second")  # fmt: skip
    return _one(
        rng, a, f"DATE_TRUNC('{unit}', {a})", f"({a} + INTERVAL '{span}')", f"({a} - INTERVAL '{span}')",
        f"CAST({a} AS DATE)", f"CAST({a} AS TIMESTAMP)",
        f"COALESCE({_one(rng, 'day', 'CAST(z AS DATE)')}, day)",
        f"CASE WHEN {condition(rng, 0)} THEN {_one(rng, 'at', 'CAST(day AS TIMESTAMP)')} ELSE at END",
    )  # fmt: skip


def condition(rng, depth):
    """Return a random condition on a row."""
    if depth > 0 and rng.random() < 0.35:
        a, b = (condition(rng, depth - 1) for _ in range(2))
        return _one(rng, f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})")
    deep = max(depth, 0)
    compared = _one(rng, "=", "<>", "<", "<=", ">", ">=")
    kind = _one(rng, "number", "number", "text", "text", "time", "other")
    if kind == "number":
        a, b = number(rng, deep), _one(rng, _literal(rng), number(rng, 0))
        return _one(
            rng, f"{a} {compared} {b}", f"{a} {compared} {_literal(rng)}", f"{_literal(rng)} {compared} {a}",
            f"{a} BETWEEN {_literal(rng)} AND {_literal(rng)}", f"{a} NOT BETWEEN -1 AND 2.5",
            f"{a} IN (1, 2.5, -7)", f"{a} NOT IN (0, 1)", f"{a} IN (0, NULL)", f"{a} IS NULL",
            f"{a} {compared} '{_one(rng, '2', '2.5', '-7')}'",
        )  # fmt: skip
    if kind == "text":
        a, b = text(rng, deep), _one(rng, _quoted(str(rng.choice(_TEXTS))), text(rng, 0))
        pattern = _one(rng, "%", "a%", "%A%", "_", "__", "%ß%", "%i%", "İ%", "%é", "%e_", "a\u0308%", "str%", "%ΜΈ%", "ä", "")  # fmt: skip
        return _one(
            rng, f"{a} {compared} {b}", f"{a} {compared} {b}", f"{a} LIKE {_quoted(pattern)}", f"{a} ILIKE {_quoted(pattern)}",
            f"{a} NOT LIKE {_quoted(pattern)}", f"{a} IN ('a', 'é', 'ß', 'İ')", f"{a} BETWEEN 'A' AND 'z'",
            f"{a} IS NOT NULL", f"{a} = ''",
        )  # fmt: skip
    if kind == "time":
        a = time(rng, deep)
        moment = _one(rng, "2021-01-03", "1970-01-01", "2020-12-31 23:59:59.999999", "2024-02-29 12:30:00", "0001-01-01",
                      "2021-01-04T00:00:00+02:00", "9999-12-31")  # fmt: skip
        return _one(
            rng, f"{a} {compared} '{moment}'", f"{a} {compared} {time(rng, 0)}",
            f"{a} BETWEEN '1970-01-01' AND '2021-01-03'", f"{a} IN ('2021-01-03', '2000-02-29')", f"{a} IS NULL",
            f"{a} {compared} DATE '2021-01-03'", f"{a} {compared} TIMESTAMP '2021-01-03 02:00:00'",
        )  # fmt: skip
    return _one(rng, "b", "NOT b", "b IS TRUE", "b IS NOT TRUE", "b = false", "b > false", "b IS NULL", "b = 't'",
                "CASE WHEN b THEN s > 1 ELSE t = 'a' END")  # fmt: skip


def key(rng, depth):
    """Return a random expression to group by."""
    make = _one(rng, number, number, text, text, time, condition)
    return make(rng, depth)


# -- what an engine makes of them --------------------------------------------------------------------
def read(known: Catalog, where: str, by: str) -> Query | str:
    """Return the question, or the code it is refused with."""
    try:
        return parse(f"SELECT {by}, COUNT(*) FROM {NAME} WHERE {where} GROUP BY 1", known)
    except RefusedError as error:
        return error.code


def per_row(relation, questions):
    """Return for each question what its condition and key are in each row, or how it failed."""
    chosen = [exp.alias_(exp.column("rid", quoted=True), "rid")]
    for place, query in enumerate(questions):
        chosen.append(exp.alias_(total(query.predicate), f"c{place}"))
        chosen += [exp.alias_(k.total(), f"k{place}") for k in query.keys[:1]]
    tree = exp.select(*chosen).from_(from_clause(relation.query, NAME))
    try:
        rows = relation.engine.fetch(tree).sort_by("rid")
    except EngineError as error:
        if len(questions) == 1:
            return [str(error)]
        half = len(questions) // 2
        return per_row(relation, questions[:half]) + per_row(relation, questions[half:])
    found = []
    for place in range(len(questions)):
        names = [n for n in (f"c{place}", f"k{place}") if n in rows.column_names]
        found.append([[plain(value) for value in rows.column(n).to_pylist()] for n in names])
    return found


def plain(value):
    """Return a value such that equal ones are the same: no numeric type, no sign of zero."""
    if isinstance(value, float | np.floating):
        return "NaN" if math.isnan(value) else repr(float(value) + 0.0)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return repr(float(value)) if abs(value) <= 2**53 else value
    if isinstance(value, decimal.Decimal):
        return repr(float(value))
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ")
    if isinstance(value, datetime.date):
        return f"{value.isoformat()} 00:00:00"
    return value
