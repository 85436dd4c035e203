"""A Parquet file larger than memory anonymised to k = 5 by optimal generalisation.

Run: python benchmarks/microdata_large.py [--rows 1000000] [--memory 8GB] [--engine spark://…]
     python benchmarks/microdata_large.py --rows 10000000 --cluster

The file is generated in pieces; the search sees the frequency set, the engine does the rest, and
the release is written as Parquet. The raw engine's time for the same grouping is the yardstick.
With `--cluster` a standalone Spark cluster of two workers with one core and 2 GB each is started on
loopback, and the job runs there.
"""

import argparse
import contextlib
import math
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as dc
from discreet.data.engines import connect

PIECE = 2_000_000
MARITAL = ["single", "married", "partners", "separated", "divorced", "widowed", "unknown"]

# What a modest cluster is given: the driver holds the frequency set, the workers the records.
SPARK = {
    "spark.executor.memory": "1600m",
    "spark.executor.cores": "1",
    "spark.driver.memory": "3g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
    "spark.default.parallelism": "4",
}


def hierarchies() -> dict[str, dc.Hierarchy]:
    regions = {
        f"P{p}": {f"D{p}.{d}": [f"{p}.{d}.{m}" for m in range(10)] for d in range(5)}
        for p in range(8)
    }
    return {
        "sex": dc.Hierarchy.flat(["f", "m"], total="*"),
        "age": dc.Hierarchy.from_intervals(
            width=(5, 10, 20, 40), low=0, high=120, values=range(100), total="*"
        ),
        "region": dc.Hierarchy.from_levels(regions, total="*"),
        "education": dc.Hierarchy.from_levels(
            {"basic": list("abcde"), "middle": list("fghij"), "high": list("klmnop")}, total="*"
        ),
        "marital": dc.Hierarchy.from_levels(
            {
                "alone": ["single", "separated", "divorced", "widowed"],
                "together": ["married", "partners"],
                "unknown group": ["unknown"],
            },
            total="*",
        ),
    }


def drawn(rng, values, weights, n):
    """Return values drawn by weight, as numbers into a dictionary."""
    shares = np.cumsum(weights) / np.sum(weights)
    codes = np.minimum(np.searchsorted(shares, rng.random(n)), len(values) - 1)
    return pa.DictionaryArray.from_arrays(codes.astype(np.int16), pa.array(values))


def generate(path: Path, rows: int) -> None:
    """Write skewed people, piece by piece."""
    rng = np.random.default_rng(1)
    leaves = hierarchies()["region"].leaves
    binomial = [math.comb(15, i) * 0.45**i * 0.55 ** (15 - i) for i in range(16)]
    weight = 1 / np.arange(1, len(leaves) + 1) ** 1.1
    writer = None
    for start in range(0, rows, PIECE):
        n = min(PIECE, rows - start)
        piece = pa.table(
            {
                "sex": drawn(rng, ["f", "m"], [0.5, 0.5], n),
                "age": np.minimum(99, rng.gamma(5, 8, n)).astype(np.int16),
                "region": drawn(rng, leaves, weight, n),
                "education": drawn(rng, list("abcdefghijklmnop"), binomial, n),
                "marital": drawn(rng, MARITAL, [0.35, 0.4, 0.1, 0.05, 0.06, 0.035, 0.005], n),
                "income": np.exp(rng.standard_normal(n, dtype=np.float32) * 0.6 + 10),
            }
        )
        writer = writer or pq.ParquetWriter(path, piece.schema)
        writer.write_table(piece)
    writer.close()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--memory", default="8GB")
    options.add_argument("--suppression", type=float, default=0.02)
    options.add_argument("--engine", default="duckdb://")
    options.add_argument("--folder", type=Path, default=None)
    options.add_argument("--cluster", action="store_true", help="start a Spark cluster here")
    given = options.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="discreet-large-"))
    path = folder / f"people-{given.rows}.parquet"
    if not path.exists():
        start = time.time()
        generate(path, given.rows)
        print(f"generated {path.stat().st_size / 1e6:,.0f} MB in {time.time() - start:.0f} s")
    with contextlib.ExitStack() as running:
        url, settings = given.engine, {}
        if given.cluster:
            url, settings = running.enter_context(cluster()), SPARK
        elif url.startswith("duckdb"):
            settings = {"memory_limit": given.memory, "temp_directory": str(folder / "spill")}
        run(running.enter_context(connect(url, **settings)), path, folder, given.suppression)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MB")


@contextlib.contextmanager
def cluster():
    """Run a real cluster on loopback: a master and two workers."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.servers import spark_cluster

    with (
        tempfile.TemporaryDirectory(prefix="discreet-spark-") as place,
        spark_cluster(Path(place), memory="2g") as url,
    ):
        yield url


def run(engine, path, folder, suppression):
    """Anonymise the file in an engine, write it, and print what it took."""
    trees = hierarchies()
    roles = {**dict.fromkeys(trees, "quasi"), "income": "confidential"}
    people = dc.read(path, engine=engine, roles=roles, hierarchies=trees, name="people")
    wall, cpu = time.time(), time.process_time()
    distinct = people.frequencies(list(trees)).num_rows
    raw = time.time() - wall
    print(f"raw grouping: {raw:.1f} s, {distinct:,} different rows")
    wall = time.time()
    safe = dc.anonymize(
        people,
        dc.KAnonymity(5),
        method=dc.Generalization(suppression=suppression),
        progress=stages(),
    )
    found = time.time() - wall
    print(f"anonymised and checked: {found:.1f} s, {found / raw:.1f} times the raw grouping")
    wall = time.time()
    safe.dataset.write(folder / "released.parquet")
    print(f"written: {time.time() - wall:.1f} s")
    print(f"node {dict(safe.levels)} score {safe.score:.9f} suppressed {safe.suppressed:,}")
    print(f"work {dict(safe.work)}; CPU {time.process_time() - cpu:.1f} s")


def stages():
    """Print when a stage of the work begins."""
    seen, start = set(), time.time()

    def show(stage, done, total):
        if stage not in seen and done <= total:
            seen.add(stage)
            print(f"  {time.time() - start:6.1f} s {stage}", flush=True)

    return show


if __name__ == "__main__":
    main()
