"""Joint tables of three owner processes over TLS: CPU seconds, bytes, rounds and memory per node.

    python benchmarks/joint.py [--cells 1000 10000 100000] [--mpyc OTHER/bin/python]

With the interpreter of an environment that has MPyC (`pip install mpyc gmpy2`), the same rules are
judged there of the smallest table, on the total alone, in the same run.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd

import discreet as dc
from discreet.protocols.arithmetic import negative, rehearse, split
from discreet.randomness import Randomness

_ACROSS = 100
_TICK = os.sysconf("SC_CLK_TCK")
RULES = (dc.MinimumFrequency(3), dc.PPercent(15))


def cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def peak(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(one for one in status if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1e6


def owner(cells: int, seed: int) -> pd.DataFrame:
    """Return three records in each cell of a cross of two columns."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(cells), 3)
    value = rng.lognormal(6, 2, len(rows)).astype(np.int64)
    high, low = np.divmod(rows, _ACROSS)
    return pd.DataFrame({"high": high.astype(str), "low": low.astype(str), "value": value})


def table(cells: int) -> float:
    codes = {"high": range(cells // _ACROSS), "low": range(_ACROSS)}
    with dc.Joint.local(
        [owner(cells, seed) for seed in range(3)],
        name="joint",
        keys=codes,
        measures={"value": {"bound": 1e12}},
        rules=RULES,
    ) as joint:
        pids = {name: one.pid for name, one in joint._closing.processes.items()}
        sql = "SELECT high, low, COUNT(*), SUM(value) FROM joint GROUP BY high, low"
        joint.ask(sql)  # the first question also imports what it needs
        before = {name: cpu(pid) for name, pid in pids.items()}
        start = time.monotonic()
        found = joint.ask(sql)
        wall = time.monotonic() - start
        spent = max(cpu(pid) - before[name] for name, pid in pids.items())
        memory = max(map(peak, pids.values()))
        said = found.transcript["owner1"]
        sent = sum(one["bytes"] for one in said["sent"].values())
        print(
            f"{cells:>8,} cells  {spent:6.2f} CPU s per owner and node  {wall:6.2f} s wall  "
            f"{said['rounds']} rounds  {sent / 1e6:7.2f} MB sent  {memory:.2f} GB  "
            f"{found.withheld:,} withheld"
        )
        return spent


def of_mpyc(python: str, cells: int) -> float:
    """Return the CPU seconds of a party of MPyC for a table of so many cells."""
    script = Path(__file__).with_name("joint_mpyc.py")
    told = subprocess.run(
        [python, str(script), "-M3", "--cells", str(cells)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    line = next(one for one in told.splitlines() if one.startswith("MPyC party"))
    print(f"          {line}")
    return float(re.search(r"([\d.]+) CPU s", line)[1])


def comparisons(n: int) -> None:
    values = np.random.default_rng(1).integers(-(2**61), 2**61, n)
    parts = split(values, rng=Randomness.secure())
    start = time.process_time()
    _, rings = rehearse(lambda node: negative(node, parts[node.index]) and None)
    spent = (time.process_time() - start) / 3
    print(
        f"{n:>9,} comparisons of 64 bits  {spent:.2f} CPU s per node  "
        f"{rings[0].sent / 1e6:.1f} MB sent  {len(rings[0].view) - 1} rounds"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--mpyc", help="the interpreter of an environment with MPyC")
    given = parser.parse_args()
    spent = {cells: table(cells) for cells in given.cells}
    if given.mpyc:
        cells = min(spent)
        print(
            f"          we take 1/{of_mpyc(given.mpyc, cells) / spent[cells]:.0f} of its CPU seconds"
        )
    comparisons(1_000_000)


if __name__ == "__main__":
    main()
