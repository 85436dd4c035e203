"""Random statements in the accepted grammar, and pairs of data that differ in one secret value."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

import discreet as dc

BOUNDS = {"salary": (0, 500_000), "bonus": (-1000.0, 50_000.0), "age": (0, 120)}
KEYS = {"sector": ("a", "b", "c"), "member": (True, False)}
ROLES = {
    "id": "identifier", "age": "quasi", "sector": "quasi", "member": "quasi", "born": "quasi",
    "salary": "confidential", "bonus": "confidential",
}  # fmt: skip
#: What one secret value becomes: ordinary ones, and those at which arithmetic breaks.
SALARIES = (0, -1, 1, 49_999, 500_001, 2**31 - 1, 2**31, 9_223_372, 10**12, 2**53 + 1, 2**62, -(2**63) + 1, 2**63 - 1)  # fmt: skip
BONUSES = (0.0, -0.0, 0.1, -1000.5, 1e15, 1e-300, 5e-324, 1e154, 1e200, 1.7e308, -1.7e308, math.inf, -math.inf, math.nan)  # fmt: skip


def pair(rng, records=40, *, missing):
    """Return two tables that differ in one secret value; it may be missing in one of them.

    Values that are no number count as missing, which guards without noise take for public.
    """
    start = np.datetime64("1950-01-01")
    columns = {
        "id": pa.array(range(records)),
        "age": pa.array(rng.integers(18, 90, records)),
        "sector": pa.array(rng.choice(["a", "b", "c"], records).tolist()),
        "member": pa.array(rng.choice([True, False], records).tolist()),
        "born": pa.array(start + rng.integers(0, 20_000, records)),
        "salary": pa.array(rng.integers(10, 400, records) * 1000),
        "bonus": pa.array(np.round(rng.normal(5000, 2000, records), 2)),
    }
    one = pa.table(columns)
    name = str(rng.choice(["salary", "bonus"]))
    values = one.column(name).to_pylist()
    victim = int(rng.integers(records))
    choices = SALARIES if name == "salary" else BONUSES if missing else BONUSES[:-1]
    values[victim] = choices[int(rng.integers(len(choices)))]
    if missing and rng.random() < 0.2:
        values[victim] = None
    other = one.set_column(
        one.column_names.index(name), name, pa.array(values, one.schema.field(name).type)
    )
    return one, other


def statement(rng, *, secret_conditions=True):
    """Return a random statement without HAVING, ORDER BY and LIMIT, which look at released values."""
    if rng.random() < 0.15:
        return _composed(rng, secret_conditions)
    key = str(rng.choice(["", "", "sector", "member"]))
    measures = [_measure(rng) for _ in range(int(rng.integers(1, 4)))]
    shown = ", ".join([*([key] if key else []), *measures])
    where = ""
    if rng.random() < 0.6:
        where = " WHERE " + _condition(rng, 2, secret=secret_conditions)
    return f"SELECT {shown} FROM people{where}" + (f" GROUP BY {key}" if key else "")


def _composed(rng, secret):
    """Return a statement that does more with answers; nothing in it chooses rows by their values."""
    condition = _condition(rng, 1, secret=secret)
    inner = _number(rng, int(rng.integers(0, 3)))
    return _one(
        rng,
        f"SELECT sector, SUM({inner}) FILTER (WHERE {condition}), COUNT(*) FROM people GROUP BY sector",
        "SELECT sector, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY sector",
        f"SELECT sector, COUNT(*), AVG({inner}) FROM people WHERE {condition} GROUP BY ROLLUP(sector)",
        f"SELECT COUNT(*), MAX(s) FROM (SELECT member, SUM({inner}) AS s FROM people GROUP BY member) AS t",
        f"SELECT member, COUNT(DISTINCT sector) FROM people WHERE {condition} GROUP BY member",
        f"SELECT COUNT(CASE WHEN {condition} THEN 1 END), SUM(1) FROM people",
    )  # fmt: skip


def _one(rng, *choices):
    return choices[int(rng.integers(len(choices)))]


def _measure(rng):
    kind = _one(rng, "count", "sum", "sum", "sum", "avg", "moment", "quantile", "plain")
    if kind == "count":
        return _one(rng, "COUNT(*)", "COUNT(salary)", "COUNT(bonus)")
    if kind == "plain":
        return f"{_one(rng, 'SUM', 'AVG')}({_one(rng, 'salary', 'bonus', 'age')})"
    inner = _number(rng, int(rng.integers(0, 4)))
    if kind == "quantile":
        return _one(rng, f"MEDIAN({inner})", f"QUANTILE({inner}, 0.9)")
    if kind == "moment":
        return f"{_one(rng, 'VARIANCE', 'VAR_POP', 'STDDEV', 'STDDEV_POP')}({inner})"
    return f"{kind.upper()}({inner})"


def _literal(rng):
    return _one(
        rng, "0", "1", "2", "-1", "3", "0.5", "12", "1000", "9223372", "2147483647",
        "1000000000000", "999999999999999", "0.000000000000001", "NULL",
    )  # fmt: skip


def _number(rng, depth):
    if depth <= 0:
        return _one(rng, "salary", "salary", "bonus", "bonus", "age", _literal(rng))
    a, b = _number(rng, depth - 1), _number(rng, int(rng.integers(0, depth)))
    return _one(
        rng,
        f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} * {_literal(rng)})",
        f"({a} / {_one(rng, '3', '0.000000000000001', '-7', '999999999999999')})",
        f"({_one(rng, 'salary', 'age', '(salary + 3)')} % {_one(rng, '7', '-1', '1000')})",
        f"ABS({a})", f"(-{a})", f"ROUND({a})", f"ROUND({a}, 2)", f"FLOOR({a})", f"CEIL({a})",
        f"COALESCE({a}, {b})", f"CAST({a} AS DOUBLE PRECISION)", f"CAST({a} AS BIGINT)",
        f"TRUNC({a})", f"NULLIF({a}, 3)", "LENGTH(CAST(salary AS TEXT) || 'a')",
        f"CAST({_condition(rng, depth - 1)} AS INTEGER)", f"WIDTH_BUCKET({a}, 0, 1000, 7)",
        f"CASE WHEN {_condition(rng, depth - 1)} THEN {a} ELSE {b} END",
        f"CASE WHEN {_condition(rng, depth - 1)} THEN {a} END",
    )  # fmt: skip


def _condition(rng, depth, *, secret=True):
    if depth > 0 and rng.random() < 0.4:
        a, b = (_condition(rng, depth - 1, secret=secret) for _ in range(2))
        return _one(rng, f"({a} AND {b})", f"({a} OR {b})", f"NOT ({a})")
    public = [
        "age > 40", "sector = 'a'", "sector IN ('b', 'c')", "member", "sector LIKE 'a%'",
        "born < '1980-01-01'", "EXTRACT(YEAR FROM born) > 1975", "age BETWEEN 30 AND 50",
        "DATE_TRUNC('year', born) > '1970-01-01'", "born + INTERVAL '1000 years' < '2970-01-01'",
        "sector = ANY (ARRAY['a', 'b'])", "left(sector, 1) || age = 'a40'",
    ]  # fmt: skip
    if not secret or rng.random() < 0.5:
        return str(rng.choice(public))
    sides = _number(rng, min(depth, 2)), _literal(rng)
    return _one(
        rng, f"{sides[0]} > {sides[1]}", f"{sides[0]} <= {sides[1]}", "salary > 100000",
        "bonus IS NULL", f"{sides[0]} BETWEEN 1 AND 1000000", "salary IN (1000, 50000)",
    )  # fmt: skip


GUARDS = {
    "perturbation": dc.Perturbation(
        epsilon=1e9, per_query=1.0, bounds=BOUNDS, keys=KEYS, complete=("age",)
    ),
    "exhausted": dc.Perturbation(epsilon=5.0, per_query=1.0, bounds=BOUNDS, keys=KEYS),
    "restriction": dc.Restriction(k=3),
    "camouflage": dc.Camouflage(bound=0.3, minimum=500),
    "input": dc.Perturbation(epsilon=10.0, per_query=1.0, bounds=BOUNDS, mode="input"),
}


def outcome(gate, sql):
    """Return everything that an asker sees of an answer, and the ledger keeps, but its numbers."""
    told = gate.explain(sql, user="eve")
    answer = gate.ask(sql, user="eve")
    seen = {
        "plan": [row for row in told.rows()[1] if not str(row[0]).startswith("error")],
        "errors": sorted(told.error_95),
        "kind": answer.kind, "code": answer.code, "reason": answer.reason, "hint": answer.hint,
        "spent": answer.spent, "left": answer.left, "withheld": answer.withheld,
        "columns": answer.columns, "number": answer.number, "repeated": answer.repeated,
        "question": answer.question,
    }  # fmt: skip
    if answer.table is not None and not _is_chosen_by_noise(gate, sql):
        keys = [c.name for c in answer.columns if c.part == "key"]
        rows = answer.table.select(keys).to_pylist() if keys else answer.table.num_rows
        seen["rows"] = sorted(map(repr, rows)) if keys else rows
    if answer.table is not None:
        seen["types"] = [str(field.type) for field in answer.table.schema]
    return seen


def _is_chosen_by_noise(gate, sql):
    """Whether noisy records meet a condition or not by their noise.

    On the same data, drawn anew, other groups have anybody in them; what nobody is in has no error.
    """
    condition = sql.partition("WHERE")[2]
    hidden = "salary" in condition or "bonus" in condition
    return getattr(gate.guard, "mode", "") == "input" and hidden


def entries(gate):
    """Return what the ledger holds, but answers, times, hashes and errors of noisy means."""
    return [
        (e.number, e.user, e.kind, e.question, e.digest, e.policy,
         {k: sorted(v) if k == "error_95" else v for k, v in e.details.items()
          if k != "error_95" or not _is_chosen_by_noise(gate, e.question or "")})
        for e in gate.ledger.entries()
    ]  # fmt: skip


def differences(load, guard, pairs, statements, seed):
    """Ask the same of two databases that differ in one secret value; return what differed.

    `load` makes a dataset of an Arrow table.
    """
    found, asked, kinds = [], 0, {}
    for number in range(pairs):
        rng = np.random.default_rng([seed, number])
        tables = pair(rng, missing=guard.answers == "noisy")
        with dc.Gateway(load(tables[0]), guard=guard) as one, dc.Gateway(load(tables[1]), guard=guard) as other:  # fmt: skip
            for _ in range(statements):
                sql = statement(rng)
                asked += 1
                a, b = outcome(one, sql), outcome(other, sql)
                kinds[a["kind"], a["code"]] = kinds.get((a["kind"], a["code"]), 0) + 1
                if a != b:
                    found.append((sql, {k: (a[k], b.get(k)) for k in a if a[k] != b.get(k)}))
            if entries(one) != entries(other):
                found.append(("ledger", number))
    return found, asked, kinds


def dataset(table):
    """Return a table in DuckDB."""
    return dc.read(table, roles=ROLES, unit="id", name="people")
