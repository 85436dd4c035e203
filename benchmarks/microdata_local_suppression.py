"""Local suppression to k = 3 on Adult, five keys; sdcMicro's kAnon: 13.8 s and 3,101 cells.

Run: python benchmarks/microdata_local_suppression.py [--rows 10000] [--k 3]
"""

import argparse
import os
import resource
import time
from pathlib import Path

import discreet as dc

KEYS = ["sex", "age", "race", "marital-status", "education"]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, default=10_000)
    options.add_argument("--k", type=int, default=3)
    given = options.parse_args()
    folder = Path(os.environ.get("DISCREET_DATA", "../shared/data")) / "adult"
    frame = dc.read(folder / "adult.csv").frame[KEYS]
    while len(frame) < given.rows:
        import pandas as pd

        frame = pd.concat([frame, frame])
    data = dc.read(frame.iloc[: given.rows], roles=dict.fromkeys(KEYS, "quasi"))
    print(f"{given.rows:,} records, k = {given.k}, keys {', '.join(KEYS)}; CPU seconds\n")
    print(f"{'method':34} {'cells':>6} {'below k as category':>20} {'seconds':>8} {'ratio':>7}")
    for name, method in (
        ("missing matches everything", dc.LocalSuppression()),
        ("the same, sparing records", dc.LocalSuppression(spare=True)),
        ("missing is a value of its own", dc.LocalSuppression(missing="category")),
    ):
        times = []
        for _ in range(3):
            start = time.process_time()
            safe = dc.anonymize(data, dc.KAnonymity(given.k), method=method)
            times.append(time.process_time() - start)
        below = safe.work["below_as_category"]
        print(
            f"{name:34} {safe.work['cells']:6,} {below:20,} {min(times):8.3f} "
            f"{min(times) / 13.8:7.4f}"
        )
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
