"""Cells through the engine layer against hand-written SQL, in CPU time of the same process.

Four attributes crossed into 24,000 cells; count, sum, sum of squares and the two largest
contributions, summed per unit. Run with `--rows 10000000` for the headline figure.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from discreet.data.engines import connect
from discreet.data.engines.cells import cells_of

BY = ["a", "b", "c", "d"]
RECORDS = "SELECT a, b, c, d, unit, count(*) AS n, sum(x) AS s, sum(x * x) AS q FROM t GROUP BY ALL"
LEAVES = f"""
    SELECT a, b, c, d, sum(n) AS count, count(*) AS units, sum(s) AS sum, sum(q) AS sum_squares,
           max(s, 2) AS top
    FROM ({RECORDS}) GROUP BY a, b, c, d"""
# Totals need every unit's contribution summed again at every level, in SQL by grouping sets.
TOTALS = """
    SELECT a, b, c, d, sum(n) AS count, count(*) AS units, sum(s) AS sum, sum(q) AS sum_squares,
           max(s, 2) AS top
    FROM (SELECT a, b, c, d, unit, count(*) AS n, sum(x) AS s, sum(x * x) AS q
          FROM t GROUP BY unit, CUBE (a, b, c, d))
    GROUP BY a, b, c, d"""


def records(rows: int, per_unit: int) -> pa.Table:
    rng = np.random.default_rng(1)
    codes = {
        "a": [f"region {i}" for i in range(20)],
        "b": [f"sector {i}" for i in range(20)],
        "c": [f"age {i}" for i in range(10)],
        "d": [f"size {i}" for i in range(6)],
    }
    columns: dict[str, Any] = {
        name: pa.array(values).take(pa.array(rng.integers(0, len(values), rows)))
        for name, values in codes.items()
    }
    columns["unit"] = rng.permutation(rows) // per_unit
    columns["x"] = rng.lognormal(10, 1, rows)
    return pa.table(columns)


def cost(work: Callable[[], pa.Table], repeats: int) -> tuple[float, float, pa.Table]:
    """Return the least CPU and wall-clock seconds of some runs, and the result."""
    best = (float("inf"), float("inf"))
    for _ in range(repeats):
        cpu, wall = time.process_time(), time.perf_counter()
        result = work()
        best = min(best, (time.process_time() - cpu, time.perf_counter() - wall))
    return *best, result


def same(mine: pa.Table, theirs: pa.Table) -> None:
    """Stop unless both say the same: counts bit for bit, sums to 1e-9."""

    def keyed(table: pa.Table) -> dict[tuple[str, ...], dict[str, Any]]:
        rows = table.to_pylist()
        return {tuple(row[name] or "Total" for name in BY): row for row in rows}

    left, right = keyed(mine), keyed(theirs)
    if left.keys() != right.keys():
        raise SystemExit(f"{len(left)} cells against {len(right)}")
    for key, row in left.items():
        other = right[key]
        exact = row["count"] == other["count"] and row["units"] == other["units"]
        pairs = [(row["sum"], other["sum"]), (row["sum_squares"], other["sum_squares"])]
        pairs += [(row[f"top_{i}"], top) for i, top in enumerate(other["top"], start=1)]
        if not exact or any(abs(x - y) > 1e-9 * abs(y) for x, y in pairs):
            raise SystemExit(f"the cell {key} differs")


def report(
    name: str, mine: tuple[float, float, pa.Table], theirs: tuple[float, float, pa.Table]
) -> None:
    same(mine[2], theirs[2])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{name:<34} cells {mine[2].num_rows:>7,}  engine {mine[0]:6.2f} CPU s ({mine[1]:.2f} s)  "
        f"SQL {theirs[0]:6.2f} CPU s ({theirs[1]:.2f} s)  ratio {mine[0] / theirs[0]:.2f}  "
        f"peak {peak:.2f} GB",
        flush=True,
    )


def in_memory(rows: pa.Table, name: str, repeats: int, *, totals: bool = True) -> None:
    engine, raw = connect("duckdb://"), duckdb.connect()
    relation = engine.load(rows)
    raw.register("t", rows)
    by: dict[str, tuple[()]] = dict.fromkeys(BY, ())

    def mine(margins: bool) -> pa.Table:
        return cells_of(relation, by, measure="x", unit="unit", margins=margins)

    single = (
        cost(lambda: mine(False), repeats),
        cost(lambda: raw.sql(LEAVES).to_arrow_table(), repeats),
    )
    report(f"{name}, single values", *single)
    if totals:
        every = cost(lambda: mine(True), repeats), cost(lambda: raw.sql(TOTALS).to_arrow_table(), 1)
        report(f"{name}, all totals", *every)
    engine.close()
    raw.close()


def out_of_core(rows: pa.Table, share: int) -> None:
    """Cells from Parquet, with DuckDB allowed a share of what the data takes in memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.parquet"
        pyarrow.parquet.write_table(rows, path)
        limit = rows.nbytes // share
        # Below some 64 MB a thread, DuckDB's own buffers do not fit.
        threads = 1 if limit < 128e6 else 2
        options = {"memory_limit": f"{limit // 1000}KB", "temp_directory": str(Path(folder) / "t")}
        options["threads"] = str(threads)
        whole = connect("duckdb://")
        by: dict[str, tuple[()]] = dict.fromkeys(BY, ())
        with connect("duckdb://", **options) as engine:
            relation = engine.scan(path, format="parquet")
            mine = cost(lambda: cells_of(relation, by, measure="x", unit="unit"), 1)
        relation = whole.scan(path, format="parquet")
        free = cost(lambda: cells_of(relation, by, measure="x", unit="unit"), 1)
        whole.close()
        if mine[2].select([*BY, "count", "units"]) != free[2].select([*BY, "count", "units"]):
            raise SystemExit("the cells differ")
        print(
            f"Parquet, {path.stat().st_size / 1e6:,.0f} MB ({rows.nbytes / 1e6:,.0f} MB in memory), "
            f"limit {limit / 1e6:,.0f} MB: {mine[0]:.2f} CPU s ({mine[1]:.2f} s); "
            f"without limit {free[0]:.2f} CPU s ({free[1]:.2f} s)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--skip-totals", action="store_true", help="leave out the slow CUBE in SQL")
    options = parser.parse_args()
    for per_unit, name in ((1, "one record per unit"), (4, "four records per unit")):
        rows = records(options.rows, per_unit)
        in_memory(rows, name, options.repeats, totals=not options.skip_totals)
    # A quarter of less than this is not enough for DuckDB's own buffers.
    out_of_core(records(max(options.rows, 4_000_000), 1), share=4)


if __name__ == "__main__":
    main()
