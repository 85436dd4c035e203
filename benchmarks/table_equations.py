"""Cells into a table and its equations: CPU time for a large sparse cube.

Run: python benchmarks/table_equations.py [--cells 1000000]
"""

import argparse
import resource
import time

import numpy as np
import pyarrow as pa

from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Table


def cells(wanted: int) -> tuple[pa.Table, dict[str, Hierarchy]]:
    """Return about so many cells over a three-tier geography × 75 × 10, totals included."""
    rng = np.random.default_rng(1)
    geography = Hierarchy.from_levels(
        {
            f"P{p}": {f"D{p}.{d}": [f"{p}.{d}.{m}" for m in range(10)] for d in range(10)}
            for p in range(30)
        }
    )
    by = {
        "geo": geography,
        "activity": Hierarchy.flat([f"a{i}" for i in range(75)]),
        "size": Hierarchy.flat([f"s{i}" for i in range(10)]),
    }
    n = int(wanted * 0.27)
    leaves = [rng.choice(np.flatnonzero(h.is_leaf), n) for h in by.values()]
    codes, values = np.stack(leaves, axis=1), rng.pareto(1.5, n) + 1
    for place, hierarchy in enumerate(by.values()):
        layers, current, amount = [codes], codes, values
        amounts = [values]
        while True:
            up = hierarchy.parents[current[:, place]]
            current, amount = current[up >= 0].copy(), amount[up >= 0]
            if not len(current):
                break
            current[:, place] = up[up >= 0]
            layers.append(current)
            amounts.append(amount)
        stacked, amount = np.concatenate(layers), np.concatenate(amounts)
        sizes = np.array([len(h) for h in by.values()])
        key = stacked @ np.array([sizes[1] * sizes[2], sizes[2], 1])
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        codes, values = stacked[first], np.bincount(inverse, amount)
    columns = {
        name: pa.DictionaryArray.from_arrays(
            codes[:, i].astype(np.int32), list(h.codes)
        ).dictionary_decode()
        for i, (name, h) in enumerate(by.items())
    }
    return pa.table({**columns, "value": values}), by


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=100_000)
    frame, hierarchies = cells(parser.parse_args().cells)
    start = time.process_time()
    table = Table.from_cells(frame, list(hierarchies), "value", hierarchies=hierarchies)
    made = time.process_time()
    equations = table.equations
    done = time.process_time()
    table.require_additive(1e-9)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{len(table):,} cells of {np.prod([float(len(h)) for h in hierarchies.values()]):,.0f} combinations"
    )
    print(
        f"from_cells {made - start:.2f} CPU s, {equations.shape[0]:,} equations {done - made:.2f} CPU s"
    )
    print(f"memory peak {peak:,.0f} MB")


if __name__ == "__main__":
    main()
