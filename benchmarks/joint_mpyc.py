"""The rules of `joint.py` on the total alone, in MPyC: three parties on loopback, CPU seconds each.

    python benchmarks/joint_mpyc.py -M3 --cells 1000
    python benchmarks/joint_mpyc.py -M3 --dot 100000

MPyC (extra `smc`) starts the other parties itself. Each party has three contributions per cell; the
two largest of all are found by four comparisons, then minimum frequency 3 and p % 15 are judged.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from mpyc.runtime import mpc


async def main(cells: int) -> None:
    secint = mpc.SecInt(64)
    await mpc.start()
    rng = np.random.default_rng(mpc.pid)
    values = np.sort(rng.lognormal(6, 2, (cells, 3)).astype(np.int64), axis=1)[:, ::-1]
    mine = np.stack([np.full(cells, 3), values.sum(axis=1), values[:, 0], values[:, 1]])
    wall, cpu = time.monotonic(), time.process_time()
    parts = mpc.input(secint.array(mine))
    count = parts[0][0] + parts[1][0] + parts[2][0]
    total = parts[0][1] + parts[1][1] + parts[2][1]
    first, second = parts[0][2], parts[0][3]
    for part in parts[1:]:
        is_less = first < part[2]
        largest = first + is_less * (part[2] - first)
        smaller = first + part[2] - largest
        runner = second + is_less * (part[3] - second)
        second = smaller + (smaller < runner) * (runner - smaller)
        first = largest
    few = count < 3
    close = 20 * (total - first - second) < 3 * first
    flags = await mpc.output(few + close - few * close)
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    print(
        f"MPyC party {mpc.pid}: {cells:,} cells, total alone  {cpu:.2f} CPU s  {wall:.2f} s wall  "
        f"{int(np.sum(np.asarray(flags, dtype=np.int64)))} withheld"
    )
    await mpc.shutdown()


async def dot(records: int) -> None:
    """Multiply one column of each of two parties, as `scalar-product` does in 0.01 CPU seconds."""
    secint = mpc.SecInt(64)
    await mpc.start()
    rng = np.random.default_rng(mpc.pid)
    wall, cpu = time.monotonic(), time.process_time()
    parts = mpc.input(secint.array(rng.integers(-(2**20), 2**20, records)))
    await mpc.output(parts[0] @ parts[1])
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    print(f"MPyC party {mpc.pid}: dot product of {records:,}  {cpu:.2f} CPU s  {wall:.2f} s wall")
    await mpc.shutdown()


if __name__ == "__main__":
    if "--dot" in sys.argv:
        mpc.run(dot(int(sys.argv[sys.argv.index("--dot") + 1])))
        sys.exit()
    given = sys.argv[sys.argv.index("--cells") + 1] if "--cells" in sys.argv else "1000"
    mpc.run(main(int(given)))
