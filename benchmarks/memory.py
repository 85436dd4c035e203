"""Joint judgement: a new table against earlier ones, beside protecting it alone.

    python benchmarks/memory.py [RECORDS] [EARLIER]

Prints the CPU seconds of protecting a table alone and with a ledger that holds so many earlier tables,
their ratio, the number of cells, and the peak of memory.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import discreet as dc

RULES = [dc.MinimumFrequency(3), dc.PPercent(10)]


def people(records: int) -> dc.Dataset:
    """Return firms with eight attributes of twelve codes each and a skewed turnover."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"a{n}": rng.integers(0, 12, records).astype(str) for n in range(8)})
    frame["turnover"] = rng.lognormal(8, 1, records).round()
    roles = {f"a{n}": "quasi" for n in range(8)} | {"turnover": "confidential"}
    return dc.read(frame, roles=roles, name="firms")


def main(records: int, earlier: int) -> None:
    """Measure once and print."""
    firms, method = people(records), dc.Suppression(effort="fast", attacker="outsider")
    pairs = [(a, b) for a in range(8) for b in range(a + 1, 8)][:earlier]
    with tempfile.TemporaryDirectory() as place, dc.open_ledger(Path(place) / "l.db") as ledger:
        cells = 0
        for number, (a, b) in enumerate(pairs):
            table = dc.tabulate(firms, by=[f"a{a}", f"a{b}"], measure="turnover")
            started = time.process_time()
            release = table.protect(RULES, method, ledger=ledger)
            release.write(Path(place) / str(number), ledger=ledger)
            cells += len(table)
            print(f"earlier {number}: {time.process_time() - started:.1f} CPU s", flush=True)
        table = dc.tabulate(firms, by=["a0", "a1", "a2"], measure="turnover")
        started = time.process_time()
        table.protect(RULES, method)
        alone = time.process_time() - started
        started = time.process_time()
        try:
            table.protect(RULES, method, ledger=ledger)
            found = "protected"
        except dc.InfeasibleError as error:
            found = str(error)[:120]
        together = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{len(table):,} cells against {cells:,} cells of {len(pairs)} tables: {found}")
    print(f"alone {alone:.1f} CPU s, together {together:.1f} CPU s, ratio {together / alone:.1f}")
    print(f"peak {peak:.2f} GB")


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*(given + [20_000, 3][len(given) :]))
