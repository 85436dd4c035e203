"""Each job against hand-written SQL on the same engine, in the same run: CPU of this process and the server.

Give the servers' addresses: `--postgres postgresql://…/postgres --spark spark://local`. On Spark the program
measures the one process of `spark://local`. PostgreSQL runs without parallel workers, so that one
process does all the work. Each pair runs in turns; the least of some runs counts.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from benchmarks.engine_cells import BY, records

import discreet as dc
from discreet.data.describe import describe
from discreet.data.engines import connect
from discreet.data.engines.cells import cells_of
from discreet.data.engines.changes import recode

INNER = "SELECT a, b, c, d, unit, count(*) AS n, sum(x) AS s, sum(x * x) AS q FROM t GROUP BY a, b, c, d, unit"
TOP = {
    "duckdb": "max(s, 2)",
    "postgres": "(array_agg(s ORDER BY s DESC))[1:2]",
    "spark": "max_by(s, s, 2)",
}
RECODED = """SELECT CASE WHEN a LIKE 'region 1%' THEN 'region 1*' ELSE a END AS a, b, c, d, unit, x FROM t"""


class Place:
    """One engine with the records in a table `t`, and how hand-written SQL is run on it."""

    def __init__(self, url: str, path: Path) -> None:
        options = {"spark.driver.memory": "4g"} if url.startswith("spark") else {}
        # Any: each engine has a connection of its own kind.
        self.engine: Any = connect(url, **options)
        self.name = str(self.engine.name)
        scanned = self.engine.scan(path, format="parquet")
        self.pids = [os.getpid()]
        if self.name == "postgres":
            run = self.engine._connection.execute
            run("SET max_parallel_workers_per_gather = 0")
            self.engine.store(scanned, "t")
            run("ANALYZE t")
            self.pids.append(self.engine._connection.info.backend_pid)
            self.relation = self.engine.table("t")
        elif self.name == "spark":
            self.relation = scanned
            self.engine._session.read.parquet(str(path)).createOrReplaceTempView("t")
            handle = self.engine._session._jvm.java.lang.ProcessHandle.current()
            self.pids.append(int(handle.pid()))
        else:
            self.relation = self.engine.materialize(scanned, name="t")

    def raw(self, text: str) -> Any:
        """Run hand-written SQL and fetch its rows."""
        if self.name == "duckdb":
            return self.engine._connection.sql(text).to_arrow_table()
        if self.name == "spark":
            return self.engine._session.sql(text).toArrow()
        return self.engine._connection.execute(text).fetchall()

    def raw_store(self, text: str) -> None:
        """Write the rows of hand-written SQL to a table."""
        if self.name == "spark":
            self.engine._session.sql(text).write.mode("overwrite").saveAsTable("mine")
        else:
            self.engine._connection.execute("DROP TABLE IF EXISTS mine")
            self.engine._connection.execute(f"CREATE TABLE mine AS {text}")

    def cpu(self) -> float:
        """Return the CPU seconds that this process and the server's have used."""
        tick = os.sysconf("SC_CLK_TCK")
        used = 0.0
        for pid in self.pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used += (int(fields[11]) + int(fields[12])) / tick
        return used

    def ratio(self, name: str, bar: float, mine: Callable[[], Any], theirs: Callable[[], Any], repeats: int) -> None:  # fmt: skip
        """Print what both cost, in turns."""
        best = {mine: float("inf"), theirs: float("inf")}
        for _ in range(repeats):
            for work in (mine, theirs):
                before = self.cpu()
                work()
                best[work] = min(best[work], self.cpu() - before)
        print(
            f"{self.name:<9} {name:<28} {best[mine]:7.2f} s  SQL {best[theirs]:7.2f} s  "
            f"ratio {best[mine] / max(best[theirs], 0.01):5.2f}  bar {bar}",
            flush=True,
        )


def measured(place: Place, repeats: int) -> None:
    relation, flat = place.relation, dict.fromkeys(BY, ())
    leaves = f"SELECT a, b, c, d, sum(n), count(*), sum(s), sum(q), {TOP[place.name]} FROM ({INNER}) p GROUP BY a, b, c, d"
    place.ratio(
        "cells by unit", 1.5,
        lambda: cells_of(relation, flat, measure="x", unit="unit", margins=False),
        lambda: place.raw(leaves), repeats,
    )  # fmt: skip
    place.ratio(
        "frequency sets", 1.3,
        lambda: place.engine.frequencies(relation, BY),
        lambda: place.raw("SELECT a, b, c, d, count(*) FROM t GROUP BY a, b, c, d"), repeats,
    )  # fmt: skip
    codes = [f"region {i}" for i in (1, *range(10, 20))]
    mapped = pa.table({"from": codes, "to": ["region 1*"] * len(codes)})
    place.ratio(
        "recode and write", 1.5,
        lambda: place.engine.write(recode(relation, {"a": mapped}), "ours", format="table"),
        lambda: place.raw_store(RECODED), repeats,
    )  # fmt: skip
    asked(place, repeats)
    data = dc.read(f"{place.name}://#t", engine=place.engine, name="t")
    place.ratio(
        "describe / one by one", 1.5,
        lambda: describe(data), lambda: counts_one_by_one(place), repeats,
    )  # fmt: skip
    place.ratio(
        "describe, approximate", 1.5,
        lambda: describe(data, approximate=True), lambda: counts_one_by_one(place), repeats,
    )  # fmt: skip


def asked(place: Place, repeats: int) -> None:
    """Ask a gateway for groups, never the same twice: the condition is on a secret column."""
    roles = {**dict.fromkeys(BY, "quasi"), "unit": "other", "x": "confidential"}
    data = dc.read(f"{place.name}://#t", engine=place.engine, roles=roles, name="t")
    guard = dc.Perturbation(
        epsilon=1e6,
        per_query=1.0,
        bounds={"x": (0, 1_000_000)},
        keys={"a": [f"region {i}" for i in range(20)]},
    )
    limit = iter(range(20_000, 30_000))
    with dc.Gateway(data, guard=guard) as gate:

        def ours() -> None:
            answer = gate.ask(
                f"SELECT a, COUNT(*), SUM(x) FROM t WHERE x < {next(limit)} GROUP BY a"
            )
            if answer.refused:
                raise SystemExit(answer.reason)

        ours()  # warm
        by_hand = "SELECT a, count(*), sum(x) FROM t WHERE x < {} GROUP BY a"
        place.ratio(
            "gateway GROUP BY, warm", 2.0,
            ours, lambda: place.raw(by_hand.format(next(limit))), repeats + 2,
        )  # fmt: skip


def counts_one_by_one(place: Place) -> None:
    for name in [*BY, "unit", "x"]:
        place.raw(f"SELECT count(DISTINCT {name}), count({name}), min({name}), max({name}) FROM t")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--postgres")
    parser.add_argument("--spark")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.parquet"
        pyarrow.parquet.write_table(records(given.rows, 4), path)
        for url in ("duckdb://", given.postgres, given.spark):
            if url is not None:
                measured(Place(url, path), given.repeats)
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    started = time.perf_counter()
    main()
    print(f"{time.perf_counter() - started:.0f} s in all")
