"""Controlled rounding and controlled tabular adjustment on the published instances.

Usage: tables_rounding.py [--full] [--base N]. Without --full only the smaller instances and the
13,710-cell table of counts. The peer is conventional rounding: the least distance any rounding
can have, which does not add up.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.tables.instances import instance

import discreet as dc

SMALL = ["ssb_magnitude1", "testW_size_region", "insee_act_size", "insee_act_nuts2", "ssb_z3"]
MORE = ["synth_25x37", "synth_13x13x5", "ent_act_product", "testW_ind4_region", "synth_89x111"]
LARGE = ["synth_26x21x19", "testW_ind4_region_size"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--full", action="store_true")
    options.add_argument("--base", type=float, default=5)
    options.add_argument("--adjust", type=float, default=10, help="seconds for each adjustment")
    given = options.parse_args()
    default = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
    folder = Path(os.environ.get("DISCREET_DATA", default))
    if not folder.is_dir():
        sys.exit(f"no public data in {folder}; set DISCREET_DATA")
    print("instance, cells: rounding CPU s, distance / conventional, moved beyond adjacent | "
          "adjustment CPU s, distance / sum of levels, gap")  # fmt: skip
    for name in [*SMALL, "ssb_sosialFiktiv", *MORE, *(LARGE if given.full else ())]:
        table = instance(folder, name)
        start = time.process_time()
        done = dc.ControlledRounding(given.base).hide(table, rng=dc.Randomness.seeded(1))
        rounding = time.process_time() - start
        nearest = np.floor(table.value / given.base + 0.5) * given.base
        ratio = np.abs(done.value - table.value).sum() / np.abs(nearest - table.value).sum()
        line = f"{name}, {len(table)}: {rounding:.2f}, {ratio:.3f}, "
        line += f"{done.facts['moved_beyond_adjacent']}"
        if len(table) < 2000:
            start = time.process_time()
            method = dc.ControlledTabularAdjustment(time_limit=given.adjust)
            moved = method.hide(table, rng=dc.Randomness.seeded(1))
            spent = time.process_time() - start
            levels = table.upper[table.status == 2].sum()
            share = np.abs(moved.value - table.value).sum() / levels
            line += f" | {spent:.2f}, {share:.2f}, {moved.confidential['gap']:.4f}"
        print(line, flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory peak {peak:.0f} MB")


if __name__ == "__main__":
    main()
