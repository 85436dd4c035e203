"""Joint judgement: a new table against earlier ones, beside protecting it alone.

    python benchmarks/memory.py [RECORDS] [EARLIER …]

Firms have a region, a sector, fifty skewed characteristics and a skewed turnover. Each earlier table is by region,
sector and one characteristic, so that no two of them nest; the new one has about 10,000 cells. Of the earlier cells
some 4 % are sensitive and 7 % withheld, of the new ones more than a fifth. Earlier tables are protected alone and
recorded without being judged together, which would take most of the time: so what they tell together may already be
too much, and then no new table is safe. Prints the CPU seconds of protecting the new table alone and with a
ledger that holds so many earlier tables, their ratio, the number of cells, and the peak of memory.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
import pandas as pd

import discreet as dc
from discreet.ledger.memory import Memory, record_release

RULES = [dc.MinimumFrequency(3), dc.PPercent(10)]
METHOD = dc.Suppression(effort="fast", attacker="outsider")


def firms(records: int, characteristics: int, codes: tuple[int, int, int]) -> dc.Dataset:
    """Return firms whose codes, but for region and sector, are skewed."""
    rng = np.random.default_rng(1)
    place, code, last = codes
    share, common = (1 / np.arange(1, size + 1) ** 2 for size in (last, code))
    columns = {
        "region": rng.integers(0, place, records).astype(str),
        "sector": rng.integers(0, place, records).astype(str),
        "form": rng.choice(last, records, p=share / share.sum()).astype(str),
        "turnover": rng.lognormal(8, 1, records).round() + 1,
    }
    for number in range(characteristics):
        columns[f"x{number}"] = rng.choice(code, records, p=common / common.sum()).astype(str)
    roles = dict.fromkeys(columns, "quasi") | {"turnover": "confidential"}
    return dc.read(pd.DataFrame(columns), roles=roles, name="firms")


def table_by(data: dc.Dataset, *by: str) -> dc.Table:
    """Return a table of the turnover."""
    return dc.tabulate(data, by=list(by), measure="turnover")


def seconds(call: object, *arguments: object, **named: object) -> tuple[float, object]:
    """Return the CPU seconds of a call, and what came of it."""
    started = time.process_time()
    try:
        found: object = call(*arguments, **named)  # type: ignore[operator]
    except dc.DiscreetError as error:
        found = error
    return time.process_time() - started, found


def main(records: int, steps: list[int], codes: tuple[int, int, int] = (18, 17, 28)) -> None:
    """Measure with as many earlier tables as each step says, and print."""
    data = firms(records, max(steps), codes)
    new = table_by(data, "region", "sector", "form")
    alone, _ = seconds(new.protect, RULES, METHOD)
    print(f"{len(new):,} cells alone: {alone:.1f} CPU s", flush=True)
    cells = 0
    with dc.open_ledger() as ledger, Memory(ledger, data) as memory:
        for number in range(max(steps)):
            release = table_by(data, "region", "sector", f"x{number}").protect(RULES, METHOD)
            record_release(
                memory, kind="table", title=release.title(), digest=str(number),
                facts=list(release.discloses(memory)), audience="public",
            )  # fmt: skip
            memory.refresh()
            cells += len(release.table)
            if number + 1 not in steps:
                continue
            together, found = seconds(new.protect, RULES, METHOD, ledger=ledger)
            told = str(found)[:70] if isinstance(found, Exception) else "protected"
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(
                f"{number + 1} earlier tables, {cells:,} cells: {together:.1f} CPU s, "
                f"{together / alone:.1f} times, peak {peak:.2f} GB: {told}",
                flush=True,
            )


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(given[0] if given else 600_000, given[1:] or [1, 5, 10, 20, 35, 50])
