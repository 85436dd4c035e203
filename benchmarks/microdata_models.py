"""Checking models on Adult and partitioning by Mondrian; pycanon and anonypy as peers.

Run: python benchmarks/microdata_models.py [--mondrian 1000000]
"""

import argparse
import os
import resource
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import discreet as dc

KEYS = ["sex", "age", "race", "marital-status", "education"]
# Seconds of pycanon on the same five columns, on another machine.
PEER = {"k-anonymity": 0.37, "distinct": 3.2, "entropy": 11.0, "t-closeness": 79.5}


def best(run, repeat=5):
    times = []
    for _ in range(repeat):
        start = time.process_time()
        result = run()
        times.append(time.process_time() - start)
    return result, min(times)


def checks():
    folder = Path(os.environ.get("DISCREET_DATA", "../shared/data")) / "adult"
    roles = {**dict.fromkeys(KEYS, "quasi"), "occupation": "confidential"}
    people = dc.read(folder / "adult.csv", roles=roles, rest="identifier").materialize()
    print("checking Adult, five keys, CPU seconds")
    for name, model in {
        "k-anonymity": dc.KAnonymity(5),
        "distinct": dc.LDiversity("occupation", 3),
        "entropy": dc.LDiversity("occupation", 3, kind="entropy"),
        "recursive": dc.LDiversity("occupation", 3, kind="recursive"),
        "t-closeness": dc.TCloseness("occupation", 0.2),
        "t, ordered": dc.TCloseness("occupation", 0.2, distance="ordered"),
        "beta-likeness": dc.BetaLikeness("occupation", 1.0),
        "delta-disclosure": dc.DeltaDisclosure("occupation", 1.0),
    }.items():
        check, spent = best(lambda m=model: m.check(people, quasi=KEYS))
        peer = f"pycanon {PEER[name]:5.2f}, ratio {spent / PEER[name]:.4f}" if name in PEER else ""
        print(f"  {name:18} {check.value:10.4g} {spent:7.4f}  {peer}")
    for relaxed in (False, True):
        safe, spent = best(
            lambda r=relaxed: dc.anonymize(
                people, dc.KAnonymity(5), method=dc.Mondrian(relaxed=r), quasi=KEYS
            ),
            3,
        )
        form = "relaxed" if relaxed else "strict"
        print(
            f"  Mondrian {form}, 30,162 records: {spent:.3f} ({safe.work['classes']:,} classes); "
            f"anonypy 70, ratio {spent / 70:.4f}"
        )


def large(rows):
    rng = np.random.default_rng(1)
    columns = {f"x{j}": rng.normal(size=rows).round(2) for j in range(3)}
    columns["c"] = rng.integers(0, 50, rows)
    data = dc.read(pa.table(columns), roles=dict.fromkeys(columns, "quasi"))
    start = time.process_time()
    safe = dc.anonymize(data, dc.KAnonymity(10), method=dc.Mondrian(), verify=False)
    spent = time.process_time() - start
    print(
        f"  Mondrian strict, {rows:,} records, 4 keys: {spent:.2f} s, {safe.work['classes']:,} classes"
    )


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--mondrian", type=int, default=100_000, help="records for Mondrian")
    given = options.parse_args()
    checks()
    large(given.mondrian)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
