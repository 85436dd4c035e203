"""How long the auditor takes to decide a table, without being given any certificate.

python benchmarks/tables_audit.py                  # synth_89x111 and a table with 10k cells
python benchmarks/tables_audit.py --cells 60000 --attacker outsider
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import tables_instances
import tables_scale

from discreet.audit.intervals import audit_table
from discreet.data.table import Table
from discreet.tables.suppression.engine import suppress


def run(name: str, table: Table, attacker: str) -> None:
    pattern = suppress(table, objective="count", effort="fast", attacker=attacker)
    began, wall = time.process_time(), time.monotonic()
    audit = audit_table(table, published=pattern.status, attacker=attacker)
    seconds = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{name:<22} {audit.suppressed:>8,} suppressed {audit.sensitive:>8,} sensitive "
        f"{audit.unsafe} unsafe {seconds:8.2f} CPU s {time.monotonic() - wall:8.2f} s "
        f"peak {memory:.2f} GB",
        flush=True,
    )
    # A pattern with holes must be refused as fast as a good one is passed.
    broken = pattern.status.copy()
    secondary = np.flatnonzero(broken == 1)
    broken[secondary[:: max(1, len(secondary) // 20)]] = 0
    began = time.process_time()
    audit = audit_table(table, published=broken, attacker=attacker)
    print(f"{'':<22} 20 holes: {audit.unsafe} unsafe {time.process_time() - began:8.2f} CPU s")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cells", type=int, nargs="*", default=[10_000])
    options.add_argument("--attacker", default="outsider", choices=["outsider", "contributors"])
    given = options.parse_args()
    folder = tables_instances.data()
    if folder is not None:
        run("synth_89x111", tables_instances.read(folder / "synth_89x111"), given.attacker)
    for cells in given.cells:
        run("synthetic 3-D", tables_scale.synthetic(cells), given.attacker)


if __name__ == "__main__":
    main()
