"""How long a release takes: partition, permutation and help table, from arrays in memory.

    python benchmarks/permutation_publish.py [--records 1000000] [--files]

The raw measure beside it: sorting the same rows by the sensitive column in DuckDB.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.data.engines import connect


def population(records: int) -> pa.Table:
    rng = np.random.default_rng(1)
    age = rng.integers(18, 95, records)
    return pa.table(
        {
            "age": age.astype(np.int32),
            "sex": pa.array(np.where(rng.random(records) < 0.5, "f", "m")),
            "region": rng.integers(0, 50, records).astype(np.int32),
            "pay": np.rint(rng.lognormal(10.2, 0.6, records) * (1 + age / 200)).astype(np.int64),
        }
    )


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--records", type=int, default=1_000_000)
    options.add_argument("-k", type=int, default=5)
    options.add_argument("-e", type=float, default=1000.0)
    options.add_argument("--partition", default="weighted")
    options.add_argument("--files", action="store_true", help="also write the release to Parquet")
    given = options.parse_args()
    roles = {"age": "quasi", "sex": "quasi", "region": "quasi", "pay": "confidential"}
    demand = {"sensitive": "pay", "k": given.k, "e": given.e, "partition": given.partition}
    dc.permute(dc.read(population(2000), roles=roles), **demand)  # compile
    table = population(given.records)
    people = dc.read(table, roles=roles, name="people")
    started, cpu = time.perf_counter(), time.process_time()
    safe = dc.permute(people, **demand)
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    with connect("duckdb://") as raw:
        rows = raw.load(table, name="people")
        start = time.process_time()
        raw.materialize(raw.relation(rows.query.order_by("pay")))
        sorting = time.process_time() - start
    print(f"{given.records:,} records, {safe.facts.groups:,} groups ({given.partition})")
    print(f"publish and help table: {cpu:.1f} CPU s, {wall:.1f} s on the clock")
    print(f"sorting the rows in DuckDB: {sorting:.1f} CPU s, ratio {cpu / sorting:.1f}")
    if given.files:
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            safe.write(folder + "/release")
            print(f"writing both tables to Parquet: {time.process_time() - start:.1f} CPU s")
    print(f"memory peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main()
