"""Masks and permutation of records that stay in their engine: memory of the Python process, and time.

    python benchmarks/engines_records.py --rows 1000000 --memory 512MB pram noise
    python benchmarks/engines_records.py --rows 1000000 --engine postgresql://… rank-swapping

Every job runs in a process of its own, from the address of the data to the released folder that was
written and verified. With DuckDB, which runs inside the process, `--memory` is what it may use itself;
the peak is that of the whole process, DuckDB's part included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import discreet as dc
from discreet.data.dataset import Dataset
from discreet.data.engines import connect

ROLES = {
    "age": "quasi",
    "region": "quasi",
    "job": "quasi",
    "sex": "quasi",
    "pay": "confidential",
    "wealth": "confidential",
}
PEOPLE = """
SELECT (18 + hash(i * 7) % 70)::BIGINT AS age,
       'R' || (hash(i * 11) % 40)::VARCHAR AS region,
       'job ' || (hash(i * 13) % 25)::VARCHAR AS job,
       CASE WHEN hash(i * 17) % 2 = 0 THEN 'f' ELSE 'm' END AS sex,
       round(1000 + 90000 * pow((hash(i * 19) % 1000003) / 1000003.0, 3), 2)::DOUBLE AS pay,
       round(5000 + 400000 * pow((hash(i * 23) % 1000033) / 1000033.0, 4), 2)::DOUBLE AS wealth,
       (i // 3)::BIGINT AS home
FROM range({rows}) t(i)
"""


def methods() -> dict[str, list[Any]]:
    """Return the masks by the name of the job. Any: members of the family."""
    return {
        "pram": [dc.PRAM("job")],
        "noise": [dc.AdditiveNoise("pay", 0.1)],
        "correlated-noise": [dc.AdditiveNoise(["pay", "wealth"], 0.1, correlated=True)],
        "data-swapping": [dc.DataSwapping("pay", fraction=0.2, within=("region",))],
        "rank-swapping": [dc.RankSwapping("pay", p=5)],
        "shuffling": [dc.Shuffling("pay", given=("age", "sex"))],
        "record-swapping": [dc.RecordSwapping("region", "home", keys=("age", "job"), k=3)],
        "microaggregation": [dc.Microaggregation(["pay"], k=5)],
    }


def run(job: str, data: Dataset, folder: Path) -> None:
    """Do one job and write its release."""
    if job == "permute":
        dc.permute(data, sensitive="pay", k=5, e=500).write(folder)
        return
    dc.mask(data, methods()[job]).write(folder, unsafe=True)


def rss() -> int:
    """Return the memory of this process now, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def one(job: str, source: str, memory: str) -> dict[str, Any]:
    """Do one job here; return what it took."""
    folder = Path(tempfile.mkdtemp(prefix="discreet-bench-"))
    options = {"memory_limit": memory, "temp_directory": str(folder / "spill"), "threads": 2}
    engine = connect("duckdb://", **options) if "://" not in source else None
    data = dc.read(source, roles=ROLES, rest="identifier", engine=engine)
    start, begun, cpu = rss(), time.monotonic(), time.process_time()
    run(job, data, folder / "out")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "job": job,
        "peak MB above start": round((peak - start) / 1e6),
        "seconds": round(time.monotonic() - begun, 1),
        "CPU seconds": round(time.process_time() - cpu, 1),
    }


def main() -> None:
    """Run the jobs one after the other, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", default=[*methods(), "permute"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--memory", default="400MB")
    parser.add_argument("--source", help="an address, or a Parquet file made before")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        print(json.dumps(one(given.jobs[0], given.source, given.memory)))
        return
    with tempfile.TemporaryDirectory(prefix="discreet-bench-") as place:
        source = given.source
        if source is None:
            import duckdb

            source = f"{place}/people.parquet"
            duckdb.sql(f"COPY ({PEOPLE.format(rows=given.rows)}) TO '{source}'")
        for job in given.jobs:
            command = [sys.executable, __file__, job, "--source", source, "--here"]
            command += ["--memory", given.memory]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            print(
                done.stdout.strip().splitlines()[-1] if done.stdout else done.stderr[-1500:],
                flush=True,
            )


if __name__ == "__main__":
    main()
